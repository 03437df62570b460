//! The files a Session works on: where they come from, how far they are trusted, what they are kept on.

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::ObjectName;
use crate::quantity::{self, Quantity};
use crate::rule::rules;

/// The files a Session works on.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceSpec {
    /// What the workspace holds at first; left out, nothing. One of `empty`, `git` and `claim`. Never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Whether the owner trusts what is in it: its git configuration, its hooks, its words. Left out, no.
    /// Not built yet: it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// The volume it is kept on. Never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// What a workspace holds at first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(with = "SourceFields")]
pub enum Source {
    /// Nothing.
    Empty(EmptySource),
    /// A clone.
    Git(GitSource),
    /// A volume that is there already.
    Claim(ClaimSource),
}

/// [`Source`] as a structural schema has it: a field for each, of which one is set.
#[derive(KubeSchema, Serialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("(has(self.empty) ? 1 : 0) + (has(self.git) ? 1 : 0) + (has(self.claim) ? 1 : 0) == 1")
        .message("a source is one of empty, git and claim"),
)]
#[serde(rename_all = "camelCase")]
struct SourceFields {
    /// Nothing: an empty folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    empty: Option<EmptySource>,
    /// A clone of a git repository.
    /// Not built yet: a Session with it is never Ready, for the reason `SourceUnsupported`.
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<GitSource>,
    /// A volume claim that is there already, with what is on it. It is not deleted with the Session.
    /// Not built yet: a Session with it is never Ready, for the reason `SourceUnsupported`.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<ClaimSource>,
}

/// Nothing to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EmptySource {}

const ADDRESS: (&str, &str) = (
    r"self.matches('^(https|ssh)://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?/[!-~]+$')",
    "must be https:// or ssh:// with a host and a path, and no user name or password in it",
);
const REVISION: (&str, &str) = (
    r"self.matches('^[^-\\s][^\\s]*$')",
    "must be a branch, a tag or a commit, without blanks and not beginning with '-'",
);
const FILTER: (&str, &str) = (
    "self.matches('^(blob:none|blob:limit=[0-9]{1,12}[kmg]?|tree:[0-9]{1,6})$')",
    "must be blob:none, blob:limit=<size> or tree:<depth>",
);

/// A git repository to clone.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// The repository: `https://` or `ssh://` without user name or password, at most 2,048 characters.
    #[schemars(length(min = 1, max = 2048), extend("x-kubernetes-validations" = rules(&[ADDRESS])))]
    pub url: String,
    /// Branch, tag or full commit, at most 255 characters; left out, the repository's default branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), extend("x-kubernetes-validations" = rules(&[REVISION])))]
    pub revision: Option<String>,
    /// How many commits of history, 1 to 1,000,000; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub depth: Option<i32>,
    /// What a partial clone leaves out, as git spells it: `blob:none`, `blob:limit=<size>` or `tree:<depth>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-validations" = rules(&[FILTER])))]
    pub filter: Option<String>,
    /// A Secret with `username` and `password` that the Session's writer may get, and whose annotation
    /// `mooring.dev/git-host` is the host of `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret: Option<ObjectName>,
}

/// A volume that is there already.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// The name of the claim in this namespace; the Session's writer must be allowed to update it.
    pub name: ObjectName,
}

/// The volume a workspace is kept on.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// How large it is, such as `10Gi`; left out, as the class says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity::schema")]
    pub size: Option<Quantity>,
    /// The StorageClass; left out, as the class says, else the cluster's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<ObjectName>,
    /// What becomes of it when the Session ends: `Delete`, or `Retain`, which leaves the claim to whoever wants it.
    /// Left out, it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain: Option<Retain>,
}

/// What becomes of a volume at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Retain {
    /// The claim stays.
    Retain,
    /// The claim is deleted with the Session.
    #[default]
    Delete,
}
