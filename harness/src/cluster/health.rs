//! Whether the harness lives, and whether it can serve.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use futures::FutureExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::environment::kubernetes::KubernetesResolver;
use crate::exchange::Front;
use crate::telemetry::story;

/// What must be known before anything is served well.
#[derive(Clone)]
pub(super) struct Readiness {
    front: Front,
    resolver: Option<Arc<KubernetesResolver>>,
}

impl Readiness {
    pub(super) fn new(front: Front, resolver: Option<Arc<KubernetesResolver>>) -> Self {
        Self { front, resolver }
    }

    fn answer(&self) -> (StatusCode, &'static str) {
        let not_yet = |why| (StatusCode::SERVICE_UNAVAILABLE, why);
        if self.front.peers().is_none() {
            return not_yet("what the API server's front proxy looks like is not known yet");
        }
        match &self.resolver {
            Some(resolver) if resolver.listed().now_or_never().is_none() => {
                not_yet("not all Sessions have been listed yet")
            }
            Some(resolver) if !resolver.has_credential() => {
                not_yet("the operator has not written the certificate for executors yet")
            }
            Some(_) | None => (StatusCode::OK, "ok"),
        }
    }
}

/// Answers `/healthz` and `/readyz` until `stop`.
pub(super) async fn serve(listener: TcpListener, readiness: Readiness, stop: CancellationToken) {
    let ready = move || std::future::ready(readiness.answer());
    let router = Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready));
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await {
        tracing::error!(error = story(&error), "health is no longer answered");
    }
}
