//! What the API server and its clients ask of an API before they use it.

use axum::Json;
use serde_json::{Value, json};

fn version() -> Value {
    json!({"groupVersion": "tokens.mooring.dev/v1alpha1", "version": "v1alpha1"})
}

fn described() -> Value {
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": "tokens.mooring.dev",
        "versions": [version()], "preferredVersion": version(),
    })
}

/// `/apis`.
pub(super) async fn groups() -> Json<Value> {
    Json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [described()]}))
}

/// `/apis/tokens.mooring.dev`.
pub(super) async fn group() -> Json<Value> {
    Json(described())
}

/// `/apis/tokens.mooring.dev/v1alpha1`.
pub(super) async fn resources() -> Json<Value> {
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "tokens.mooring.dev/v1alpha1",
        "resources": [{
            "name": "exchanges", "singularName": "exchange", "namespaced": false, "kind": "Exchange",
            "verbs": ["create"],
        }],
    }))
}
