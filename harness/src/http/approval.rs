//! Approvals: what is asked, and the person's answer.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::Fields;
use super::path::{PathIds, Query};
use super::{Api, Nudge, wire};
use crate::session::{Answer, ApprovalState, SessionId};

/// Approvals in one list.
const MAX_LISTED: u32 = 500;
/// How a decision names the one person of local mode.
const PERSON: &str = "owner";

/// `GET /v1/approvals`
pub(crate) async fn list(State(api): State<Api>, query: Query) -> Result<Response, ApiError> {
    query.allow(&["session", "state"])?;
    let session: Option<SessionId> = match query.get("session") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| ApiError::field("session", "is not a session id"))?),
    };
    let state = match query.get("state") {
        None => None,
        Some(text) => Some(ApprovalState::from_text(text).ok_or_else(|| {
            ApiError::field("state", "must be pending, allowed, denied, expired or consumed")
        })?),
    };
    let approvals = api.store.approvals(session, state, MAX_LISTED).await?;
    let approvals: Vec<Value> = approvals.iter().map(wire::approval).collect();
    Ok(axum::Json(json!({ "approvals": approvals })).into_response())
}

/// `GET /v1/approvals/{approval}`
pub(crate) async fn get(State(api): State<Api>, ids: PathIds, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    let approval = api.store.approval(ids.approval()?).await?;
    Ok(axum::Json(wire::approval(&approval)).into_response())
}

/// `POST /v1/approvals/{approval}/decision`
pub(crate) async fn decide(
    State(api): State<Api>,
    ids: PathIds,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    fields.allow(&["answer", "keepRule"])?;
    let answer = fields
        .text("answer")?
        .as_deref()
        .and_then(Answer::from_text)
        .ok_or_else(|| ApiError::field("answer", "must be \"allow\" or \"deny\""))?;
    let keep = fields.boolean("keepRule")?.unwrap_or(false);
    let approval = ids.approval()?;
    if keep {
        // Refused whole: an answer that silently kept nothing would be taken for a rule.
        api.store.approval(approval).await?;
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            "no_offer",
            "this question offers no rule to keep; nothing was decided; hint: answer without keepRule",
        ));
    }
    let decided = api.store.decide(approval, answer, PERSON).await?;
    tracing::info!(%approval, answer = answer.as_str(), "a person answered");
    api.nudge(Nudge::Wake(decided.session)).await;
    Ok(axum::Json(wire::approval(&decided)).into_response())
}
