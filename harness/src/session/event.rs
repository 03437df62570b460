//! The event log: everything that a watcher of a session can see.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event. Stored and sent in the same JSON form: `{"type": "...", ...}`, camelCase, ids as text.
///
/// Events hold what a person may read; no secret and no words handed on from another chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// The session exists.
    #[serde(rename = "session.created")]
    SessionCreated {},
    /// Its description changed; the fields that changed, with their new values.
    #[serde(rename = "session.changed")]
    SessionChanged {
        /// New mode.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        mode: Option<String>,
        /// Asleep or not.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        suspended: Option<bool>,
        /// Vouched for or not.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        trusted: Option<bool>,
    },
    /// Somebody's words arrived.
    #[serde(rename = "message.created")]
    MessageCreated {
        /// Message number.
        number: i64,
        /// Whose words.
        origin: String,
        /// The words.
        text: String,
        /// The run they start or steer.
        run: String,
        /// Whether they steer an open run.
        steers: bool,
    },
    /// A run is at work.
    #[serde(rename = "run.started")]
    RunStarted {
        /// Run id.
        run: String,
    },
    /// The harness came back and goes on with a run.
    #[serde(rename = "run.resumed")]
    RunResumed {
        /// Run id.
        run: String,
    },
    /// A piece of the model's answer.
    #[serde(rename = "message.delta")]
    MessageDelta {
        /// Run id.
        run: String,
        /// The piece.
        text: String,
    },
    /// The model's answer of this turn is complete; this text stands, whatever deltas said.
    #[serde(rename = "message.completed")]
    MessageCompleted {
        /// Run id.
        run: String,
        /// All of it.
        text: String,
    },
    /// A turn failed or is tried again; its deltas do not count.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// Run id.
        run: String,
        /// Stable word.
        code: String,
        /// One sentence.
        message: String,
        /// Whether it is tried again.
        retrying: bool,
    },
    /// The model called a tool.
    #[serde(rename = "tool.call")]
    ToolCall {
        /// Run id.
        run: String,
        /// Call id.
        call: String,
        /// Tool name.
        tool: String,
        /// The arguments as they came.
        arguments: String,
    },
    /// Output of a command while it runs.
    #[serde(rename = "tool.output")]
    ToolOutput {
        /// Run id.
        run: String,
        /// Call id.
        call: String,
        /// `stdout` or `stderr`.
        stream: String,
        /// The piece, bytes that are not UTF-8 replaced.
        text: String,
    },
    /// The answer to a call.
    #[serde(rename = "tool.result")]
    ToolResult {
        /// Run id.
        run: String,
        /// Call id.
        call: String,
        /// Tool name.
        tool: String,
        /// What the model reads.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// A question is put to the person.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        /// Run id.
        run: String,
        /// Call id.
        call: String,
        /// Approval id.
        approval: String,
        /// Tool name.
        tool: String,
        /// The exact arguments.
        arguments: String,
        /// What is asked.
        question: Value,
        /// RFC 3339.
        expires_at: Timestamp,
    },
    /// A question has its answer, or no longer needs one.
    #[serde(rename = "approval.resolved")]
    ApprovalResolved {
        /// Approval id.
        approval: String,
        /// Call id.
        call: String,
        /// `allowed`, `denied` or `expired`.
        state: String,
    },
    /// Tokens used by one model call.
    #[serde(rename = "usage")]
    Usage {
        /// Run id.
        run: String,
        /// Tokens sent.
        input_tokens: u64,
        /// Tokens received.
        output_tokens: u64,
    },
    /// A run ended.
    #[serde(rename = "run.finished")]
    RunFinished {
        /// Run id.
        run: String,
        /// `finished`, `interrupted` or `failed`.
        state: String,
        /// Of a finished run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        outcome: Option<String>,
        /// Of a failed run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        code: Option<String>,
        /// Of a failed run.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message: Option<String>,
    },
}

/// An [`Event`] with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Rising by one within the session, from 1.
    pub id: i64,
    /// When it was stored.
    pub at: Timestamp,
    /// The word for it, for example `message.delta`.
    pub kind: String,
    /// The event.
    pub event: Event,
}

impl Event {
    /// The word for it, for example `message.delta`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SessionCreated {} => "session.created",
            Self::SessionChanged { .. } => "session.changed",
            Self::MessageCreated { .. } => "message.created",
            Self::RunStarted { .. } => "run.started",
            Self::RunResumed { .. } => "run.resumed",
            Self::MessageDelta { .. } => "message.delta",
            Self::MessageCompleted { .. } => "message.completed",
            Self::TurnFailed { .. } => "turn.failed",
            Self::ToolCall { .. } => "tool.call",
            Self::ToolOutput { .. } => "tool.output",
            Self::ToolResult { .. } => "tool.result",
            Self::ApprovalRequested { .. } => "approval.requested",
            Self::ApprovalResolved { .. } => "approval.resolved",
            Self::Usage { .. } => "usage",
            Self::RunFinished { .. } => "run.finished",
        }
    }
}
