//! The accepted and refused objects beside the types of the resources, as `operator/api/tests/cel/README.md` describes them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// One file: the cases of one resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub(super) kind: String,
    spec: Value,
    pub(super) cases: Vec<Case>,
}

/// One bound or rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    /// States that an object goes through before; none: it is created.
    #[serde(default)]
    pub(super) before: Vec<Value>,
    #[serde(default)]
    pub(super) accepted: Vec<Value>,
    pub(super) refused: Vec<Value>,
    pub(super) path: String,
    pub(super) message: String,
}

impl Suite {
    /// All of them.
    pub(super) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../operator/api/tests/cel");
        let files =
            std::fs::read_dir(&folder).unwrap_or_else(|cause| panic!("{}: {cause}", folder.display()));
        let files = files.map(|entry| entry.expect("an entry").path());
        let suites: Vec<Self> = files
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .map(|path| {
                let text = std::fs::read_to_string(&path).expect("a file of cases");
                serde_yaml::from_str(&text).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
            })
            .collect();
        assert_eq!(suites.len(), 5, "a file for each resource");
        suites
    }

    /// The object `name` that a patch of the suite's spec makes.
    pub(super) fn object(&self, name: &str, patch: &Value) -> Value {
        let mut spec = self.spec.clone();
        merge(&mut spec, patch);
        expand(&mut spec);
        json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": self.kind,
            "metadata": {"name": name}, "spec": spec,
        })
    }
}

/// Merges a patch into a value: RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().expect("made one above").remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Writes out what is written short: `{$text: a, $times: 3}` and `{$item: V$n, $times: 3}`.
fn expand(value: &mut Value) {
    let times = value["$times"].as_u64().map(|times| usize::try_from(times).expect("a number of times"));
    if let (Some(times), Some(text)) = (times, value["$text"].as_str()) {
        *value = text.repeat(times).into();
    } else if let (Some(times), Some(item)) = (times, value.get("$item")) {
        let item = item.to_string();
        let written = |n: usize| serde_json::from_str(&item.replace("$n", &n.to_string())).expect("an item");
        *value = (0..times).map(written).collect::<Vec<Value>>().into();
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(expand),
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
