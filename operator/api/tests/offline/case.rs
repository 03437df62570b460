//! The files of `tests/cel`.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

/// One file: the cases of one resource.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// The resource's kind.
    pub(crate) kind: String,
    /// The spec that every case is a merge patch of (RFC 7396).
    pub(crate) spec: Value,
    /// The cases.
    pub(crate) cases: Vec<Case>,
}

/// One bound or rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Its name, which is the object's name too.
    pub(crate) name: String,
    /// Patches that make the states an object goes through first; without any, the objects are created.
    #[serde(default)]
    pub(crate) before: Vec<Value>,
    /// Patches that make objects which are accepted.
    #[serde(default)]
    pub(crate) accepted: Vec<Value>,
    /// Patches that make objects which are refused.
    pub(crate) refused: Vec<Value>,
    /// Where the refusal points.
    pub(crate) path: String,
    /// What it says, or how that begins.
    pub(crate) message: String,
}

impl Suite {
    /// Every file of the folder, by name.
    pub(crate) fn all(folder: &Path) -> Vec<Self> {
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder of cases")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .collect();
        files.sort();
        assert_eq!(files.len(), 5, "a file for each resource");
        files
            .iter()
            .map(|path| {
                let text = std::fs::read_to_string(path).expect("a file of cases");
                serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            })
            .collect()
    }

    /// The object that a patch makes.
    pub(crate) fn object(&self, name: &str, patch: &Value) -> Value {
        let mut spec = self.spec.clone();
        merge(&mut spec, patch);
        expand(&mut spec);
        json!({
            "apiVersion": "mooring.dev/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
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
