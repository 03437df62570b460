//! Request bodies: JSON objects, read strictly, whatever their Content-Type.

use std::ops::RangeInclusive;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde_json::{Map, Value};

use super::error::ApiError;
use crate::json::parse_strict;

/// Bytes of a request body.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The fields of one JSON object. Each is taken once; [`Fields::allow`] refuses all that are not known.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Where the object stands in the body, with a dot behind it; empty at the top.
    prefix: String,
    map: Map<String, Value>,
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if let Some(encoding) = request.headers().get(header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_encoding",
                "a body is sent without Content-Encoding",
            ));
        }
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let message = format!("a body holds at most {MAX_BODY_BYTES} bytes");
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
            } else {
                ApiError::new(StatusCode::BAD_REQUEST, "unreadable_body", "the body ended early")
            }
        })?;
        Self::parse(&body)
    }
}

impl Fields {
    /// Reads a body. An absent one is an empty object.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let bad = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", message);
        if body.is_empty() {
            return Ok(Self { prefix: String::new(), map: Map::new() });
        }
        let value = parse_strict(body).map_err(|error| bad(format!("the body is not JSON: {error}")))?;
        match value {
            Value::Object(map) => Ok(Self { prefix: String::new(), map }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(bad("the body is not a JSON object".to_owned()))
            }
        }
    }

    /// Refuses every field that is not among `known`.
    pub(crate) fn allow(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.map.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let name: String = name.chars().take(100).collect();
                let message = format!("unknown field {}{name}", self.prefix);
                Err(ApiError::new(StatusCode::BAD_REQUEST, "unknown_field", message))
            }
        }
    }

    /// Takes a field as it is; `None` if it is absent. `null` is a value.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }

    /// Takes text.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "must be a string")),
        }
    }

    /// Takes a truth value.
    pub(crate) fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(_) => Err(self.wrong(name, "must be true or false")),
        }
    }

    /// Takes a whole number within `range`.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        if let Some(number) = value.as_u64().filter(|number| range.contains(number)) {
            return Ok(Some(number));
        }
        let wrong = format!("must be a whole number from {} to {}", range.start(), range.end());
        Err(self.wrong(name, &wrong))
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, ApiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { prefix: format!("{}{name}.", self.prefix), map })),
            Some(_) => Err(self.wrong(name, "must be an object")),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    fn wrong(&self, name: &str, wrong: &str) -> ApiError {
        ApiError::field(&format!("{}{name}", self.prefix), wrong)
    }
}
