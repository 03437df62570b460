//! The stored conversation: what it asks for next, and how the model is shown it. Pure.

use std::collections::HashMap;

use crate::json::is_object;
use crate::model::{ChatMessage, HistoryCall};
use crate::session::{Item, Origin, RunId, StoredItem, ToolCall};

/// Results and arguments below this many bytes are never left out: nothing would be won.
const SMALL: usize = 400;

/// What a run needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Calls of the last turn that have no result yet, in order.
    Settle(Vec<ToolCall>),
    /// The model's word.
    Ask,
    /// Nothing: the model has given its answer.
    Finish,
}

/// The conversation is too long even with everything left out that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the conversation is longer than {budget} bytes even without its old results; start a new session")]
pub(super) struct TooLong {
    pub(super) budget: usize,
}

/// What `run` needs next.
pub(super) fn next(items: &[StoredItem], run: RunId) -> Next {
    let open = open_calls(items, run);
    if !open.is_empty() {
        return Next::Settle(open);
    }
    match items.last() {
        Some(StoredItem { run: of, item: Item::Assistant { calls, .. }, .. })
            if *of == run && calls.is_empty() =>
        {
            Next::Finish
        }
        Some(_) | None => Next::Ask,
    }
}

/// The calls of the run's last turn that have no result yet.
pub(super) fn open_calls(items: &[StoredItem], run: RunId) -> Vec<ToolCall> {
    let Some(at) = items.iter().rposition(|stored| matches!(stored.item, Item::Assistant { .. })) else {
        return Vec::new();
    };
    let (Some(StoredItem { run: of, item: Item::Assistant { calls, .. }, .. }), rest) =
        (items.get(at), items.get(at + 1..).unwrap_or_default())
    else {
        return Vec::new();
    };
    if *of != run {
        return Vec::new();
    }
    let has_result = |id: &str| {
        rest.iter().any(|stored| matches!(&stored.item, Item::ToolResult { call, .. } if call == id))
    };
    calls.iter().filter(|call| !has_result(&call.id)).cloned().collect()
}

/// Every call of the run so far, in order.
pub(super) fn calls_of(items: &[StoredItem], run: RunId) -> impl Iterator<Item = &ToolCall> {
    items.iter().filter(move |stored| stored.run == run).flat_map(|stored| match &stored.item {
        Item::Assistant { calls, .. } => calls.as_slice(),
        Item::Words { .. } | Item::ToolResult { .. } | Item::Note { .. } => &[],
    })
}

/// The conversation as the model is shown it, within `budget` bytes.
///
/// Everybody's words, the notes and the model's own text stay whole. When it is too long, results of tools are left out,
/// oldest first, then long arguments, oldest first; those of the last turn stay.
pub(super) fn messages(
    system: &str,
    items: &[StoredItem],
    budget: usize,
) -> Result<Vec<ChatMessage>, TooLong> {
    let mut messages = vec![ChatMessage::System { content: system.to_owned() }];
    let results: HashMap<&str, &str> = items
        .iter()
        .filter_map(|stored| match &stored.item {
            Item::ToolResult { call, text, .. } => Some((call.as_str(), text.as_str())),
            Item::Words { .. } | Item::Assistant { .. } | Item::Note { .. } => None,
        })
        .collect();
    for stored in items {
        match &stored.item {
            Item::Words { origin, text, .. } => push_user(&mut messages, &words(origin, text)),
            Item::Note { text } => {
                push_user(&mut messages, &format!("[Note of the product, not of a person] {text}"));
            }
            Item::Assistant { text, calls } => push_assistant(&mut messages, text, calls, &results),
            // Shown with the call that it answers.
            Item::ToolResult { .. } => {}
        }
    }
    leave_out(&mut messages, budget)?;
    Ok(messages)
}

fn words(origin: &Origin, text: &str) -> String {
    match origin {
        Origin::Owner => text.to_owned(),
        Origin::Participant { name } => {
            format!("[Words of another person, {}, who is not the owner]\n{text}", name.escape_debug())
        }
        Origin::Agent => format!("[Text of an assistant]\n{text}"),
        Origin::Template => format!("[Text of a template]\n{text}"),
        Origin::Account => format!("[Text of a service account]\n{text}"),
    }
}

/// Some models insist on taking turns: words that follow one another become one message.
fn push_user(messages: &mut Vec<ChatMessage>, text: &str) {
    if let Some(ChatMessage::User { content }) = messages.last_mut() {
        content.push_str("\n\n");
        content.push_str(text);
    } else {
        messages.push(ChatMessage::User { content: text.to_owned() });
    }
}

fn push_assistant(
    messages: &mut Vec<ChatMessage>,
    text: &str,
    calls: &[ToolCall],
    results: &HashMap<&str, &str>,
) {
    if text.is_empty() && calls.is_empty() {
        return;
    }
    messages.push(ChatMessage::Assistant {
        content: (!text.is_empty()).then(|| text.to_owned()),
        tool_calls: calls.iter().map(history_call).collect(),
    });
    for call in calls {
        let result = results.get(call.id.as_str()).copied().unwrap_or("No result of this call was recorded.");
        messages.push(ChatMessage::Tool { tool_call_id: call.id.clone(), content: result.to_owned() });
    }
}

/// A call in the shape that every provider takes back, however it came: what was broken is told by its result.
fn history_call(call: &ToolCall) -> HistoryCall {
    let is_name = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let name = if is_name(&call.name) { call.name.as_str() } else { "invalid_name" };
    let arguments = if is_object(&call.arguments) { call.arguments.as_str() } else { "{}" };
    HistoryCall::new(call.id.clone(), name, arguments)
}

fn leave_out(messages: &mut [ChatMessage], budget: usize) -> Result<(), TooLong> {
    let mut total: usize = messages.iter().map(size).sum();
    let last_turn = messages
        .iter()
        .rposition(|message| matches!(message, ChatMessage::Assistant { .. }))
        .unwrap_or(messages.len());
    let (old, _) = messages.split_at_mut(last_turn);
    for message in old.iter_mut() {
        if total <= budget {
            return Ok(());
        }
        if let ChatMessage::Tool { content, .. } = message
            && content.len() > SMALL
        {
            let mark = format!("[This result of {} bytes was left out to save room.]", content.len());
            total = total - content.len() + mark.len();
            *content = mark;
        }
    }
    for message in old {
        if total <= budget {
            return Ok(());
        }
        if let ChatMessage::Assistant { tool_calls, .. } = message {
            for call in tool_calls.iter_mut().filter(|call| call.arguments_len() > SMALL) {
                let before = call.arguments_len();
                *call = call.without_arguments();
                total = total - before + call.arguments_len();
            }
        }
    }
    if total <= budget { Ok(()) } else { Err(TooLong { budget }) }
}

fn size(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::System { content }
        | ChatMessage::User { content }
        | ChatMessage::Tool { content, .. } => content.len(),
        ChatMessage::Assistant { content, tool_calls } => {
            content.as_ref().map_or(0, String::len)
                + tool_calls.iter().map(HistoryCall::arguments_len).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
