//! The server: chat completions as OpenAI documents them (platform.openai.com/docs/api-reference/chat), from a [`Script`].
//!
//! `POST /v1/chat/completions` (streaming and not), `GET /v1/models`, and for tests `GET /requests`: the requests it got,
//! each with the step that answered. A conversation that a provider would refuse is refused with 400 here too.

mod body;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::script::{Answer, Conversation, Script};

/// Requests kept for `GET /requests`; the oldest go first.
const KEPT_REQUESTS: usize = 2_000;

/// A served script.
pub struct ScriptedModel {
    script: Script,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<SeenRequest>,
    refusals: Vec<usize>,
}

/// One request as it came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SeenRequest {
    /// Position of the step that answered, from 0; absent when none did.
    pub step: Option<usize>,
    /// The step's name.
    pub name: Option<String>,
    /// HTTP status of the answer.
    pub status: u16,
    /// Whether a bearer token came with it.
    pub authorized: bool,
    /// The body.
    pub body: Value,
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: StreamOptions,
}

#[derive(Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// A model that listens, until it is dropped.
pub struct RunningModel {
    address: SocketAddr,
    model: Arc<ScriptedModel>,
    task: tokio::task::JoinHandle<()>,
}

impl RunningModel {
    /// Listens on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(script: Script) -> std::io::Result<Self> {
        Self::start_at(script, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Listens at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_at(script: Script, address: SocketAddr) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let model = Arc::new(ScriptedModel { script, seen: Mutex::default() });
        let router = router(Arc::clone(&model));
        let task = tokio::spawn(async move {
            // axum's serve never ends by itself and swallows accept errors.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, model, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base that clients append `/chat/completions` to.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.model.seen().requests.clone()
    }

    /// Serves until the process ends.
    pub async fn wait(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for RunningModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedModel {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refusal of `step` and says whether it was still due.
    fn refuses(&self, step: usize, times: usize) -> bool {
        let mut seen = self.seen();
        if seen.refusals.iter().filter(|refused| **refused == step).count() >= times {
            return false;
        }
        seen.refusals.push(step);
        true
    }

    fn record(&self, request: SeenRequest) {
        let mut seen = self.seen();
        if seen.requests.len() == KEPT_REQUESTS {
            seen.requests.remove(0);
        }
        seen.requests.push(request);
    }
}

fn router(model: Arc<ScriptedModel>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/requests", get(requests))
        .layer(axum::extract::DefaultBodyLimit::max(64 * 1024 * 1024))
        .with_state(model)
}

async fn models(State(model): State<Arc<ScriptedModel>>) -> Json<Value> {
    let entry = json!({"id": model.script.model, "object": "model", "created": 0, "owned_by": "mooring-e2e"});
    Json(json!({"object": "list", "data": [entry]}))
}

async fn requests(State(model): State<Arc<ScriptedModel>>) -> Json<Vec<SeenRequest>> {
    Json(model.seen().requests.clone())
}

async fn complete(State(model): State<Arc<ScriptedModel>>, headers: HeaderMap, body: String) -> Response {
    let json: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
    let answered = answer(&model, &json);
    let step = answered.as_ref().ok().map(|(answer, _)| answer.step);
    let response = match answered {
        Ok((answer, wanted)) => respond(&model, &answer, &wanted, &json),
        Err((status, message)) => error(status, &message),
    };
    model.record(SeenRequest {
        step,
        name: step.and_then(|step| model.script.steps[step].name.clone()),
        status: response.status().as_u16(),
        authorized: headers
            .get(header::AUTHORIZATION)
            .is_some_and(|value| value.as_bytes().starts_with(b"Bearer ")),
        body: json,
    });
    response
}

fn answer(model: &ScriptedModel, json: &Value) -> Result<(Answer, Wanted), (StatusCode, String)> {
    let refuse = |cause: serde_json::Error| (StatusCode::BAD_REQUEST, cause.to_string());
    let wanted: Wanted = serde_json::from_value(json.clone()).map_err(refuse)?;
    let conversation: Conversation = serde_json::from_value(json.clone()).map_err(refuse)?;
    conversation.check().map_err(|what| (StatusCode::BAD_REQUEST, what))?;
    // Not a 5xx: a client would ask again, and the script would still have nothing to say.
    let answer =
        model.script.answer(&conversation).map_err(|cause| (StatusCode::BAD_REQUEST, cause.to_string()))?;
    Ok((answer, wanted))
}

fn respond(model: &ScriptedModel, answer: &Answer, wanted: &Wanted, request: &Value) -> Response {
    let misbehave = &model.script.steps[answer.step].misbehave;
    if let Some(status) = &misbehave.status
        && model.refuses(answer.step, status.times)
    {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = error(code, "refused by the script");
        if let Some(seconds) = status.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        return response;
    }
    if misbehave.html {
        let page = "<!doctype html><html><body><h1>Sign in to the network</h1></body></html>";
        return ([(header::CONTENT_TYPE, "text/html")], page).into_response();
    }
    let usage = body::usage(answer, request);
    let pieces = if wanted.stream {
        body::streamed(
            answer,
            misbehave,
            &model.script.model,
            wanted.stream_options.include_usage.then_some(&usage),
        )
    } else {
        body::whole(answer, misbehave, &model.script.model, &usage)
    };
    let kind = if wanted.stream { "text/event-stream" } else { "application/json" };
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(body::play(pieces))).into_response()
}

fn error(status: StatusCode, message: &str) -> Response {
    let kind =
        if status == StatusCode::TOO_MANY_REQUESTS { "rate_limit_error" } else { "invalid_request_error" };
    (status, Json(json!({"error": {"message": message, "type": kind, "code": null}}))).into_response()
}

#[cfg(test)]
mod tests;
