//! The model conversation, exactly as it must be continued.

use super::{Origin, RunId};

/// One entry of the model conversation, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Somebody's words, whole: the text of the message with this number.
    Words {
        /// [`super::Message::number`].
        message: i64,
        /// Whose.
        origin: Origin,
        /// The words.
        text: String,
    },
    /// One answer of the model.
    Assistant {
        /// Its text, empty if it only called tools.
        text: String,
        /// Its calls, in order, exactly as they came.
        calls: Vec<ToolCall>,
    },
    /// The answer to one call.
    ToolResult {
        /// [`ToolCall::id`].
        call: String,
        /// What the model reads.
        text: String,
        /// Whether the call failed.
        is_error: bool,
    },
    /// What the harness tells the model of its own accord, for example that a command was lost.
    Note {
        /// The words.
        text: String,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's name for it, unique in its turn.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// The arguments, byte for byte.
    pub arguments: String,
}

/// An [`Item`] with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Rising within the session, from 1.
    pub number: i64,
    /// The run in which it was added.
    pub run: RunId,
    /// The entry.
    pub item: Item,
}
