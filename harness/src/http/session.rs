//! Sessions: make, list, describe, change, delete.

use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::ApiError;
use super::gate::Caller;
use super::json::Fields;
use super::path::{PathIds, Query};
use super::{Api, Nudge, wire};
use crate::session::{
    Creator, EnvironmentRef, Limits, Mode, NewSession, Profile, Session, SessionId, SessionPatch,
    mode_from_text, profile_from_text,
};

/// Sessions in one list.
const MAX_LISTED: u32 = 500;

/// `POST /v1/sessions`
pub(crate) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    fields.allow(&["profile", "mode", "workspace", "executorClass", "limits", "model"])?;
    let profile = read_profile(&mut fields)?;
    let workspace = read_workspace(&mut fields, profile)?;
    let mode = read_mode(&mut fields)?.unwrap_or(Mode::Auto);
    if caller == Caller::SameUser && mode > Mode::Auto {
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "mode_needs_token",
            "without the token a session starts in auto at most; hint: Authorization: Bearer <token of the state folder>",
        ));
    }
    if fields.take("executorClass").is_some() {
        return Err(ApiError::field(
            "executorClass",
            "names nothing here: there are no classes in local mode",
        ));
    }
    let limits = read_limits(&mut fields)?;
    let model = read_model(&api, &mut fields)?;

    let id = SessionId::new();
    let environment = match profile {
        Profile::NoFs => EnvironmentRef::none(id),
        Profile::Default => api.resolver.bind_local(workspace.as_deref()).await?,
    };
    let new = NewSession { id, profile, mode, model, limits, environment, creator: caller.creator() };
    let session = api.store.create_session(&new).await?;
    tracing::info!(session = %id, profile = wire::profile(profile), "made a session");
    let location = format!("/v1/sessions/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(describe(&session))).into_response())
}

/// `GET /v1/sessions`
pub(crate) async fn list(State(api): State<Api>, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    let sessions = api.store.sessions(MAX_LISTED).await?;
    let sessions: Vec<Value> = sessions.iter().map(describe).collect();
    Ok(axum::Json(json!({ "sessions": sessions })).into_response())
}

/// `GET /v1/sessions/{id}`
pub(crate) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    ids: PathIds,
    query: Query,
) -> Result<Response, ApiError> {
    query.none()?;
    let session = api.store.session(ids.session()?).await?;
    // Without the token only what was made without it is there.
    if caller == Caller::SameUser && session.creator != Creator::SameUser {
        return Err(crate::store::StoreError::NoSuchSession.into());
    }
    Ok(axum::Json(describe(&session)).into_response())
}

/// `PATCH /v1/sessions/{id}`
pub(crate) async fn patch(
    State(api): State<Api>,
    ids: PathIds,
    mut fields: Fields,
) -> Result<Response, ApiError> {
    fields.allow(&["mode", "suspended", "trusted"])?;
    if fields.is_empty() {
        return Err(ApiError::field("mode, suspended or trusted", "is required"));
    }
    let patch = SessionPatch {
        mode: read_mode(&mut fields)?,
        suspended: fields.boolean("suspended")?,
        trusted: fields.boolean("trusted")?,
    };
    let session = api.store.patch_session(ids.session()?, patch).await?;
    api.nudge(Nudge::Wake(session.id)).await;
    Ok(axum::Json(describe(&session)).into_response())
}

/// `DELETE /v1/sessions/{id}`
pub(crate) async fn delete(State(api): State<Api>, ids: PathIds) -> Result<Response, ApiError> {
    let session = ids.session()?;
    // The holder finds its lease lost and stops what it runs; what runs in the background is ended by name.
    let departed = api.store.delete_session(session).await?;
    api.nudge(Nudge::Deleted(departed)).await;
    tracing::info!(%session, "deleted a session");
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A session as it goes out.
fn describe(session: &Session) -> Value {
    let Session { limits, usage, .. } = session;
    json!({
        "id": session.id.to_string(),
        "profile": wire::profile(session.profile),
        "mode": session.mode.as_str(),
        "state": wire::state(session.state),
        "trusted": session.trusted,
        "suspended": session.suspended,
        "model": session.model,
        "environment": session.environment.as_ref().map(|reference| json!({
            "kind": reference.kind.as_str(),
            "id": reference.id,
            "revision": reference.revision,
        })),
        "limits": {
            "turns": limits.turns,
            "toolCalls": limits.tool_calls,
            "tokens": limits.tokens,
            "failures": limits.failures,
            "wallTimeSeconds": limits.wall_time.as_secs(),
        },
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "requests": usage.requests,
        },
        "createdAt": session.created_at.to_string(),
        "updatedAt": session.updated_at.to_string(),
    })
}

/// Absent is `default`; everything else than the two words, `null` included, is refused.
fn read_profile(fields: &mut Fields) -> Result<Profile, ApiError> {
    match fields.take("profile") {
        None => Ok(Profile::Default),
        Some(value) => value
            .as_str()
            .and_then(profile_from_text)
            .ok_or_else(|| ApiError::field("profile", "must be \"default\" or \"no-fs\"")),
    }
}

/// The folder inside the served one; `None` for the served one itself. Absent, `null`, `""` and `{}` are empty.
fn read_workspace(fields: &mut Fields, profile: Profile) -> Result<Option<String>, ApiError> {
    let value = match fields.take("workspace") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::Object(map)) if map.is_empty() => return Ok(None),
        Some(value) => value,
    };
    if profile == Profile::NoFs {
        return Err(ApiError::field("workspace", "must be empty with profile no-fs"));
    }
    match value {
        Value::String(text) if !text.contains('\0') => Ok(Some(text)),
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => {
            Err(ApiError::field("workspace", "must be a string: a folder inside the served one"))
        }
    }
}

fn read_mode(fields: &mut Fields) -> Result<Option<Mode>, ApiError> {
    let Some(value) = fields.take("mode") else { return Ok(None) };
    match value.as_str().and_then(mode_from_text) {
        Some(mode) => Ok(Some(mode)),
        None => Err(ApiError::field("mode", "must be \"readOnly\", \"askFirst\", \"auto\" or \"fullTrust\"")),
    }
}

fn read_limits(fields: &mut Fields) -> Result<Limits, ApiError> {
    let mut limits = Limits::default();
    let Some(mut given) = fields.object("limits")? else { return Ok(limits) };
    given.allow(&["turns", "toolCalls", "tokens", "failures", "wallTimeSeconds"])?;
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if let Some(turns) = given.number("turns", 1..=1_000)? {
        limits.turns = small(turns);
    }
    if let Some(calls) = given.number("toolCalls", 1..=10_000)? {
        limits.tool_calls = small(calls);
    }
    if let Some(tokens) = given.number("tokens", 1..=100_000_000)? {
        limits.tokens = tokens;
    }
    if let Some(failures) = given.number("failures", 1..=100)? {
        limits.failures = small(failures);
    }
    if let Some(seconds) = given.number("wallTimeSeconds", 1..=7 * 24 * 60 * 60)? {
        limits.wall_time = Duration::from_secs(seconds);
    }
    Ok(limits)
}

fn read_model(api: &Api, fields: &mut Fields) -> Result<Option<String>, ApiError> {
    let Some(model) = fields.text("model")? else { return Ok(None) };
    if api.models.contains(&model) {
        return Ok(Some(model));
    }
    Err(ApiError::field("model", "is not one of /v1/models"))
}
