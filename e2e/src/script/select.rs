//! Which step answers a conversation, and with what text.

use crate::digest;
use std::collections::BTreeMap;

use super::{Conversation, LastRole, Role, Script, ScriptedCall, Step, When};

/// A step with every variable filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Position of the step in the script, from 0.
    pub step: usize,
    /// Text, when there is any.
    pub say: Option<String>,
    /// Calls, repeated ones one by one.
    pub calls: Vec<AnsweredCall>,
    /// Finish reason as sent.
    pub finish: String,
}

/// One call as it goes onto the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredCall {
    /// Index as sent.
    pub index: usize,
    /// Id as sent; `None`: no id.
    pub id: Option<String>,
    /// Name as sent.
    pub tool: String,
    /// Text of the arguments.
    pub arguments: String,
    /// Bytes of arguments in one delta.
    pub piece_bytes: usize,
}

/// Why the script has no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No `when` holds.
    #[error("no step matches turn {turn} (last message: {last})")]
    NoStep {
        /// Assistant messages since the last user message.
        turn: usize,
        /// Beginning of the last message.
        last: String,
    },
    /// A text uses a variable that nothing sets.
    #[error("step {step}: variable `{name}` is not set")]
    Unset {
        /// Position of the step, from 1.
        step: usize,
        /// The variable.
        name: String,
    },
    /// No tool message has the text before the value, or the text after it does not follow.
    #[error("step {step}: nothing to capture for `{name}`")]
    NothingToCapture {
        /// Position of the step, from 1.
        step: usize,
        /// The variable.
        name: String,
    },
}

impl Script {
    /// The answer to `conversation`.
    ///
    /// # Errors
    /// [`SelectError::NoStep`]; [`SelectError::Unset`] and [`SelectError::NothingToCapture`] from the chosen step.
    pub fn answer(&self, conversation: &Conversation) -> Result<Answer, SelectError> {
        let conversation = &conversation.without_notes(&self.note_prefix);
        let chosen = self.steps.iter().position(|step| matches(&step.when, conversation));
        let Some(position) = chosen else {
            let last = conversation.messages.last().map(super::Message::text).unwrap_or_default();
            return Err(SelectError::NoStep {
                turn: conversation.turn(),
                last: last.chars().take(160).collect(),
            });
        };
        let step = &self.steps[position];
        let variables = self.variables(position, step, conversation)?;
        let fill = |text: &str| fill(text, &variables, position + 1);
        let mut calls = Vec::new();
        for call in &step.call {
            let arguments = match (&call.raw, &call.arguments) {
                (Some(raw), _) => fill(raw)?,
                (None, Some(value)) => fill_value(value, &variables, position + 1)?.to_string(),
                (None, None) => String::new(),
            };
            push_call(&mut calls, call, &arguments, conversation.turn());
        }
        let default_finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        Ok(Answer {
            step: position,
            say: step.say.as_deref().map(fill).transpose()?,
            finish: step.finish.clone().unwrap_or_else(|| default_finish.to_owned()),
            calls,
        })
    }

    fn variables(
        &self,
        position: usize,
        step: &Step,
        conversation: &Conversation,
    ) -> Result<BTreeMap<String, String>, SelectError> {
        let mut variables = self.set.clone();
        for capture in &step.capture {
            let value = conversation
                .messages
                .iter()
                .rev()
                .filter(|message| message.role == Role::Tool)
                .find_map(|message| between(&message.text(), &capture.after, &capture.until));
            let Some(value) = value else {
                return Err(SelectError::NothingToCapture { step: position + 1, name: capture.name.clone() });
            };
            variables.insert(capture.name.clone(), value);
        }
        Ok(variables)
    }
}

fn matches(when: &When, conversation: &Conversation) -> bool {
    let Some(last) = conversation.messages.last() else { return false };
    let text = last.text();
    let tools = || conversation.since_user().iter().filter(|message| message.role == Role::Tool);
    let seen = |wanted: &String| tools().any(|message| message.text().contains(wanted));
    let role = match last.role {
        Role::User => Some(LastRole::User),
        Role::Tool => Some(LastRole::Tool),
        Role::System | Role::Developer | Role::Assistant => None,
    };
    let answered = last.tool_call_id.as_deref().and_then(|id| conversation.tool_of(id));
    when.turn.is_none_or(|turn| turn == conversation.turn())
        && when.last.is_none_or(|wanted| role == Some(wanted))
        && when.contains.as_ref().is_none_or(|wanted| text.contains(wanted))
        && when.lacks.as_ref().is_none_or(|unwanted| !text.contains(unwanted))
        && when.user_contains.as_ref().is_none_or(|wanted| {
            conversation.last_user().is_some_and(|message| message.text().contains(wanted))
        })
        && when.seen.as_ref().is_none_or(seen)
        && when.unseen.as_ref().is_none_or(|unwanted| !seen(unwanted))
        && when.tool.as_deref().is_none_or(|tool| answered == Some(tool))
        && when.offered.as_deref().is_none_or(|tool| conversation.offers(tool))
}

fn push_call(calls: &mut Vec<AnsweredCall>, call: &ScriptedCall, arguments: &str, turn: usize) {
    let count = call.repeat.unwrap_or(1);
    for number in 0..count {
        let index = call.index.unwrap_or(calls.len());
        let id = match (&call.id, call.omit_id) {
            (_, true) => None,
            (Some(id), false) if count == 1 => Some(id.clone()),
            (Some(id), false) => Some(format!("{id}_{number}")),
            (None, false) => Some(format!("call_{turn}_{}_{}", calls.len(), digest(&call.tool, arguments))),
        };
        calls.push(AnsweredCall {
            index,
            id,
            tool: call.tool.clone(),
            piece_bytes: call.piece_bytes.unwrap_or(arguments.len().max(1)),
            arguments: arguments.to_owned(),
        });
    }
}

/// Eight digits that tell calls of different runs apart, the same for the same call.
fn digest(tool: &str, arguments: &str) -> String {
    digest::short([tool, "\0", arguments].concat().as_bytes())[..8].to_owned()
}

fn between(text: &str, after: &str, until: &str) -> Option<String> {
    let start = text.find(after)? + after.len();
    let rest = &text[start..];
    match rest.find(until) {
        Some(end) => Some(rest[..end].to_owned()),
        None if until == "\n" => Some(rest.to_owned()),
        None => None,
    }
}

/// Replaces each `{{name}}`. Braces that do not hold a plain name stay as they are.
fn fill(text: &str, variables: &BTreeMap<String, String>, step: usize) -> Result<String, SelectError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let inner = &rest[open + 2..];
        let name = inner.find("}}").map(|close| &inner[..close]).filter(|name| is_name(name));
        filled.push_str(&rest[..open]);
        if let Some(name) = name {
            let value =
                variables.get(name).ok_or_else(|| SelectError::Unset { step, name: name.to_owned() })?;
            filled.push_str(value);
            rest = &inner[name.len() + 2..];
        } else {
            filled.push_str("{{");
            rest = inner;
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn fill_value(
    value: &serde_json::Value,
    variables: &BTreeMap<String, String>,
    step: usize,
) -> Result<serde_json::Value, SelectError> {
    use serde_json::Value;
    Ok(match value {
        Value::String(text) => Value::String(fill(text, variables, step)?),
        Value::Array(items) => Value::Array(
            items.iter().map(|item| fill_value(item, variables, step)).collect::<Result<_, _>>()?,
        ),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, field)| Ok((name.clone(), fill_value(field, variables, step)?)))
                .collect::<Result<_, SelectError>>()?,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}
