//! A question to the owner about one exact tool call, and the answer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::WholeSeconds;
use crate::name::{ObjectName, UserName};
use crate::rule::kept;

/// How long an Approval without `expiresAt` can be answered, from its creation.
pub const DEFAULT_LIFE: WholeSeconds = WholeSeconds::from_minutes(60);

/// What is asked. All but the decision is fixed when it is made.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "mooring.dev",
    version = "v1alpha1",
    kind = "Approval",
    plural = "approvals",
    shortname = "appr",
    category = "mooring",
    namespaced,
    status = "ApprovalStatus",
    derive = "PartialEq",
    doc = "A question to the owner of a Session about one exact tool call. Asked by the harness, answered by the owner, once. Not built yet: it has no effect.",
    printcolumn(name = "Session", type_ = "string", json_path = ".spec.session"),
    printcolumn(name = "Tool", type_ = "string", json_path = ".spec.call.tool"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Answer", type_ = "string", json_path = ".spec.decision.answer"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner", priority = 1),
    printcolumn(name = "Expires", type_ = "date", json_path = ".spec.expiresAt", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(oldSelf.decision) || (has(self.decision) && self.decision == oldSelf.decision)")
        .message("a decision is set once: it neither changes nor goes").field_path(".decision"),
    validation = Rule::new("oldSelf.hasValue() || !has(self.decision)").optional_old_self(true)
        .message("an Approval is made undecided").field_path(".decision"),
    validation = Rule::new("self.owner == oldSelf.owner").message("owner never changes").field_path(".owner"),
    validation = Rule::new("self.session == oldSelf.session").message("session never changes").field_path(".session"),
    validation = Rule::new(kept!("task")).message("task never changes"),
    validation = Rule::new("self.call == oldSelf.call").message("call never changes: ask again").field_path(".call"),
    validation = Rule::new("self.because == oldSelf.because").message("because never changes").field_path(".because"),
    validation = Rule::new(kept!("offer")).message("offer never changes"),
    validation = Rule::new(kept!("expiresAt")).message("expiresAt never changes"),
)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSpec {
    /// Who may answer: the owner of the Session. A Kubernetes user name.
    pub owner: UserName,
    /// The Session that asks, in this namespace.
    pub session: ObjectName,
    /// The Task that asks; left out, the Session's own chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<ObjectName>,
    /// The exact call.
    pub call: ToolCall,
    /// Why it is asked.
    pub because: Because,
    /// The rule that may be kept with the answer; left out, none may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// Until when it can be answered; left out, 60 minutes from its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The owner's answer. Set once, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// One exact call of a tool.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The tool's name, at most 128 characters.
    #[schemars(length(min = 1, max = 128))]
    pub tool: String,
    /// SHA-256 over Session, run, call, environment, tool and arguments: 64 lower-case hexadecimal digits. The answer counts
    /// for this one call alone.
    #[schemars(length(min = 64, max = 64))]
    pub digest: String,
    /// The call as the owner reads it: whole, with everything that does not show written as an escape, at most 65,536
    /// characters.
    #[schemars(length(max = 65_536))]
    pub display: String,
    /// The folder it would run in, as its commands see it, at most 4,096 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub cwd: Option<String>,
}

/// Why a call is asked about.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Because {
    /// The kind of risk or the rule that asks, at most 64 characters.
    #[schemars(length(min = 1, max = 64))]
    pub kind: String,
    /// How bad it is if it goes wrong; left out where no risk asks but the mode does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<Harm>,
    /// Whether the harm cannot simply be undone.
    #[serde(default)]
    pub lasting: bool,
    /// The numbers of the owner's messages it rests on, at most 40.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 40), inner(range(min = 0)))]
    pub messages: Vec<i64>,
}

/// How bad it is if it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Harm {
    /// A nuisance.
    Moderate,
    /// A loss.
    Severe,
}

/// A rule that may be kept: one exact command.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The words of the command, 2 to 24 of at most 256 characters.
    #[schemars(length(min = 2, max = 24), inner(length(min = 1, max = 256)))]
    pub words: Vec<String>,
    /// Where the rule holds.
    pub folder: Folder,
    /// What the button says, at most 1,200 characters.
    #[schemars(length(min = 1, max = 1200))]
    pub label: String,
}

/// A folder of one work, wherever it is checked out.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Folder {
    /// What the work is: the repository's address, else the claim's UID, else the environment's id; at most 4,096
    /// characters.
    #[schemars(length(min = 1, max = 4096))]
    pub source: String,
    /// The folder within it, empty for its root, at most 4,096 characters.
    #[serde(default)]
    #[schemars(length(max = 4096))]
    pub path: String,
}

/// The owner's answer.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// `allow` runs this one call, `deny` refuses it.
    pub answer: Answer,
    /// Whether the offered rule is kept, so that this command is not asked about again in this folder. Without an offer,
    /// or with `deny`, nothing is kept.
    #[serde(default)]
    pub keep_rule: bool,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The call runs.
    Allow,
    /// It does not.
    Deny,
}

/// What has become of an Approval. Written by the harness.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStatus {
    /// Where it stands; left out, it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ApprovalState>,
    /// The run that used the answer, at most 128 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub run: Option<String>,
    /// When the answer was first seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Time>,
    /// When the answer was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_at: Option<Time>,
}

/// Where an Approval stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ApprovalState {
    /// It waits for the owner.
    #[default]
    Pending,
    /// It was answered in time.
    Answered,
    /// It was not. A later answer counts for nothing.
    Expired,
    /// The answer was used.
    Consumed,
}
