//! What the scripted model says: a YAML file of ordered steps, matched against the conversation that a request carries.
//!
//! ```yaml
//! model: scripted                    # name in GET /v1/models; default `scripted`
//! note_prefix: "[Note"               # user messages that are no person's; default: what the harness writes
//! set: {branch: fix/sum}             # variables; `--set name=value` on the command line wins
//! steps:                             # the first whose `when` matches answers
//!   - name: look                      # for messages about the script; optional
//!     when: {turn: 0, last: user, contains: bug}
//!     say: I look first.
//!     call:
//!       - {tool: Grep, arguments: {pattern: "func Sum"}, piece_bytes: 7}
//!   - when: {last: tool, tool: Grep}
//!     capture: [{name: file, after: "found in ", until: ":"}]
//!     call: [{tool: Read, arguments: {path: "{{file}}"}}]
//!   - when: {turn: 2}
//!     say: Done.
//! ```
//!
//! A step is chosen from the request alone (`turn` counts the assistant messages since the last user message), so a
//! client that was restarted and asks again gets the same answer. The one thing remembered is how often a step has
//! answered with [`RefusedTimes`].
//!
//! Unknown fields are refused; every error names its line.

mod conversation;
mod parse;
mod select;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use conversation::{Conversation, Message, Role, ToolCall};
pub use parse::ScriptError;
pub use select::{Answer, AnsweredCall, SelectError};

/// Ordered steps and the variables they may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Name of the one model served.
    #[serde(default = "default_model")]
    pub model: String,
    /// User messages that begin like this are notes of the product, not a person's words: matching passes over them.
    #[serde(default = "default_note_prefix")]
    pub note_prefix: String,
    /// Variables for `{{name}}` in texts and arguments.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// The first step whose `when` matches answers a request.
    pub steps: Vec<Step>,
}

/// One answer of the model and when it is given.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Shown in errors and in `GET /requests`.
    pub name: Option<String>,
    /// Everything that must hold; absent: always.
    #[serde(default)]
    pub when: When,
    /// Variables taken from earlier tool results, for this step alone.
    #[serde(default)]
    pub capture: Vec<Capture>,
    /// Text of the answer.
    pub say: Option<String>,
    /// Tool calls of the answer.
    #[serde(default)]
    pub call: Vec<ScriptedCall>,
    /// Finish reason as sent; absent: `tool_calls` with calls, `stop` without.
    pub finish: Option<String>,
    /// What goes wrong on the wire.
    #[serde(default)]
    pub misbehave: Misbehaviour,
}

/// Conditions on a conversation; all given ones must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Assistant messages since the last user message, from 0.
    pub turn: Option<usize>,
    /// Role of the last message, `user` or `tool`.
    pub last: Option<LastRole>,
    /// Text within the last message.
    pub contains: Option<String>,
    /// Text that is not within the last message.
    pub lacks: Option<String>,
    /// Text within the last user message.
    pub user_contains: Option<String>,
    /// Text within any tool message since the last user message.
    pub seen: Option<String>,
    /// Text that no tool message since the last user message has.
    pub unseen: Option<String>,
    /// Tool whose result is the last message.
    pub tool: Option<String>,
    /// Tool that the request must offer.
    pub offered: Option<String>,
}

/// Whose message is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastRole {
    /// The person's.
    User,
    /// A tool's result.
    Tool,
}

/// Takes the text between `after` and `until` from the newest tool message that has `after`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Name of the variable.
    pub name: String,
    /// Text right before the value; not empty.
    pub after: String,
    /// Text right after it; absent: the end of the line.
    #[serde(default = "end_of_line")]
    pub until: String,
}

/// One tool call, or `repeat` of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Name of the function as sent.
    pub tool: String,
    /// Any JSON value, sent as its text; `null`, arrays and numbers included.
    #[serde(default, deserialize_with = "null_is_a_value")]
    pub arguments: Option<serde_json::Value>,
    /// The text of the arguments as sent, valid JSON or not; instead of `arguments`.
    pub raw: Option<String>,
    /// Id as sent; absent: `call_<turn>_<index>_<digest of the call>`.
    pub id: Option<String>,
    /// Send no id at all.
    #[serde(default)]
    pub omit_id: bool,
    /// Index as sent in the stream; absent: position in the answer.
    pub index: Option<usize>,
    /// Bytes of arguments in one delta, never within a character; absent: all in one.
    pub piece_bytes: Option<usize>,
    /// How many such calls, 1..=10,000; absent: one. Ids get a number when there are several.
    pub repeat: Option<usize>,
}

/// What goes wrong on the wire; nothing by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a script file, each on its own")]
pub struct Misbehaviour {
    /// Refuse the first requests of this step.
    pub status: Option<RefusedTimes>,
    /// 200 with a page of HTML instead of an answer.
    #[serde(default)]
    pub html: bool,
    /// A stream without a single byte.
    #[serde(default)]
    pub empty_stream: bool,
    /// No `data: [DONE]` at the end.
    #[serde(default)]
    pub no_done: bool,
    /// No chunk with a finish reason.
    #[serde(default)]
    pub no_finish: bool,
    /// Break the connection after this many bytes of the body.
    pub cut_after_bytes: Option<usize>,
    /// Send the body in writes of this many bytes, so that characters are split. 1 or more.
    pub write_bytes: Option<usize>,
    /// Milliseconds before the first byte of the body.
    pub first_byte_millis: Option<u64>,
    /// Milliseconds of silence after the first chunk.
    pub stall_millis: Option<u64>,
    /// Text deltas without end, until the client goes.
    #[serde(default)]
    pub endless: bool,
    /// An error object in the stream, after the first chunk, instead of the rest.
    pub error_mid_stream: Option<String>,
}

/// `times` refusals with `code` before the step answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedTimes {
    /// HTTP status, 400..=599.
    pub code: u16,
    /// Requests refused.
    pub times: usize,
    /// Seconds in `Retry-After`; absent: no such header.
    pub retry_after_seconds: Option<u64>,
}

impl Script {
    /// A script of these steps, for a model named `scripted`.
    pub fn of(steps: Vec<Step>) -> Self {
        Self { model: default_model(), note_prefix: default_note_prefix(), set: BTreeMap::new(), steps }
    }
}

impl ScriptedCall {
    /// A call of `tool` whose arguments are still to be given.
    pub fn of(tool: &str) -> Self {
        Self { tool: tool.to_owned(), ..Self::default() }
    }
}

fn null_is_a_value<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(value).map(Some)
}

fn default_model() -> String {
    "scripted".to_owned()
}

fn default_note_prefix() -> String {
    "[Note of the product".to_owned()
}

fn end_of_line() -> String {
    "\n".to_owned()
}

#[cfg(test)]
mod tests;
