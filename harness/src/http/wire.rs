//! Words and small shapes on the wire.

use serde_json::{Value, json};

use crate::session::{Approval, Message, Profile, Run, RunState, SessionState, origin_text, profile_text};

/// The word for a profile.
pub(crate) const fn profile(profile: Profile) -> &'static str {
    profile_text(profile)
}

/// The word for what a session is doing.
pub(crate) const fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Waiting => "waiting",
    }
}

/// A message.
pub(crate) fn message(message: &Message) -> Value {
    json!({
        "number": message.number,
        "origin": origin_text(&message.origin),
        "text": message.text,
        "run": message.run.to_string(),
        "steers": message.steers,
        "delivered": message.delivered,
        "createdAt": message.created_at.to_string(),
    })
}

/// A run.
pub(crate) fn run(run: &Run) -> Value {
    let (outcome, error) = match &run.state {
        RunState::Finished(outcome) => (Some(outcome.as_str()), None),
        RunState::Failed { code, message } => (None, Some(json!({ "code": code, "message": message }))),
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::Interrupted => (None, None),
    };
    json!({
        "id": run.id.to_string(),
        "session": run.session.to_string(),
        "message": run.message,
        "state": run.state.as_str(),
        "outcome": outcome,
        "error": error,
        "interruptRequested": run.interrupt_requested,
        "turns": run.counts.turns,
        "toolCalls": run.counts.tool_calls,
        "tokens": run.counts.tokens,
        "createdAt": run.created_at.to_string(),
        "startedAt": run.started_at.map(|time| time.to_string()),
        "finishedAt": run.finished_at.map(|time| time.to_string()),
    })
}

/// An approval: the call in full and what is asked about it.
pub(crate) fn approval(approval: &Approval) -> Value {
    json!({
        "id": approval.id.to_string(),
        "session": approval.session.to_string(),
        "run": approval.run.to_string(),
        "call": approval.call,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "digest": approval.digest,
        "question": approval.question,
        "state": approval.state.as_str(),
        "createdAt": approval.created_at.to_string(),
        "expiresAt": approval.expires_at.to_string(),
        "decidedAt": approval.decided.as_ref().map(|(time, _)| time.to_string()),
        "decidedBy": approval.decided.as_ref().map(|(_, by)| by),
    })
}
