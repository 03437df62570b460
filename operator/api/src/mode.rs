//! How much a chat may do unasked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a chat may do without a question, from least to most.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads; every change is refused.
    ReadOnly,
    /// Asks before every change.
    AskFirst,
    /// Asks about real risk only.
    #[default]
    Auto,
    /// Asks for critical steps, for counts, and for changes once other people's words are in the chat.
    FullTrust,
}
