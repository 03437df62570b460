//! What one person wants of every chat in a namespace.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::Folder;
use crate::condition;
use crate::name::{Uid, UserName};
use crate::rule::rules;

/// How many rules a person keeps at most.
pub const MOST_RULES: usize = 100;

/// What the person wants.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "Preferences",
    plural = "preferences",
    singular = "preferences",
    shortname = "prefs",
    category = "mooring",
    namespaced,
    status = "PreferencesStatus",
    derive = "PartialEq",
    selectable = ".spec.owner",
    doc = "What one person wants of every chat in this namespace. One for each person: of two, the older counts. Not built yet: it has no effect.",
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner"),
    printcolumn(
        name = "Effective",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Effective\")].status",
        description = "Whether these are the ones that count"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.owner == oldSelf.owner").message("owner never changes").field_path(".owner"),
)]
#[serde(rename_all = "camelCase")]
pub struct PreferencesSpec {
    /// Whose they are. A Kubernetes user name. Never changes.
    pub owner: UserName,
    /// The person's own words about where they work: hosts, remotes, buckets, what production is. Read by the reviewer alone.
    /// At most 2,000 characters.
    #[serde(default)]
    #[schemars(length(max = 2000))]
    pub environment_note: String,
    /// Tools by name: `ask` asks each time, `off` takes the tool away (in YAML `"off"`, which is a boolean otherwise). At
    /// most 256.
    #[serde(default, skip_serializing_if = "ToolSettings::is_empty")]
    pub tools: ToolSettings,
    /// Ids of rules to forget, at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 200),
        inner(length(min = 1, max = 64)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub forget: Vec<String>,
}

const TOOL_NAMES: (&str, &str) =
    ("self.all(name, name.size() > 0 && name.size() <= 128)", "the name of a tool has 1 to 128 characters");

/// What is to be done with tools, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxProperties" = 256, "x-kubernetes-validations" = rules(&[TOOL_NAMES])))]
pub struct ToolSettings(pub BTreeMap<String, ToolSetting>);

impl ToolSettings {
    /// Whether no tool is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What is to be done with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolSetting {
    /// Each call is asked about.
    Ask,
    /// There is no such tool.
    Off,
}

/// What is kept for the person. Written by the operator alone.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreferencesStatus {
    /// Commands that are not asked about again, at most 100. Each came from an answer that kept it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub rules: Vec<Rule>,
    /// `Effective`, with reasons; docs/conditions.md lists them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// One exact command that its owner chose never to be asked about again, in one folder.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// The rule's id, at most 64 characters.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The tool it is about, at most 128 characters.
    #[schemars(length(min = 1, max = 128))]
    pub tool: String,
    /// The words of the command, 2 to 24 of at most 256 characters.
    #[schemars(length(min = 2, max = 24), inner(length(min = 1, max = 256)))]
    pub words: Vec<String>,
    /// Where it holds.
    pub folder: Folder,
    /// When it was kept.
    pub created_at: Time,
    /// The UID of the Approval whose answer kept it.
    #[serde(rename = "approvalUID")]
    pub approval_uid: Uid,
    /// How often it let a command run.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub uses: i64,
    /// When it last did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Time>,
}
