//! The aggregated API `tokens.mooring.dev`: who the API server says somebody is becomes a token.
//!
//! ```text
//!  person ─any credential─▶ API server: authenticates, authorizes ─its own certificate, user in headers─▶ here ─▶ token
//! ```
//!
//! Whoever does not show the API server's front-proxy certificate is not spoken to: the headers would be their own words.

mod discovery;
mod front;

use std::sync::Arc;

use axum::extract::connect_info::ConnectInfo;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mooring_operator_api::exchange::GatewayEndpoint;
use mooring_operator_api::{Exchange, ExchangeSpec, ExchangeStatus, UserName};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::caller::Callers;
use crate::telemetry::story;
use crate::tls::Incoming;

pub(crate) use front::{Door, Front, FrontProxy};

/// Bytes of a request's body: an Exchange says nothing.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// What the API works with.
pub(crate) struct Parts {
    /// Makes tokens.
    pub(crate) callers: Callers,
    /// Who may speak for others.
    pub(crate) front: Front,
    /// Where the gateway is.
    pub(crate) gateway: GatewayEndpoint,
}

/// Serves until `stop`.
pub(crate) async fn serve(incoming: Incoming, parts: Parts, stop: CancellationToken) {
    let router = Router::new()
        .route("/apis", get(discovery::groups))
        .route("/apis/tokens.mooring.dev", get(discovery::group))
        .route("/apis/tokens.mooring.dev/v1alpha1", get(discovery::resources))
        .route("/apis/tokens.mooring.dev/v1alpha1/exchanges", post(exchange))
        .fallback(|| async { refused(StatusCode::NOT_FOUND, "NotFound", "there is no such call here") })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(Arc::new(parts));
    let service = router.into_make_service_with_connect_info::<FrontProxy>();
    let served = axum::serve(Door::new(incoming), service).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(error = story(&error), "the token exchange no longer serves");
    }
}

async fn exchange(
    State(parts): State<Arc<Parts>>,
    ConnectInfo(proxy): ConnectInfo<FrontProxy>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> Response {
    let user = match parts.front.user(&proxy, &headers) {
        Ok(user) => user,
        Err(error) => {
            tracing::warn!(error = story(&error), "an exchange was refused");
            return refused(
                StatusCode::UNAUTHORIZED,
                "Unauthorized",
                "the request did not come by the API server",
            );
        }
    };
    if let Err(error) = asked(&body) {
        return refused(StatusCode::BAD_REQUEST, "BadRequest", &error);
    }
    let (token, end) = parts.callers.mint(&user, Timestamp::now());
    tracing::info!(user = user.as_str(), "token given");
    (StatusCode::CREATED, Json(answer(token, end, &user, parts.gateway.clone()))).into_response()
}

/// Whether the body is an Exchange that asks for nothing more than there is.
fn asked(body: &[u8]) -> Result<(), String> {
    let asked: Value = serde_json::from_slice(body)
        .map_err(|error| format!("the body is not the JSON of an Exchange: {error}"))?;
    for (field, expected) in [("apiVersion", "tokens.mooring.dev/v1alpha1"), ("kind", "Exchange")] {
        if asked[field] != expected {
            return Err(format!("{field} must be {expected}"));
        }
    }
    let spec = &asked["spec"];
    if spec.is_null() || spec.as_object().is_some_and(serde_json::Map::is_empty) {
        Ok(())
    } else {
        Err("spec must be empty: an Exchange asks for nothing but its answer".to_owned())
    }
}

fn answer(token: String, end: Timestamp, user: &UserName, gateway: GatewayEndpoint) -> Exchange {
    let mut answer = Exchange::new("", ExchangeSpec {});
    answer.metadata.name = None;
    answer.metadata.creation_timestamp = Some(Time(Timestamp::now()));
    answer.status = Some(ExchangeStatus { token, expires_at: Time(end), user: user.to_string(), gateway });
    answer
}

/// A refusal as Kubernetes clients read it.
fn refused(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_asks_for_nothing() {
        let good = r#"{"apiVersion":"tokens.mooring.dev/v1alpha1","kind":"Exchange"}"#;
        assert_eq!(asked(good.as_bytes()), Ok(()));
        let spec = |spec: &str| good.replace('}', &format!(r#","spec":{spec}}}"#));
        assert_eq!(asked(spec("{}").as_bytes()), Ok(()));
        for bad in [
            "",
            "{}",
            "[]",
            &spec(r#"{"user":"bo"}"#),
            &spec("[]"),
            &good.replace("v1alpha1", "v1"),
            &good.replace("Exchange", "TokenReview"),
        ] {
            assert!(asked(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
