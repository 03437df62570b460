//! Whether the operator lives, and whether it sees everything.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::caches::Caches;
use crate::telemetry::story;

/// Answers `/healthz` and `/readyz` until `stop`. `caches` come once there is an authority.
pub(crate) async fn serve(
    listener: TcpListener,
    caches: Arc<OnceLock<Arc<Caches>>>,
    stop: CancellationToken,
) {
    let ready = move || {
        let answer = match caches.get() {
            Some(caches) if caches.are_complete() => (StatusCode::OK, "ok"),
            Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "not everything has been listed yet"),
            None => (StatusCode::SERVICE_UNAVAILABLE, "the API server has not answered yet"),
        };
        std::future::ready(answer)
    };
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready));
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(error = story(&error), "health is no longer answered");
    }
}
