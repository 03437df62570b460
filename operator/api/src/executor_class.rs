//! What a platform team declares about environments. A closed set of fields: none of them reaches the machine a pod runs
//! on, and what the operator adds of its own is not here to be weakened.

mod egress;
mod limits;
mod pod;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition;
use crate::name::ObjectName;
use crate::quantity::{self, Quantity};
use crate::rule::rules;
use crate::variable::{PlainVariable, VariableName};

pub use egress::{AddressBlock, Egress, EgressRule, METADATA_ADDRESSES, PortRange, Protocol};
pub use limits::{ClassLimits, DEFAULT_MINIMUM_LANDLOCK, Shell};
pub use pod::{Amounts, LabelValue, NodeSelector, Resources, Taint, Toleration, TolerationOperator};

const IMAGE: (&str, &str) = (
    r"self.matches('^[a-z0-9]([a-z0-9._:/-]*[a-z0-9])?(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?$')",
    "must be an image by tag or by digest",
);

/// What executor pods of this class are made of, and what they may reach.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "ExecutorClass",
    plural = "executorclasses",
    shortname = "exc",
    category = "mooring",
    namespaced,
    status = "ExecutorClassStatus",
    derive = "PartialEq",
    doc = "What executor pods are made of: image, sizes, reach, warm pool. Written by a platform team; nothing in it reaches the host.",
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(
        name = "Warm",
        type_ = "integer",
        json_path = ".status.warm.ready",
        description = "Idle pods that are ready",
        priority = 1
    ),
    printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.warm.replicas", priority = 1),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether pods can be made from it"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(crates(kube_core = "::kube_core"))]
#[serde(rename_all = "camelCase")]
pub struct ExecutorClassSpec {
    /// The image of both containers, by tag or by digest, at most 512 characters. It holds `mooring-executor`, a shell, git
    /// and the tools its Sessions need.
    #[schemars(length(min = 1, max = 512), extend("x-kubernetes-validations" = rules(&[IMAGE])))]
    pub image: String,
    /// What the container with the commands is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// The RuntimeClass of its pods; left out, the cluster's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<ObjectName>,
    /// The volume of a Session that does not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<ClassStorage>,
    /// Labels that a node must have, at most 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// Taints of nodes that its pods tolerate, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// What commands may reach. Left out, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Egress>,
    /// Variables that every command starts with, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub variables: Vec<PlainVariable>,
    /// Names of variables that stay although they look like secrets, at most 64. Never the product's own or a provider's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub readmitted_names: Vec<VariableName>,
    /// Bounds of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ClassLimits>,
    /// The shell that reads command lines: `sh` or `bash`.
    #[serde(default)]
    pub shell: Shell,
    /// The lowest Landlock ABI of a kernel that its pods may run on, 1 to 32. Below 6 commands can signal each other.
    #[serde(default = "limits::default_minimum_landlock")]
    #[schemars(range(min = 1, max = 32))]
    pub minimum_landlock: i32,
    /// Pods that are kept ready in this namespace. Left out, none.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<WarmPool>,
}

impl ExecutorClassSpec {
    /// A class of this image with everything else left to its default.
    pub fn of(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            resources: None,
            runtime_class_name: None,
            storage: None,
            node_selector: None,
            tolerations: Vec::new(),
            egress: None,
            variables: Vec::new(),
            readmitted_names: Vec::new(),
            limits: None,
            shell: Shell::default(),
            minimum_landlock: DEFAULT_MINIMUM_LANDLOCK,
            warm: None,
        }
    }
}

/// The volume of a Session that does not say otherwise.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassStorage {
    /// How large it is, such as `10Gi`; left out, 10Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity::schema")]
    pub size: Option<Quantity>,
    /// The StorageClass; left out, the cluster's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<ObjectName>,
}

/// Pods that are kept ready before a Session asks.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarmPool {
    /// How many, 0 to 1,000.
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: i32,
    /// How many are created in one second at most, 1 to 100.
    #[serde(default = "WarmPool::default_refill")]
    #[schemars(range(min = 1, max = 100))]
    pub max_refill_per_second: i32,
}

impl WarmPool {
    fn default_refill() -> i32 {
        10
    }
}

/// What is observed of a class. Written by the operator.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorClassStatus {
    /// SHA-256 over everything that its pods are made of: 64 lower-case hexadecimal digits. A pod of another one is
    /// made anew while it is not bound, and never after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub digest: Option<String>,
    /// Its warm pool.
    /// Not built yet: nothing writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm: Option<WarmPoolStatus>,
    /// `Valid`, with reasons; docs/conditions.md lists them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// What is observed of a warm pool.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarmPoolStatus {
    /// Idle pods that can be claimed now.
    #[schemars(range(min = 0))]
    pub ready: i32,
    /// How many there should be.
    #[schemars(range(min = 0))]
    pub desired: i32,
}
