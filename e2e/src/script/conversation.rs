//! The conversation as a chat completions request carries it, checked as a provider would check it.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

/// The messages and the tools of one request.
#[derive(Clone, Debug, Deserialize)]
pub struct Conversation {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// Tools offered, as sent.
    #[serde(default)]
    pub tools: Vec<Value>,
}

/// One message.
#[derive(Clone, Debug, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// A string, a list of parts, or nothing.
    #[serde(default)]
    pub content: Value,
    /// Calls of an assistant message.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Which call a tool message answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
}

/// Roles of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the product.
    System,
    /// The same, by its newer name.
    Developer,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// A call as an assistant message repeats it.
#[derive(Clone, Debug, Deserialize)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// What is called.
    pub function: CalledFunction,
}

/// Name and arguments of a call.
#[derive(Clone, Debug, Deserialize)]
pub struct CalledFunction {
    /// The tool.
    pub name: String,
    /// The text of its arguments.
    #[serde(default)]
    pub arguments: String,
}

impl Message {
    /// Its text, parts joined.
    pub fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
        }
    }
}

impl Conversation {
    /// What a provider answers 400 for: a call without its result, a result without its call, an id used twice.
    ///
    /// # Errors
    /// A sentence that names the id.
    pub fn check(&self) -> Result<(), String> {
        if self.messages.is_empty() {
            return Err("messages must not be empty".to_owned());
        }
        let mut open: HashSet<&str> = HashSet::new();
        for message in &self.messages {
            if message.role == Role::Tool {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                if !open.remove(id) {
                    return Err(format!("tool message answers `{id}`, which no call before it has"));
                }
                continue;
            }
            if let Some(id) = open.iter().next() {
                return Err(format!("tool call `{id}` must be answered before the next message"));
            }
            for call in message.tool_calls.iter().flatten() {
                if call.id.is_empty() || !open.insert(&call.id) {
                    return Err(format!("tool call id `{}` is empty or used twice", call.id));
                }
            }
        }
        match open.iter().next() {
            Some(id) => Err(format!("tool call `{id}` has no result")),
            None => Ok(()),
        }
    }

    /// The same without user messages that begin with `prefix`.
    #[must_use]
    pub fn without_notes(&self, prefix: &str) -> Self {
        let mut same = self.clone();
        same.messages.retain(|message| message.role != Role::User || !message.text().starts_with(prefix));
        same
    }

    /// The messages after the last one of a user.
    pub fn since_user(&self) -> &[Message] {
        let start =
            self.messages.iter().rposition(|message| message.role == Role::User).map_or(0, |at| at + 1);
        &self.messages[start..]
    }

    /// The last message of a user.
    pub fn last_user(&self) -> Option<&Message> {
        self.messages.iter().rev().find(|message| message.role == Role::User)
    }

    /// Assistant messages since the last user message.
    pub fn turn(&self) -> usize {
        self.since_user().iter().filter(|message| message.role == Role::Assistant).count()
    }

    /// The tool whose call has this id.
    pub fn tool_of(&self, id: &str) -> Option<&str> {
        self.messages
            .iter()
            .rev()
            .flat_map(|message| message.tool_calls.iter().flatten())
            .find(|call| call.id == id)
            .map(|call| call.function.name.as_str())
    }

    /// Whether a tool of this name is offered.
    pub fn offers(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool["function"]["name"] == name)
    }
}
