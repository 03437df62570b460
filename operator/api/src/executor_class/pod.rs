//! What a pod is given, and which nodes it may run on.

use std::collections::BTreeMap;

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{self, Quantity};
use crate::rule::rules;

/// What the container with the commands is given.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.cpu) || !has(self.limits.cpu) || quantity(string(self.requests.cpu)).compareTo(quantity(string(self.limits.cpu))) <= 0")
        .message("requests.cpu is at most limits.cpu").field_path(".requests"),
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.memory) || !has(self.limits.memory) || quantity(string(self.requests.memory)).compareTo(quantity(string(self.limits.memory))) <= 0")
        .message("requests.memory is at most limits.memory").field_path(".requests"),
    validation = Rule::new("!has(self.requests) || !has(self.limits) || !has(self.requests.ephemeral__dash__storage) || !has(self.limits.ephemeral__dash__storage) || quantity(string(self.requests.ephemeral__dash__storage)).compareTo(quantity(string(self.limits.ephemeral__dash__storage))) <= 0")
        .message("requests.ephemeral-storage is at most limits.ephemeral-storage").field_path(".requests"),
)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What the scheduler sets aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Amounts>,
    /// What it may use at most. A command over the memory ends with its whole container, under cgroup v1 by itself.
    /// The executor stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Amounts>,
}

/// Amounts by resource.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Amounts {
    /// Processor time, such as `500m` or `2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity::schema")]
    pub cpu: Option<Quantity>,
    /// Memory, such as `2Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity::schema")]
    pub memory: Option<Quantity>,
    /// Space on the node for logs and temporary files, such as `1Gi`.
    #[serde(default, rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity::schema")]
    pub ephemeral_storage: Option<Quantity>,
}

const LABELS: (&str, &str) = (
    "self.all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate(self[k]).hasValue())",
    "keys and values must be those of labels",
);

/// Labels that a node must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxProperties" = 32, "x-kubernetes-validations" = rules(&[LABELS])))]
pub struct NodeSelector(pub BTreeMap<String, LabelValue>);

/// The value of a label, at most 63 characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxLength" = 63))]
pub struct LabelValue(pub String);

const TAINT_KEY: (&str, &str) =
    ("!format.qualifiedName().validate(self).hasValue()", "must be the key of a taint");

/// A taint that is tolerated.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("has(self.key) || self.operator == 'Exists'")
        .message("without a key the operator is Exists, which tolerates every taint").field_path(".operator"),
    validation = Rule::new("!has(self.value) || self.operator == 'Equal'")
        .message("a value goes with operator Equal alone").field_path(".value"),
    validation = Rule::new("!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')")
        .message("tolerationSeconds goes with effect NoExecute alone").field_path(".tolerationSeconds"),
)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key, at most 317 characters; left out, every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317), extend("x-kubernetes-validations" = rules(&[TAINT_KEY])))]
    pub key: Option<String>,
    /// `Equal` compares the value, `Exists` does not.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The taint's value, at most 63 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// The taint's effect; left out, every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Taint>,
    /// How long a running pod stays on a node that gets the taint; left out, for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// The value is the same.
    #[default]
    Equal,
    /// The key is there.
    Exists,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Taint {
    /// They are not scheduled.
    NoSchedule,
    /// They are scheduled elsewhere where possible.
    PreferNoSchedule,
    /// They are evicted.
    NoExecute,
}
