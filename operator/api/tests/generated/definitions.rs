//! The definitions as templates of the chart.

use mooring_operator_api::crd;

use super::NOTICE;

/// A definition stays when the chart goes: with it would go every object of its kind.
const KEPT: &str = "  annotations:\n    helm.sh/resource-policy: keep\n  labels:\n    {{- include \"mooring.labels\" . | nindent 4 }}\n";

/// A file for each resource.
pub(super) fn files() -> Vec<(String, String)> {
    crd::all()
        .into_iter()
        .map(|definition| {
            let name = definition.spec.names.plural.clone();
            let yaml = serde_yaml::to_string(&definition).expect("a definition is YAML");
            let yaml = quoted(&yaml);
            let named = yaml.replacen("metadata:\n", &format!("metadata:\n{KEPT}"), 1);
            (name, format!("# {NOTICE}\n{{{{- if .Values.crds.install }}}}\n{named}{{{{- end }}}}\n"))
        })
        .collect()
}

/// With quotes around what YAML 1.1, which kubectl and Helm read, takes for a boolean: the word `off`, for one.
fn quoted(yaml: &str) -> String {
    let is_boolean = |word: &str| {
        ["y", "n", "yes", "no", "on", "off"].iter().any(|boolean| word.eq_ignore_ascii_case(boolean))
    };
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((before, word)) if is_boolean(word) && before.ends_with(['-', ':']) => {
            format!("{before} \"{word}\"\n")
        }
        _ => format!("{line}\n"),
    };
    yaml.lines().map(line).collect()
}
