//! Work handed on from a Session.

mod status;

use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{WholeSeconds, within};
use crate::mode::Mode;
use crate::name::{ObjectName, UserName};

pub use status::{Changes, Outcome, OwnerWords, TaskResult, TaskStatus, TaskWorkspaceStatus, Usage};

/// What is handed on. All of it is fixed when the Task is made.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "Task",
    plural = "tasks",
    shortname = "task",
    category = "mooring",
    namespaced,
    status = "TaskStatus",
    derive = "PartialEq",
    doc = "Work handed on from a Session to run on its own, with limits that only narrow. Not built yet: it has no effect.",
    printcolumn(name = "Session", type_ = "string", json_path = ".spec.sessionName"),
    printcolumn(name = "Delegation", type_ = "string", json_path = ".spec.delegation"),
    printcolumn(
        name = "Complete",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Complete\")].status",
        description = "Whether it has ended"
    ),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.result.outcome"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner", priority = 1),
    printcolumn(name = "Workspace", type_ = "string", json_path = ".spec.workspace", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self == oldSelf").message("a Task never changes: make another one"),
    validation = Rule::new("self.delegation != 'branch' || self.workspace == 'forceCopy'")
        .message("a branch works in a copy of its own: workspace is forceCopy").field_path(".workspace"),
    validation = Rule::new("self.access != 'readWrite' || self.workspace == 'forceCopy' || self.workspace == 'parent'")
        .message("what is written must have a place: access readWrite needs workspace forceCopy or parent").field_path(".workspace"),
    validation = Rule::new("self.delegation != 'background' || self.workspace != 'parent' || self.access != 'readWrite'")
        .message("background work outlives the turn: it does not write in the parent's workspace").field_path(".workspace"),
    validation = Rule::new("self.placement != 'dedicated' || self.workspace == 'forceCopy' || self.workspace == 'worktree'")
        .message("a pod of its own has a workspace of its own: placement dedicated needs workspace forceCopy or worktree").field_path(".placement"),
)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// Who it belongs to: the owner of its Session. A Kubernetes user name.
    pub owner: UserName,
    /// The Session it belongs to, in this namespace.
    pub session_name: ObjectName,
    /// What is to be done, in the words of the agent or of the person who made it, at most 32,768 characters. It grants
    /// nothing.
    #[schemars(length(min = 1, max = 32_768))]
    pub prompt: String,
    /// What kind of helper does it: `subagent`, `branch`, `member` of a team, or `background`.
    pub delegation: Delegation,
    /// Which files it has: a `worktree` or a `forceCopy` of its parent's, its `parent`'s own, or `none`.
    pub workspace: TaskWorkspace,
    /// Whether it may change them: `readOnly` or `readWrite`.
    pub access: Access,
    /// Where its commands run: `shared`, in its Session's pod, or `dedicated`, in one of its own.
    #[serde(default)]
    pub placement: Placement,
    /// How much it does without asking. Left out, as its Session; never more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The tools it is held to, at most 100 names of at most 128 characters. Left out, those of its delegation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 128)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub tool_scope: Vec<String>,
    /// Its bounds; each is no more than what its Session has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<TaskLimits>,
}

/// What kind of helper does a Task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delegation {
    /// A helper whose answer goes back into the turn.
    Subagent,
    /// One of several attempts at the same thing, each in its own copy.
    Branch,
    /// One of a team that shares its findings.
    Member,
    /// Work that outlives the turn.
    Background,
}

/// Which files a Task has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TaskWorkspace {
    /// A git worktree of a trusted tree.
    Worktree,
    /// A hardened copy, made without git.
    ForceCopy,
    /// The parent's own.
    Parent,
    /// None.
    None,
}

/// Whether a Task may change its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// Nothing that lasts.
    ReadOnly,
    /// Its workspace.
    ReadWrite,
}

/// Where a Task's commands run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// In the Session's pod.
    #[default]
    Shared,
    /// In a pod of its own.
    Dedicated,
}

/// Bounds of a Task.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskLimits {
    /// Model calls, 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub turns: Option<i32>,
    /// Tool calls, 1 to 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub tool_calls: Option<i32>,
    /// Tokens in and out together, 1 to 100,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub tokens: Option<i64>,
    /// Time from its creation until it is ended, 1s to 168h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = within("1s", "168h")))]
    pub deadline: Option<WholeSeconds>,
}
