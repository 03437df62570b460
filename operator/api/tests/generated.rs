//! Writes what is made from the types and tables, and fails where a file is not what would be written.
//!
//! `./taskw generate` runs this with `UPDATE_EXPECT=1`, which writes.

#[path = "generated/conditions.rs"]
mod conditions;
#[path = "generated/definitions.rs"]
mod definitions;
#[path = "generated/rbac.rs"]
mod rbac;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use expect_test::expect_file;

/// First line of everything written here.
const NOTICE: &str = "Written by `./taskw generate`; change the tables and types of operator/api instead.";
const CRDS: &str = "charts/mooring/templates/crds";
const RBAC: &str = "charts/mooring/templates/rbac";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file: its path from the root, and its text.
fn files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = definitions::files()
        .into_iter()
        .map(|(name, text)| (format!("{CRDS}/{name}.yaml"), text))
        .chain(rbac::files().into_iter().map(|(name, text)| (format!("{RBAC}/{name}.yaml"), text)))
        .collect();
    files.push(("docs/conditions.md".to_owned(), conditions::page()));
    files
}

#[test]
fn what_is_generated_is_fresh() {
    for (path, text) in files() {
        expect_file![root().join(path)].assert_eq(&text);
    }
}

#[test]
fn nothing_else_stands_among_what_is_generated() {
    let ours: BTreeSet<String> = files().into_iter().map(|(path, _)| path).collect();
    for folder in [CRDS, RBAC] {
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder") {
            let path = format!("{folder}/{}", entry.expect("an entry").file_name().display());
            assert!(ours.contains(&path), "{path} is not generated: it belongs elsewhere, or is a leftover");
        }
    }
}

/// Descriptions and rules go through the chart's templates: nothing in them may be read as a template.
#[test]
fn only_our_own_lines_are_templates() {
    for (path, text) in files() {
        for line in text.lines().filter(|line| line.contains("{{") || line.contains("}}")) {
            let is_ours =
                [r"{{- if .Values.", "{{- end }}", r#"{{- include "mooring."#, "{{ .Release.Namespace }}"]
                    .iter()
                    .any(|ours| line.contains(ours));
            assert!(is_ours && line.matches("{{").count() == 1, "{path}: {line}");
        }
    }
}
