//! Ids in a path, parameters in a query: both read strictly.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::error::ApiError;
use crate::session::{ApprovalId, RunId, SessionId};
use crate::store::StoreError;

/// The named parts of a request's path.
pub(crate) struct PathIds(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::new(StatusCode::BAD_REQUEST, "invalid_path", "the path is not UTF-8"))?;
        Ok(Self(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}

impl PathIds {
    /// `{session}`. What is no id names no session.
    pub(crate) fn session(&self) -> Result<SessionId, ApiError> {
        self.get("session").ok_or_else(|| StoreError::NoSuchSession.into())
    }

    /// `{run}`.
    pub(crate) fn run(&self) -> Result<RunId, ApiError> {
        self.get("run").ok_or_else(|| StoreError::NoSuchRun.into())
    }

    /// `{approval}`.
    pub(crate) fn approval(&self) -> Result<ApprovalId, ApiError> {
        self.get("approval").ok_or_else(|| StoreError::NoSuchApproval.into())
    }

    fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.0.get(name)?.parse().ok()
    }
}

/// The parameters of a request's query, each at most once.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let bad = |message: &str| ApiError::new(StatusCode::BAD_REQUEST, "invalid_query", message.to_owned());
        let axum::extract::Query(pairs) =
            axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, state)
                .await
                .map_err(|_| bad("the query cannot be read"))?;
        let twice = pairs
            .iter()
            .enumerate()
            .any(|(n, (name, _))| pairs.iter().take(n).any(|(other, _)| other == name));
        if twice { Err(bad("a query parameter is given twice")) } else { Ok(Self(pairs)) }
    }
}

impl Query {
    /// Refuses every parameter.
    pub(crate) fn none(&self) -> Result<(), ApiError> {
        self.allow(&[])
    }

    /// Refuses every parameter that is not among `known`.
    pub(crate) fn allow(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(100).collect();
                let message = format!("unknown query parameter {name}");
                Err(ApiError::new(StatusCode::BAD_REQUEST, "unknown_parameter", message))
            }
        }
    }

    /// A parameter's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}
