//! The definitions of the resources as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;
use serde_json::Value;

use crate::{Approval, ExecutorClass, Preferences, Session, Task};

/// Every definition, by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![of::<Approval>(), of::<ExecutorClass>(), of::<Preferences>(), of::<Session>(), of::<Task>()]
}

/// The definition of one resource: as derived, without `nullable`. A null is no value here: the API server drops it, so
/// that `has()` in a rule means what a reader's `Option` means.
fn of<T: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(T::crd()).expect("a definition is JSON");
    take_nullable(&mut definition);
    serde_json::from_value(definition).expect("a definition without `nullable` is one still")
}

fn take_nullable(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
            }
            fields.values_mut().for_each(take_nullable);
        }
        Value::Array(items) => items.iter_mut().for_each(take_nullable),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
