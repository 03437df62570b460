//! What an API server would say to an object: its schema's bounds and its CEL rules.
//!
//! kube's evaluation differs from the API server's in one place that is met here: under `optionalOldSelf` it gives the old
//! value itself, or null, where the API server gives an optional. So such rules are rewritten before they are judged.

use std::fmt;

use kube_core::cel::{CompiledSchema, ErrorKind, Validator, apply_defaults, compile_schema};
use mooring_operator_api::crd;
use serde_json::Value;

use crate::structure;

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Refusal {
    /// The field it is about.
    pub(crate) path: String,
    /// What it says: a rule's sentence, or how the API server's own begins.
    pub(crate) message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Judges objects of one kind.
pub(crate) struct Judge {
    schema: Value,
    /// The rules for an object that is created.
    creation: CompiledSchema,
    /// The rules for one that is changed.
    change: CompiledSchema,
    validator: Validator,
}

impl Judge {
    pub(crate) fn of(kind: &str) -> Self {
        let definition = crd::all()
            .into_iter()
            .find(|definition| definition.spec.names.kind == kind)
            .unwrap_or_else(|| panic!("no resource of kind {kind}"));
        let schema = definition.spec.versions[0].schema.as_ref().expect("a schema");
        let schema = serde_json::to_value(&schema.open_api_v3_schema).expect("a schema is JSON");
        let compiled = |is_change| {
            let mut schema = schema.clone();
            make_old_optional(&mut schema, is_change);
            compile_schema(&schema)
        };
        Self { creation: compiled(false), change: compiled(true), validator: Validator::new(), schema }
    }

    /// The object with the defaults of the schema.
    pub(crate) fn defaulted(&self, object: &Value) -> Value {
        apply_defaults(&self.schema, object)
    }

    /// Everything that is wrong with an object, or with a change of `old` to it, sorted.
    pub(crate) fn refusals(&self, object: &Value, old: Option<&Value>) -> Vec<Refusal> {
        let object = self.defaulted(object);
        let old = old.map(|old| self.defaulted(old));
        let mut refusals = structure::refusals(&self.schema, &object);
        // The API server does not run rules over what is not of the right shape.
        if refusals.iter().any(|refusal| structure::is_of_shape(&refusal.message)) {
            return refusals;
        }
        let compiled = if old.is_some() { &self.change } else { &self.creation };
        if let Err(errors) = self.validator.validate_compiled(compiled, &object, old.as_ref()) {
            for error in errors.into_vec() {
                assert_eq!(
                    error.kind,
                    ErrorKind::ValidationFailure,
                    "a rule that cannot be judged: {error:?}"
                );
                refusals.push(Refusal { path: error.field_path, message: error.message });
            }
        }
        refusals.sort();
        refusals
    }

    /// The sentences of all rules.
    pub(crate) fn messages(&self) -> Vec<String> {
        let mut messages = Vec::new();
        collect(&self.schema, &mut messages);
        messages
    }
}

fn collect(schema: &Value, messages: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for rule in fields.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten()
            {
                messages.push(rule["message"].as_str().expect("every rule has its sentence").to_owned());
            }
            fields.values().for_each(|value| collect(value, messages));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, messages)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn make_old_optional(schema: &mut Value, is_change: bool) {
    match schema {
        Value::Object(fields) => {
            if fields.remove("optionalOldSelf") == Some(Value::Bool(true)) {
                let old = if is_change { "optional.of(oldSelf)" } else { "optional.none()" };
                let rule = fields["rule"].as_str().expect("a rule").replace("oldSelf", old);
                fields.insert("rule".to_owned(), rule.into());
            }
            fields.values_mut().for_each(|value| make_old_optional(value, is_change));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| make_old_optional(value, is_change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
