//! What is observed of a Session. Written by the operator, but for the last activity, which is the harness's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition;
use crate::name::{ObjectName, Uid};

/// The highest epoch: the highest integer that every reader of JSON keeps exactly (RFC 8259, section 6).
pub const MAX_EPOCH: i64 = (1 << 53) - 1;

/// What is observed of a Session.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The environment, once it was bound for the first time. Compared exactly by everyone who uses it; never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRef>,
    /// How many executors were started for it: the executor refuses any other epoch. Written before the pod of that epoch
    /// is created; at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_EPOCH))]
    pub epoch: Option<i64>,
    /// The executor that is bound now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// The volume claim that holds the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<VolumeClaim>,
    /// The full commit that a git source was cloned at.
    /// Not built yet: nothing writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 40, max = 64))]
    pub source_commit: Option<String>,
    /// When the owner or the agent last did something here, to the minute. Written by the harness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Time>,
    /// Since when it sleeps for want of activity.
    /// Not built yet: nothing writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// The job of several steps that is under way, so that the next operator goes on where this one stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// `Ready`, `Suspended`, `Retired` and more, with reasons; docs/conditions.md lists them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// The name of an environment. All three parts are compared exactly.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentRef {
    /// What it is made of.
    pub kind: EnvironmentKind,
    /// For `kubernetes`, `<namespace>/<session>/<session UID>`; at most 4,096 characters.
    #[schemars(length(min = 1, max = 4096))]
    pub id: String,
    /// For `kubernetes`, 32 lower-case hexadecimal digits that were drawn when its volume was claimed.
    #[schemars(length(min = 1, max = 64))]
    pub revision: String,
}

/// What an environment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EnvironmentKind {
    /// A folder of the machine that the harness runs on.
    Local,
    /// A volume and a pod.
    Kubernetes,
    /// Nothing: no files, no commands.
    None,
}

/// A bound executor.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executor {
    /// The pod's name.
    pub pod: ObjectName,
    /// The pod's UID.
    #[serde(rename = "podUID")]
    pub pod_uid: Uid,
    /// The class it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ObjectName>,
    /// Where its service answers: IP address and port.
    #[schemars(length(min = 1, max = 64))]
    pub address: String,
    /// Drawn by this very process of the executor: 32 lower-case hexadecimal digits.
    #[serde(rename = "bootID")]
    #[schemars(length(min = 1, max = 64))]
    pub boot_id: String,
    /// Landlock ABI that confines its commands.
    #[schemars(range(min = 0))]
    pub landlock: i32,
    /// When the loss began that it took the place of; the first one, where those before it were lost within a minute. The next
    /// loss is followed by a pause that grows with this time, unless it lived for longer than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovering_since: Option<Time>,
}

/// The claim of a workspace's volume.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaim {
    /// The claim's name.
    pub name: ObjectName,
    /// The claim's UID: another claim of this name is another volume.
    pub uid: Uid,
}

/// A job of several steps, recorded before it begins.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// What it does and for which epoch, such as `replace-4`.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// What is being done.
    #[serde(rename = "type")]
    pub type_: OperationType,
    /// The step that is under way. `DeletePod` until nothing of before is left, then `Claim` until it is done.
    /// The others are not built yet: nothing writes them.
    pub step: OperationStep,
    /// When it began; of a `Replace`, when the losses did. Deadlines and pauses count from here.
    pub started_at: Time,
    /// The generation of the spec that it was begun for. One that was given up is begun anew for another one.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub generation: i64,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OperationType {
    /// The first executor over a new volume.
    Start,
    /// Another executor over the same volume, because the one before is lost.
    Replace,
    /// Another executor over the same volume, after sleep.
    Wake,
    /// The pod ends, the volume stays.
    Sleep,
    /// The pod ends for good; the volume goes with the Session.
    Retire,
}

/// A step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OperationStep {
    /// The volume claim is made.
    Claim,
    /// The Secret with the executor's key is made.
    Secret,
    /// The pod is made and started.
    Pod,
    /// The executor is reached and bound.
    Bind,
    /// The workspace is filled from its source.
    Seed,
    /// Commands are ended.
    Drain,
    /// Pod and Secret are deleted.
    DeletePod,
    /// The volume claim is deleted.
    DeleteClaim,
}
