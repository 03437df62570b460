//! What is observed of a Task.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition;
use crate::session::EnvironmentRef;

/// What is observed of a Task.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// The workspace that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<TaskWorkspaceStatus>,
    /// The environment of its own pod, where its placement is `dedicated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRef>,
    /// The owner's messages that were handed on with it. The words themselves are in the harness's store alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_words: Option<OwnerWords>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// `WorkspaceReady`, `AwaitingApproval` and `Complete`, with reasons; docs/conditions.md lists them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::schema")]
    pub conditions: Vec<Condition>,
}

/// A workspace in its Session's environment.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskWorkspaceStatus {
    /// The workspace's id: 32 lower-case hexadecimal digits.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// The full commit it began from, where there is git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 40, max = 64))]
    pub base_commit: Option<String>,
}

/// Which messages of the owner were handed on, without their words.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerWords {
    /// How many messages, 0 to 40.
    #[schemars(range(min = 0, max = 40))]
    pub count: i32,
    /// HMAC-SHA256 over them under a key of the harness's store: 64 lower-case hexadecimal digits.
    #[schemars(length(min = 64, max = 64))]
    pub digest: String,
}

/// How a Task ended.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// What the helper says it did, at most 8,192 characters.
    #[serde(default)]
    #[schemars(length(max = 8192))]
    pub summary: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// What it changed, where it had files of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// How a Task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It says that it is done.
    Succeeded,
    /// It could not go on.
    Failed,
    /// A bound of it, or of its Session, was reached.
    LimitReached,
    /// A person or its parent stopped it.
    Stopped,
}

/// What a Task used.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Model calls.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub turns: i32,
    /// Tool calls.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub tool_calls: i32,
    /// Tokens in and out together.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub tokens: i64,
}

/// What a Task changed in files of its own.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// How many files differ from what it began with.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub files: i32,
    /// Whether they were brought into the parent's workspace.
    #[serde(default)]
    pub applied: bool,
}
