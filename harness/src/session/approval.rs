//! Approvals: one question about one exact call, answered once.

use jiff::Timestamp;
use serde_json::Value;

use super::{ApprovalId, RunId, SessionId};

/// One question to the person about one exact tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Its name.
    pub id: ApprovalId,
    /// Session that asks.
    pub session: SessionId,
    /// Run that waits.
    pub run: RunId,
    /// [`super::ToolCall::id`].
    pub call: String,
    /// Tool that would run.
    pub tool: String,
    /// The exact arguments, byte for byte.
    pub arguments: String,
    /// SHA-256 of the exact call, 64 hexadecimal digits. The answer holds for this call alone.
    pub digest: String,
    /// What is asked, as authority worded it: a JSON object.
    pub question: Value,
    /// Where it stands.
    pub state: ApprovalState,
    /// When the question was put.
    pub created_at: Timestamp,
    /// From then on it can no longer be answered.
    pub expires_at: Timestamp,
    /// When it was answered, and by whom.
    pub decided: Option<(Timestamp, String)>,
}

/// A question to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewApproval {
    /// See [`Approval::run`].
    pub run: RunId,
    /// See [`Approval::call`].
    pub call: String,
    /// See [`Approval::tool`].
    pub tool: String,
    /// See [`Approval::arguments`].
    pub arguments: String,
    /// See [`Approval::digest`].
    pub digest: String,
    /// See [`Approval::question`].
    pub question: Value,
    /// See [`Approval::expires_at`].
    pub expires_at: Timestamp,
}

closed_text! {
    /// Where an approval stands. Only `Pending` can be answered, only `Allowed` can be consumed.
    ApprovalState {
        /// Not answered yet.
        Pending = "pending",
        /// Allowed, and not used yet.
        Allowed = "allowed",
        /// Denied.
        Denied = "denied",
        /// Too late: its time is over or its run has ended.
        Expired = "expired",
        /// Allowed, and used by its one call.
        Consumed = "consumed",
    }
}

closed_text! {
    /// What a person says to a question.
    Answer {
        /// Run this call.
        Allow = "allow",
        /// Do not.
        Deny = "deny",
    }
}
