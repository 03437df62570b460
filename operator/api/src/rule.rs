//! CEL rules: as values for types that cannot derive them, and the ones that say "set once, never changed".

use serde_json::{Value, json};

/// The content of `x-kubernetes-validations`: expression and sentence of each rule.
pub(crate) fn rules(rules: &[(&str, &str)]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

/// The rule that an optional field neither changes nor comes nor goes. It stands on the parent: a rule on the field itself
/// does not run when the field appears or disappears.
macro_rules! kept {
    ($field:literal) => {
        concat!(
            "has(self.",
            $field,
            ") == has(oldSelf.",
            $field,
            ") && (!has(self.",
            $field,
            ") || self.",
            $field,
            " == oldSelf.",
            $field,
            ")"
        )
    };
    ($parent:literal, $field:literal) => {
        concat!(
            "(has(self.",
            $parent,
            ") && has(self.",
            $parent,
            ".",
            $field,
            ")) == (has(oldSelf.",
            $parent,
            ") && has(oldSelf.",
            $parent,
            ".",
            $field,
            ")) && (!(has(self.",
            $parent,
            ") && has(self.",
            $parent,
            ".",
            $field,
            ")) || self.",
            $parent,
            ".",
            $field,
            " == oldSelf.",
            $parent,
            ".",
            $field,
            ")"
        )
    };
}
pub(crate) use kept;
