//! A conversation and its execution environment.

mod status;
mod workspace;

use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{WholeSeconds, within};
use crate::mode::Mode;
use crate::name::{ObjectName, UserName};
use crate::rule::kept;
use crate::variable::Variable;

pub use status::{
    EnvironmentKind, EnvironmentRef, Executor, MAX_EPOCH, Operation, OperationStep, OperationType,
    SessionStatus, VolumeClaim,
};
pub use workspace::{ClaimSource, EmptySource, GitSource, Retain, Source, Storage, WorkspaceSpec};

/// What the writer of a Session asks for.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "Session",
    plural = "sessions",
    shortname = "ses",
    category = "mooring",
    namespaced,
    status = "SessionStatus",
    derive = "PartialEq",
    doc = "One agent conversation and its execution environment. Written by its owner, reconciled by the operator.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether the environment is bound and seeded"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why it is, or is not"
    ),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner", priority = 1),
    printcolumn(name = "Class", type_ = "string", json_path = ".status.executor.class", priority = 1),
    printcolumn(name = "Pod", type_ = "string", json_path = ".status.executor.pod", priority = 1),
    printcolumn(name = "Epoch", type_ = "integer", json_path = ".status.epoch"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("self.owner == oldSelf.owner").message("owner never changes").field_path(".owner"),
    validation = Rule::new(kept!("profile")).message("profile never changes: it is fixed when the Session is made"),
    validation = Rule::new(kept!("workspace", "source")).message("workspace.source never changes"),
    validation = Rule::new(kept!("workspace", "storage")).message("workspace.storage never changes"),
    validation = Rule::new(
        "!has(self.profile) || self.profile != 'no-fs' || !has(self.workspace) || !(has(self.workspace.source) || has(self.workspace.trusted) || has(self.workspace.storage))"
    ).message("a Session with profile no-fs has no workspace: leave it out or empty").field_path(".workspace"),
)]
#[serde(rename_all = "camelCase")]
pub struct SessionSpec {
    /// Who this Session belongs to: the one whose words and decisions count. A Kubernetes user name. Never changes.
    /// Left out, it is whoever makes the Session. Another one takes the verb `assign-owner`.
    pub owner: UserName,
    /// Users who may also write messages, at most 64. Their words are never taken for the owner's.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub participants: Vec<UserName>,
    /// Which tools there are: `default`, or `no-fs` without files and commands and so without pod and volume. Left out, it
    /// is `default`. Never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// How much the agent does without asking: `readOnly`, `askFirst`, `auto` or `fullTrust`.
    /// Not built yet: it has no effect.
    #[serde(default)]
    pub mode: Mode,
    /// What a question does to the run: `wait` for the owner, or `deny` at once. Left out, it waits, unless a service
    /// account owns the Session. Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_question: Option<OnQuestion>,
    /// The ExecutorClass that its pod is made from. Left out, it is the one named `default` in this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor_class: Option<ObjectName>,
    /// The files it works on. Absent or empty for profile `no-fs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceSpec>,
    /// Variables that its commands start with, at most 64. The class's come first; one of the same name here replaces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub variables: Vec<Variable>,
    /// Bounds of each of its runs.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
    /// Whether the owner wants it asleep: no pod, the volume stays. What is observed is in the conditions.
    #[serde(default)]
    pub suspended: bool,
    /// When it falls asleep, and when it ends, by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
}

impl SessionSpec {
    /// A Session of this owner with everything else left to its default.
    pub fn of(owner: UserName) -> Self {
        Self {
            owner,
            participants: Vec::new(),
            profile: None,
            mode: Mode::default(),
            on_question: None,
            executor_class: None,
            workspace: None,
            variables: Vec::new(),
            limits: None,
            suspended: false,
            lifecycle: None,
        }
    }
}

/// Which tools a Session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// All tools.
    #[default]
    #[serde(rename = "default")]
    Default,
    /// No files, no commands: an environment of kind `none`.
    #[serde(rename = "no-fs")]
    NoFs,
}

/// What a question does to a run.
/// Not built yet: it has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnQuestion {
    /// The run waits for the owner.
    Wait,
    /// The answer is no.
    Deny,
}

/// Bounds of one run of the agent.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLimits {
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
    /// Failures in a row, 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub failures: Option<i32>,
    /// Time from the start of the run, waiting for the person included, 1s to 168h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = within("1s", "168h")))]
    pub wall_time: Option<WholeSeconds>,
}

/// When a Session falls asleep and ends by itself.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// How long without activity until it sleeps, 1m to 8760h. Left out, it never does by itself.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = within("1m", "8760h")))]
    pub idle_timeout: Option<WholeSeconds>,
    /// How long it may sleep until it ends for good, 0s to 8760h. Left out, it sleeps as long as it is kept.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = within("0s", "8760h")))]
    pub ttl_after_finished: Option<WholeSeconds>,
    /// How long a start may take until it is given up with its reason, 10s to 24h.
    #[serde(default = "Lifecycle::default_start_deadline")]
    #[schemars(extend("x-kubernetes-validations" = within("10s", "24h")))]
    pub start_deadline: WholeSeconds,
}

impl Lifecycle {
    fn default_start_deadline() -> WholeSeconds {
        WholeSeconds::from_minutes(5)
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self { idle_timeout: None, ttl_after_finished: None, start_deadline: Self::default_start_deadline() }
    }
}
