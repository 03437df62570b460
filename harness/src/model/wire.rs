//! The JSON of chat completions: what is sent, and the pieces that come back.
//!
//! Answers are read leniently in what does not matter (unknown fields are new features of providers) and strictly in what
//! does: a known field twice, or of another type, makes the chunk malformed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of the conversation as the provider sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum ChatMessage {
    /// Instructions of the product.
    System {
        /// Plain text.
        content: String,
    },
    /// Words of people, each marked with who said them.
    User {
        /// Plain text.
        content: String,
    },
    /// An earlier answer of the model.
    Assistant {
        /// Absent when the turn was calls alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// In the order of their index; each is answered by one `Tool` message.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<HistoryCall>,
    },
    /// The result of one call.
    Tool {
        /// Id of the call in the assistant message before.
        tool_call_id: String,
        /// Result or error text.
        content: String,
    },
}

/// A call of an earlier turn, in the shape every provider accepts: unique id, plain name, arguments that are an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HistoryCall {
    /// Unique within its turn.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type")]
    kind: &'static str,
    function: HistoryFunction,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct HistoryFunction {
    name: String,
    arguments: String,
}

impl HistoryCall {
    /// A call as it is shown to the model again. `arguments` is the text of a JSON object.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let function = HistoryFunction { name: name.into(), arguments: arguments.into() };
        Self { id: id.into(), kind: "function", function }
    }

    /// Bytes of the arguments' text.
    pub fn arguments_len(&self) -> usize {
        self.function.arguments.len()
    }

    /// The same call with a short object in place of its arguments, which says how long they were.
    #[must_use]
    pub fn without_arguments(&self) -> Self {
        let mark = format!("{{\"leftOut\":\"{} bytes, to save room\"}}", self.arguments_len());
        Self::new(self.id.clone(), self.function.name.clone(), mark)
    }
}

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDescription {
    /// `[A-Za-z0-9_-]`, 1..=64 bytes.
    pub name: String,
    /// What it does and what it answers.
    pub description: String,
    /// JSON Schema of the arguments: an object that allows no other properties.
    pub parameters: Value,
}

#[derive(Debug, Serialize)]
pub(crate) struct RequestBody<'a> {
    pub(crate) model: &'a str,
    pub(crate) messages: &'a [ChatMessage],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<RequestTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u32>,
    pub(crate) stream: bool,
    pub(crate) stream_options: StreamOptions,
}

#[derive(Debug, Serialize)]
pub(crate) struct RequestTool<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: &'a ToolDescription,
}

#[derive(Debug, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: bool,
}

/// One `data` event of the stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    #[serde(default)]
    pub(crate) choices: Option<Vec<ChunkChoice>>,
    #[serde(default)]
    pub(crate) usage: Option<WireUsage>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChunkChoice {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(default)]
    pub(crate) delta: Option<ChunkDelta>,
    #[serde(default)]
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ChunkDelta {
    #[serde(default)]
    pub(crate) content: Option<String>,
    #[serde(default)]
    pub(crate) refusal: Option<String>,
    #[serde(default)]
    pub(crate) tool_calls: Option<Vec<CallDelta>>,
    /// The form that came before `tool_calls`; never executed.
    #[serde(default)]
    pub(crate) function_call: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallDelta {
    pub(crate) index: u64,
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    pub(crate) function: Option<FunctionDelta>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FunctionDelta {
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// A piece of text in a sound stream; anything else is kept so that the call can be refused by name.
    #[serde(default)]
    pub(crate) arguments: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct WireUsage {
    #[serde(default)]
    pub(crate) prompt_tokens: u64,
    #[serde(default)]
    pub(crate) completion_tokens: u64,
}
