//! The bytes of an answer and when they go out.

use std::collections::VecDeque;
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use serde_json::{Value, json};

use crate::script::{Answer, AnsweredCall, Misbehaviour};

/// Characters of text in one delta.
const SAY_PIECE: usize = 24;

/// One thing that the connection does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Send these bytes.
    Send(Bytes),
    /// Send nothing for a while.
    Wait(Duration),
    /// Send these bytes again and again.
    Endlessly(Bytes),
    /// Break the connection in the middle of the body.
    Break,
}

/// Token counts by the rule of thumb of four characters a token; at least one each.
pub(super) fn usage(answer: &Answer, request: &Value) -> Value {
    let prompt = request["messages"].to_string().len() / 4 + 1;
    let said = answer.say.as_ref().map_or(0, String::len);
    let called: usize = answer.calls.iter().map(|call| call.tool.len() + call.arguments.len()).sum();
    let completion = (said + called) / 4 + 1;
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

/// The answer as a stream of server-sent events.
pub(super) fn streamed(
    answer: &Answer,
    misbehave: &Misbehaviour,
    model: &str,
    usage: Option<&Value>,
) -> VecDeque<Piece> {
    let mut pieces = VecDeque::new();
    pieces.extend(misbehave.first_byte_millis.map(|millis| Piece::Wait(Duration::from_millis(millis))));
    if misbehave.empty_stream {
        return pieces;
    }
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(model, &json!([{"index": 0, "delta": delta, "finish_reason": finish}]), None)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), None)];
    for text in answer.say.iter().flat_map(|say| text_pieces(say, SAY_PIECE)) {
        events.push(delta(json!({"content": text}), None));
    }
    for call in &answer.calls {
        events.extend(call_deltas(call).into_iter().map(|call| delta(json!({"tool_calls": [call]}), None)));
    }
    if !misbehave.no_finish {
        events.push(delta(json!({}), Some(&answer.finish)));
    }
    events.extend(usage.map(|usage| chunk(model, &json!([]), Some(usage))));
    if !misbehave.no_done {
        events.push("data: [DONE]\n\n".to_owned());
    }
    if let Some(message) = &misbehave.error_mid_stream {
        events.truncate(1);
        events.push(format!("data: {}\n\n", json!({"error": {"message": message, "code": 502}})));
    }
    if misbehave.endless {
        events.truncate(1);
    }
    let first = events.remove(0);
    pieces.extend(writes(&first, misbehave));
    pieces.extend(misbehave.stall_millis.map(|millis| Piece::Wait(Duration::from_millis(millis))));
    if misbehave.endless {
        pieces.push_back(Piece::Endlessly(delta(json!({"content": "and so on, "}), None).into()));
    }
    for event in events {
        pieces.extend(writes(&event, misbehave));
    }
    cut(pieces, misbehave.cut_after_bytes)
}

/// The answer as one JSON object.
pub(super) fn whole(
    answer: &Answer,
    misbehave: &Misbehaviour,
    model: &str,
    usage: &Value,
) -> VecDeque<Piece> {
    let mut pieces = VecDeque::new();
    pieces.extend(misbehave.first_byte_millis.map(|millis| Piece::Wait(Duration::from_millis(millis))));
    if misbehave.empty_stream {
        return pieces;
    }
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .map(|call| {
            let function = json!({"name": call.tool, "arguments": call.arguments});
            match &call.id {
                Some(id) => json!({"id": id, "type": "function", "function": function}),
                None => json!({"type": "function", "function": function}),
            }
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": answer.say});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": answer.finish});
    let body = json!({"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": model,
        "choices": [choice], "usage": usage});
    pieces.extend(writes(&body.to_string(), misbehave));
    cut(pieces, misbehave.cut_after_bytes)
}

/// Carries the pieces out; ends by itself when the client goes.
pub(super) fn play(pieces: VecDeque<Piece>) -> impl Stream<Item = std::io::Result<Bytes>> {
    futures::stream::unfold(pieces, |mut pieces| async move {
        loop {
            match pieces.pop_front()? {
                Piece::Send(bytes) => return Some((Ok(bytes), pieces)),
                Piece::Wait(time) => tokio::time::sleep(time).await,
                Piece::Endlessly(bytes) => {
                    pieces.push_front(Piece::Endlessly(bytes.clone()));
                    // A model is never faster than a thousand deltas a second; without a pause one client fills a core.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    return Some((Ok(bytes), pieces));
                }
                Piece::Break => {
                    return Some((Err(std::io::ErrorKind::ConnectionAborted.into()), VecDeque::new()));
                }
            }
        }
    })
}

fn chunk(model: &str, choices: &Value, usage: Option<&Value>) -> String {
    let mut chunk = json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0,
        "model": model, "choices": choices});
    if let Some(usage) = usage {
        chunk["usage"] = usage.clone();
    }
    format!("data: {chunk}\n\n")
}

fn call_deltas(call: &AnsweredCall) -> Vec<Value> {
    let mut first =
        json!({"index": call.index, "type": "function", "function": {"name": call.tool, "arguments": ""}});
    if let Some(id) = &call.id {
        first["id"] = json!(id);
    }
    let pieces = text_pieces(&call.arguments, call.piece_bytes);
    let rest = pieces.into_iter().map(|piece| json!({"index": call.index, "function": {"arguments": piece}}));
    std::iter::once(first).chain(rest).collect()
}

/// Cuts `text` into pieces of at least one character and, that apart, at most `bytes` bytes.
fn text_pieces(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let fits =
            rest.char_indices().map(|(at, char)| at + char.len_utf8()).take_while(|end| *end <= bytes).last();
        let end = fits.unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn writes(text: &str, misbehave: &Misbehaviour) -> Vec<Piece> {
    let size = misbehave.write_bytes.unwrap_or(text.len().max(1));
    let apart = misbehave.write_bytes.is_some();
    text.as_bytes()
        .chunks(size)
        .flat_map(|bytes| {
            // The pause makes the server flush, so that the split reaches the client.
            let pause = apart.then_some(Piece::Wait(Duration::from_micros(200)));
            std::iter::once(Piece::Send(Bytes::copy_from_slice(bytes))).chain(pause)
        })
        .collect()
}

fn cut(pieces: VecDeque<Piece>, after: Option<usize>) -> VecDeque<Piece> {
    let Some(mut left) = after else { return pieces };
    let mut kept = VecDeque::new();
    for piece in pieces {
        if let Piece::Send(bytes) = &piece
            && bytes.len() >= left
        {
            kept.push_back(Piece::Send(bytes.slice(..left)));
            break;
        }
        if let Piece::Send(bytes) = &piece {
            left -= bytes.len();
        }
        kept.push_back(piece);
    }
    // The bytes before must have left the process, or the break takes them along.
    kept.push_back(Piece::Wait(Duration::from_millis(20)));
    kept.push_back(Piece::Break);
    kept
}
