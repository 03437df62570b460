//! The one error shape: `{code, message, retryable}`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::environment::ResolveError;
use crate::store::StoreError;

/// Characters of a message: some name a part of the request, and that part can be long.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// An answer that is not what was asked for.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    retryable: bool,
    retry_after_seconds: Option<u64>,
}

impl ApiError {
    /// An error that stays the same however often the request is repeated.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARACTERS) {
            message.truncate(end);
        }
        Self { status, code, message, retryable: false, retry_after_seconds: None }
    }

    /// A field of the request that is wrong.
    pub(crate) fn field(name: &str, wrong: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_field", format!("{name} {wrong}"))
    }

    /// The same request may succeed later.
    pub(crate) fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same request may succeed after this time.
    pub(crate) fn after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self.retryable()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.code, "message": self.message, "retryable": self.retryable });
        let mut response = (self.status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            // RFC 9110 §11.6.1: a 401 names the scheme.
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::NoSuchSession
            | StoreError::NoSuchRun
            | StoreError::NoSuchApproval
            | StoreError::NoSuchOperation => StatusCode::NOT_FOUND,
            StoreError::LeaseLost
            | StoreError::LeaseHeld { .. }
            | StoreError::Suspended
            | StoreError::NoOpenRun
            | StoreError::RunEnded
            | StoreError::NotPending { .. }
            | StoreError::NotAllowed { .. }
            | StoreError::OtherCall
            | StoreError::OperationExists => StatusCode::CONFLICT,
            StoreError::TooManyRuns { .. } => StatusCode::TOO_MANY_REQUESTS,
            StoreError::Corrupt { .. } | StoreError::Database(_) | StoreError::Migrate(_) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the store failed");
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        let answer = Self::new(status, error.code(), error.to_string());
        if error.is_retryable() { answer.retryable() } else { answer }
    }
}

impl From<ResolveError> for ApiError {
    fn from(error: ResolveError) -> Self {
        let status = match error {
            ResolveError::Store(error) => return error.into(),
            ResolveError::NotInside | ResolveError::NoResolver { .. } => StatusCode::BAD_REQUEST,
            ResolveError::Unknown | ResolveError::Mismatch | ResolveError::EmptyWorkspace => {
                StatusCode::CONFLICT
            }
            ResolveError::NotReady { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        let answer = Self::new(status, error.code(), error.to_string());
        if error.is_retryable() { answer.retryable() } else { answer }
    }
}
