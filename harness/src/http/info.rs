//! What this server is and offers.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::ApiError;
use super::path::Query;
use super::{Api, openapi, wire};
use crate::session::{Mode, Profile, profile_from_text};
use crate::tools::catalogue;

/// `GET /v1/info`
pub(crate) async fn info(State(api): State<Api>, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    Ok(axum::Json(json!({
        "name": "mooring",
        "version": env!("CARGO_PKG_VERSION"),
        "deployment": "local",
        "profiles": [wire::profile(Profile::Default), wire::profile(Profile::NoFs)],
        "modes": Mode::ALL.map(Mode::as_str),
        "hasModel": !api.models.is_empty(),
        "authenticationFailures": api.authentication_failures(),
    }))
    .into_response())
}

/// `GET /v1/models`
pub(crate) async fn models(State(api): State<Api>, query: Query) -> Result<Response, ApiError> {
    query.none()?;
    let models: Vec<Value> = api.models.iter().map(|name| json!({ "name": name })).collect();
    Ok(axum::Json(json!({ "models": models })).into_response())
}

/// `GET /v1/tools`
pub(crate) async fn tools(query: Query) -> Result<Response, ApiError> {
    query.allow(&["profile"])?;
    let profile = match query.get("profile") {
        None => Profile::Default,
        Some(text) => profile_from_text(text)
            .ok_or_else(|| ApiError::field("profile", "must be \"default\" or \"no-fs\""))?,
    };
    let tools: Vec<Value> = catalogue(profile)
        .into_iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters }))
        .collect();
    Ok(axum::Json(json!({ "profile": wire::profile(profile), "tools": tools })).into_response())
}

/// `GET /v1/openapi.json`
pub(crate) async fn description(query: Query) -> Result<Response, ApiError> {
    query.none()?;
    Ok(axum::Json(openapi::document()).into_response())
}
