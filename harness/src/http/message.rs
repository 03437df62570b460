//! A person's words: say, steer, interrupt; and what was said and done.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::Fields;
use super::path::{PathIds, Query};
use super::{Api, Nudge, wire};
use crate::session::{Item, Message, Origin, StoredItem, origin_text};

/// Bytes of one message.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// `POST /v1/sessions/{session}/messages`
pub(crate) async fn post(State(api): State<Api>, ids: PathIds, fields: Fields) -> Result<Response, ApiError> {
    let text = read_text(fields)?;
    let session = ids.session()?;
    api.store.session(session).await?;
    if api.models.is_empty() {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "no_model",
            "no model is configured; hint: start with --model URL --model-name NAME",
        ));
    }
    let message = api.store.post_message(session, &Origin::Owner, &text).await?;
    api.nudge(Nudge::Wake(session)).await;
    Ok(accepted(&message))
}

/// `POST /v1/sessions/{session}/steer`
pub(crate) async fn steer(
    State(api): State<Api>,
    ids: PathIds,
    fields: Fields,
) -> Result<Response, ApiError> {
    let text = read_text(fields)?;
    let session = ids.session()?;
    let message = api.store.steer(session, &text).await?;
    api.nudge(Nudge::Wake(session)).await;
    Ok(accepted(&message))
}

/// `POST /v1/sessions/{session}/interrupt`
pub(crate) async fn interrupt(
    State(api): State<Api>,
    ids: PathIds,
    fields: Fields,
) -> Result<Response, ApiError> {
    fields.allow(&[])?;
    let session = ids.session()?;
    let runs = api.store.interrupt(session).await?;
    api.nudge(Nudge::Interrupt(session)).await;
    let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
    Ok((StatusCode::ACCEPTED, axum::Json(json!({ "runs": runs }))).into_response())
}

/// `GET /v1/sessions/{session}/messages`
pub(crate) async fn list(State(api): State<Api>, ids: PathIds, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    let session = api.store.session(ids.session()?).await?;
    let messages = api.store.messages(session.id, 0).await?;
    let messages: Vec<Value> = messages.iter().map(wire::message).collect();
    Ok(axum::Json(json!({ "messages": messages })).into_response())
}

/// `GET /v1/sessions/{session}/transcript`
pub(crate) async fn transcript(
    State(api): State<Api>,
    ids: PathIds,
    query: Query,
) -> Result<Response, ApiError> {
    query.none()?;
    let session = api.store.session(ids.session()?).await?;
    let items = api.store.conversation(session.id).await?;
    let items: Vec<Value> = items.iter().map(item).collect();
    Ok(axum::Json(json!({ "items": items })).into_response())
}

/// `GET /v1/sessions/{session}/runs/{run}`
pub(crate) async fn run(State(api): State<Api>, ids: PathIds, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    let run = api.store.run(ids.session()?, ids.run()?).await?;
    Ok(axum::Json(wire::run(&run)).into_response())
}

fn accepted(message: &Message) -> Response {
    let body = json!({ "run": message.run.to_string(), "number": message.number });
    (StatusCode::ACCEPTED, axum::Json(body)).into_response()
}

fn read_text(mut fields: Fields) -> Result<String, ApiError> {
    fields.allow(&["text"])?;
    let text = fields.text("text")?.ok_or_else(|| ApiError::field("text", "is required"))?;
    if text.trim().is_empty() {
        return Err(ApiError::field("text", "is blank"));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(ApiError::field("text", &format!("holds at most {MAX_TEXT_BYTES} bytes")));
    }
    if text.contains('\0') {
        return Err(ApiError::field("text", "holds a NUL character"));
    }
    Ok(text)
}

fn item(stored: &StoredItem) -> Value {
    let mut value = match &stored.item {
        Item::Words { message, origin, text } => {
            json!({ "kind": "words", "message": message, "origin": origin_text(origin), "text": text })
        }
        Item::Assistant { text, calls } => {
            let call = |call: &crate::session::ToolCall| json!({ "id": call.id, "tool": call.name, "arguments": call.arguments });
            json!({ "kind": "assistant", "text": text, "calls": calls.iter().map(call).collect::<Vec<_>>() })
        }
        Item::ToolResult { call, text, is_error } => {
            json!({ "kind": "toolResult", "call": call, "text": text, "isError": is_error })
        }
        Item::Note { text } => json!({ "kind": "note", "text": text }),
    };
    if let Value::Object(map) = &mut value {
        map.insert("number".to_owned(), stored.number.into());
        map.insert("run".to_owned(), stored.run.to_string().into());
    }
    value
}
