//! The HTTP API of local mode.
//!
//! ```text
//! connection ─▶ server ─▶ gate (size, host, caller, rate) ─▶ router ─▶ session | message | event | approval | info
//!               limits      peer: whose socket is it?                     │
//!                                                                         ▼
//!                                             Store (rows, one transaction) ─▶ Nudge ─▶ agent loop
//! ```
//!
//! JSON camelCase, RFC 3339 times, one error shape. A call that needs the agent stores what it says and nudges the loop; it
//! never waits for it. Malformed HTTP, and a head of more than 64 KiB, are answered by the connection itself and without
//! a body.

mod approval;
mod error;
mod event;
mod gate;
mod info;
mod json;
mod message;
mod openapi;
mod path;
mod peer;
mod rate;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::environment::EnvironmentResolver;
use crate::session::SessionId;
use crate::store::{Departed, Store};
use error::ApiError;
use gate::TokenDigest;
use rate::Rates;

/// What the API asks of the agent loop. What it is about stands in the store already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// There is something new for this session.
    Wake(SessionId),
    /// Stop what this session is doing.
    Interrupt(SessionId),
    /// The session is deleted: end what it left running.
    Deleted(Departed),
}

/// How long and how many: what one caller may cost.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Connections at once; more wait in the kernel's queue.
    pub connections: usize,
    /// Time to send a request's head, and to stay idle between two requests.
    pub head: Duration,
    /// Time for one request, its body included; an event stream has begun by then.
    pub request: Duration,
    /// Time that open requests have when the server is to end.
    pub drain: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(15),
            request: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// What the API is made of.
pub struct ApiParts {
    /// The store.
    pub store: Store,
    /// Finds the folder of a new session.
    pub resolver: Arc<EnvironmentResolver>,
    /// The token that speaks for the person.
    pub token: secrecy::SecretString,
    /// Models that a session may name, the default first; empty: no model is configured.
    pub models: Vec<String>,
    /// Where nudges go.
    pub nudges: mpsc::Sender<Nudge>,
    /// How long and how many.
    pub patience: Patience,
    /// Cancelled when the server is to end.
    pub drain: CancellationToken,
}

/// Serves the API on a listener until `parts.drain` is cancelled and open requests have ended (at most
/// `parts.patience.drain`).
pub async fn serve(listener: TcpListener, parts: ApiParts) {
    let (patience, drain) = (parts.patience, parts.drain.clone());
    server::serve(listener, router(Api::new(parts)), patience, drain).await;
}

/// What every route shares.
#[derive(Clone)]
struct Api {
    store: Store,
    resolver: Arc<EnvironmentResolver>,
    token: Arc<TokenDigest>,
    models: Arc<[String]>,
    nudges: mpsc::Sender<Nudge>,
    request_timeout: Duration,
    drain: CancellationToken,
    rates: Arc<Rates>,
    failures: Arc<AtomicU64>,
}

impl Api {
    fn new(parts: ApiParts) -> Self {
        use secrecy::ExposeSecret;
        Self {
            store: parts.store,
            resolver: parts.resolver,
            token: Arc::new(TokenDigest::of(parts.token.expose_secret())),
            models: parts.models.into(),
            nudges: parts.nudges,
            request_timeout: parts.patience.request,
            drain: parts.drain,
            rates: Arc::default(),
            failures: Arc::default(),
        }
    }

    /// Tells the loop. If the loop is gone the server is ending, and the row is found at the next start.
    async fn nudge(&self, nudge: Nudge) {
        if let Err(unsent) = self.nudges.send(nudge).await {
            tracing::debug!(nudge = ?unsent.0, "nobody to nudge");
        }
    }

    fn count_authentication_failure(&self) -> u64 {
        self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn authentication_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Every route there is. `openapi::document` lists the same; a test compares.
fn router(api: Api) -> Router {
    Router::new()
        .route("/v1/sessions", post(session::create).get(session::list))
        .route("/v1/sessions/{session}", get(session::get).patch(session::patch).delete(session::delete))
        .route("/v1/sessions/{session}/messages", post(message::post).get(message::list))
        .route("/v1/sessions/{session}/transcript", get(message::transcript))
        .route("/v1/sessions/{session}/runs/{run}", get(message::run))
        .route("/v1/sessions/{session}/events", get(event::follow))
        .route("/v1/sessions/{session}/interrupt", post(message::interrupt))
        .route("/v1/sessions/{session}/steer", post(message::steer))
        .route("/v1/approvals", get(approval::list))
        .route("/v1/approvals/{approval}", get(approval::get))
        .route("/v1/approvals/{approval}/decision", post(approval::decide))
        .route("/v1/tools", get(info::tools))
        .route("/v1/models", get(info::models))
        .route("/v1/info", get(info::info))
        .route("/v1/openapi.json", get(info::description))
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(json::MAX_BODY_BYTES))
        .layer(from_fn_with_state(api.clone(), gate::gate))
        .with_state(api)
}

async fn no_such_route() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "route_not_found", "no such route")
}

async fn no_such_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this route has no such method")
}
