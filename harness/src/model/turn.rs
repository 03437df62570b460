//! One answer of the model, assembled from the pieces of its stream.
//!
//! A piece that breaks the form of the stream fails the turn. A tool call that is broken in itself is kept with its
//! [`CallFault`], so that it can be answered with an error; it is never completed, corrected or guessed. Faults that put
//! the whole list in doubt (a gap, too many, a turn cut at the length limit) are on every call of the turn.

use std::collections::BTreeMap;

use serde_json::Value;

use super::wire::{CallDelta, Chunk, ChunkDelta};

/// Tool calls that one turn may hold. A turn with more executes none of them.
pub const MAX_CALLS: usize = 32;
/// Bytes of text, and of arguments of one call, that one turn may hold: 2 MiB (a Write of 1 MiB, escaped).
pub const MAX_TURN_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a call id that is shown back to the provider.
const MAX_ID_BYTES: usize = 128;

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What the model said, possibly empty.
    pub text: String,
    /// At most [`MAX_CALLS`], in the order of their index.
    pub calls: Vec<TurnCall>,
    /// How it ended.
    pub end: TurnEnd,
    /// Tokens as the provider counted them, or an estimate.
    pub usage: Usage,
}

/// How a turn ended. A turn that ended otherwise is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model said all it wanted (`stop`, `tool_calls`).
    Complete,
    /// The length limit cut it (`length`): its text is a fragment and none of its calls is executed.
    Cut,
}

/// One tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnCall {
    /// The provider's id, or one made here when there was no usable one. Unique within the turn.
    pub id: String,
    /// As it came, whatever it is; empty when there was none.
    pub name: String,
    /// The text of the arguments exactly as it came.
    pub arguments: String,
    /// Why it must not be executed, when its form alone says so.
    pub fault: Option<CallFault>,
}

/// What is wrong with the form of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallFault {
    /// No `id` in any piece.
    #[error("the call has no id")]
    MissingId,
    /// The id is empty, longer than 128 bytes or not printable ASCII.
    #[error("the call's id is not usable")]
    BadId,
    /// Another call of the same turn has this id, so a result could not say which one it answers.
    #[error("two calls of one turn have the same id; neither was executed")]
    DuplicateId,
    /// Pieces of one call carry different ids.
    #[error("the pieces of the call carry different ids")]
    ConflictingId,
    /// No `name` in any piece.
    #[error("the call has no tool name")]
    MissingName,
    /// Pieces of one call carry different names.
    #[error("the pieces of the call carry different tool names")]
    ConflictingName,
    /// A `type` other than `function`.
    #[error("the call is not a function call")]
    NotAFunction,
    /// `arguments` came as an array, a number or an object instead of text.
    #[error("the arguments came as JSON, not as text")]
    ArgumentsNotText,
    /// Indices of the turn's calls are not 0, 1, 2, …
    #[error("a call of this turn is missing from the stream; none was executed")]
    Gap,
    /// More than [`MAX_CALLS`] in one turn.
    #[error("the turn has more than {MAX_CALLS} calls; none was executed")]
    TooMany,
    /// The turn was cut at the length limit.
    #[error("the turn was cut at its length limit; none of its calls was executed")]
    Cut,
}

/// Tokens of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// The provider said nothing, so these are bytes divided by four.
    pub estimated: bool,
}

/// Why a stream gave no turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// A piece is not JSON of the right form.
    #[error("the model's stream is malformed: {0}")]
    Malformed(&'static str),
    /// The provider reported an error inside the stream.
    #[error("the provider reported an error in the stream: {0}")]
    Provider(String),
    /// The stream ended before its end was announced.
    #[error("the model's stream ended early")]
    MissingEnd,
    /// The stream held no text and no call.
    #[error("the model's answer is empty")]
    Empty,
    /// `content_filter`.
    #[error("the provider withheld the answer")]
    Filtered,
    /// A finish reason that is not one of the known ones.
    #[error("the model's stream ended for an unknown reason")]
    UnknownFinish,
    /// More than [`MAX_TURN_BYTES`].
    #[error("the model's answer is longer than {MAX_TURN_BYTES} bytes")]
    TooLong,
}

#[derive(Debug, Default)]
struct Pieces {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    fault: Option<CallFault>,
}

/// Takes the stream's events one by one.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    text: String,
    calls: BTreeMap<u64, Pieces>,
    too_many: bool,
    finish: Option<String>,
    usage: Option<Usage>,
}

impl Assembly {
    /// Takes one `data` event; the text it adds is returned for those who watch.
    pub(crate) fn push(&mut self, data: &str) -> Result<Option<String>, TurnError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| TurnError::Malformed("not a chunk"))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(TurnError::Provider(error_text(&error)));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(Usage {
                input_tokens: usage.prompt_tokens,
                output_tokens: usage.completion_tokens,
                estimated: false,
            });
        }
        let mut choices = chunk.choices.unwrap_or_default();
        let Some(choice) = choices.pop() else { return Ok(None) };
        if !choices.is_empty() || choice.index != 0 {
            return Err(TurnError::Malformed("more than one choice"));
        }
        let added = match choice.delta {
            Some(delta) => self.take_delta(delta)?,
            None => None,
        };
        if let Some(reason) = choice.finish_reason {
            if self.finish.as_ref().is_some_and(|earlier| *earlier != reason) {
                return Err(TurnError::Malformed("two finish reasons"));
            }
            self.finish = Some(reason);
        }
        Ok(added)
    }

    fn take_delta(&mut self, delta: ChunkDelta) -> Result<Option<String>, TurnError> {
        if delta.function_call.is_some_and(|call| !call.is_null()) {
            return Err(TurnError::Malformed("a call in the form before tool_calls"));
        }
        for call in delta.tool_calls.unwrap_or_default() {
            if self.finish.is_some() {
                return Err(TurnError::Malformed("a call after the end"));
            }
            self.take_call(call)?;
        }
        let Some(text) = delta.content.or(delta.refusal).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        if self.text.len() + text.len() > MAX_TURN_BYTES {
            return Err(TurnError::TooLong);
        }
        self.text.push_str(&text);
        Ok(Some(text))
    }

    fn take_call(&mut self, delta: CallDelta) -> Result<(), TurnError> {
        if !self.calls.contains_key(&delta.index) && self.calls.len() >= MAX_CALLS {
            self.too_many = true;
            return Ok(());
        }
        let call = self.calls.entry(delta.index).or_default();
        if delta.kind.is_some_and(|kind| !kind.is_empty() && kind != "function") {
            call.fault.get_or_insert(CallFault::NotAFunction);
        }
        // Servers repeat the id and the name in later pieces, some as empty text: equal or empty is no news.
        take_once(&mut call.id, delta.id, &mut call.fault, CallFault::ConflictingId);
        let Some(function) = delta.function else { return Ok(()) };
        take_once(&mut call.name, function.name, &mut call.fault, CallFault::ConflictingName);
        match function.arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(piece)) => {
                if call.arguments.len() + piece.len() > MAX_TURN_BYTES {
                    return Err(TurnError::TooLong);
                }
                call.arguments.push_str(&piece);
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                call.fault.get_or_insert(CallFault::ArgumentsNotText);
            }
        }
        Ok(())
    }

    /// The turn, once the stream announced its end. `request_bytes` serves the estimate when no usage was told.
    pub(crate) fn finish(self, request_bytes: usize) -> Result<Turn, TurnError> {
        let end = match self.finish.as_deref() {
            None => return Err(TurnError::MissingEnd),
            Some("stop") => TurnEnd::Complete,
            Some("tool_calls") if self.calls.is_empty() => {
                return Err(TurnError::Malformed("calls announced, none sent"));
            }
            Some("tool_calls") => TurnEnd::Complete,
            Some("length") => TurnEnd::Cut,
            Some("content_filter") => return Err(TurnError::Filtered),
            Some(_) => return Err(TurnError::UnknownFinish),
        };
        if self.text.trim().is_empty() && self.calls.is_empty() && end == TurnEnd::Complete {
            return Err(TurnError::Empty);
        }
        let usage = self.usage.unwrap_or(Usage {
            input_tokens: estimate(request_bytes),
            output_tokens: estimate(
                self.text.len() + self.calls.values().map(|call| call.arguments.len()).sum::<usize>(),
            ),
            estimated: true,
        });
        Ok(Turn { text: self.text, calls: calls_of(self.calls, self.too_many, end), end, usage })
    }
}

fn take_once(
    have: &mut Option<String>,
    piece: Option<String>,
    fault: &mut Option<CallFault>,
    conflict: CallFault,
) {
    let Some(piece) = piece.filter(|piece| !piece.is_empty()) else { return };
    match have {
        None => *have = Some(piece),
        Some(earlier) if *earlier == piece => {}
        Some(_) => {
            fault.get_or_insert(conflict);
        }
    }
}

fn calls_of(pieces: BTreeMap<u64, Pieces>, too_many: bool, end: TurnEnd) -> Vec<TurnCall> {
    let has_gap = pieces.keys().zip(0u64..).any(|(index, expected)| *index != expected);
    let of_all = if too_many {
        Some(CallFault::TooMany)
    } else if end == TurnEnd::Cut {
        Some(CallFault::Cut)
    } else if has_gap {
        Some(CallFault::Gap)
    } else {
        None
    };
    let ids: Vec<Option<String>> = pieces.values().map(|call| call.id.clone()).collect();
    pieces
        .into_values()
        .enumerate()
        .map(|(position, call)| {
            let is_duplicate = call.id.is_some() && ids.iter().filter(|id| **id == call.id).count() > 1;
            let is_usable = call.id.as_ref().is_some_and(|id| is_plain_id(id)) && !is_duplicate;
            let fault = call.fault.or(match &call.id {
                None => Some(CallFault::MissingId),
                Some(_) if is_duplicate => Some(CallFault::DuplicateId),
                Some(_) if !is_usable => Some(CallFault::BadId),
                Some(_) => None,
            });
            let fault = of_all.or(fault).or(call.name.is_none().then_some(CallFault::MissingName));
            let id = match call.id {
                Some(id) if is_usable => id,
                Some(_) | None => free_id(position, &ids),
            };
            TurnCall { id, name: call.name.unwrap_or_default(), arguments: call.arguments, fault }
        })
        .collect()
}

fn free_id(position: usize, taken: &[Option<String>]) -> String {
    let mut id = format!("unnamed_{position}");
    while taken.iter().flatten().any(|other| *other == id) {
        id.push('_');
    }
    id
}

fn is_plain_id(id: &str) -> bool {
    id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic())
}

fn estimate(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// The message of an error object, at most 300 characters of it, without control characters.
pub(crate) fn error_text(error: &Value) -> String {
    let text = error
        .get("message")
        .and_then(Value::as_str)
        .or_else(|| error.as_str())
        .unwrap_or("an error without a message");
    text.chars().filter(|character| !character.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests;
