//! The HTTP side: one request per turn, retried while nothing has been answered.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::retry::{backoff, retry_after};
use super::sse::{SseDecoder, SseError};
use super::turn::{Assembly, Turn, TurnError, error_text};
use super::wire::{ChatMessage, RequestBody, RequestTool, StreamOptions, ToolDescription};

/// Bytes of one stream event.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of one whole stream: each token comes in a chunk of a few hundred bytes.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of an error answer that are read.
const MAX_ERROR_BYTES: usize = 16 * 1024;

/// Where the model is and how it is asked.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// Up to and without `/chat/completions`: `https://openrouter.ai/api/v1`. No userinfo, query or fragment.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// Sent as a bearer token; never over plain HTTP to anything but loopback.
    pub api_key: Option<SecretString>,
    /// `max_tokens` of each turn; absent: the provider's own.
    pub max_output_tokens: Option<u32>,
    /// Patience.
    pub timing: ModelTiming,
}

/// How long a turn may take, and how often it is tried.
#[derive(Debug, Clone, Copy)]
pub struct ModelTiming {
    /// To connect.
    pub connect: Duration,
    /// From the request to the first byte of the answer's body.
    pub first_byte: Duration,
    /// Between two reads of the body.
    pub idle: Duration,
    /// One attempt as a whole.
    pub turn: Duration,
    /// Requests per turn, the first included.
    pub attempts: u32,
    /// The first pause between two attempts.
    pub base_delay: Duration,
    /// The longest pause, `Retry-After` included: a provider that asks for more fails the turn.
    pub longest_delay: Duration,
}

impl Default for ModelTiming {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            turn: Duration::from_mins(15),
            attempts: 5,
            base_delay: Duration::from_millis(500),
            longest_delay: Duration::from_mins(1),
        }
    }
}

/// Why there is no turn. No variant holds the key, the URL or the request.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The URL cannot be used.
    #[error("the model URL is not usable: {0}")]
    Url(&'static str),
    /// The client could not be made.
    #[error("cannot make the HTTP client")]
    Client(#[source] reqwest::Error),
    /// No connection, after all attempts.
    #[error("cannot reach the model")]
    Connect(#[source] reqwest::Error),
    /// The provider refuses the request as it is.
    #[error("the provider refused the request with {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The provider's message, shortened, without the key.
        message: String,
    },
    /// 429 or 5xx, after all attempts or with a longer `Retry-After` than we wait.
    #[error("the provider is not available: {status}: {message}")]
    Unavailable {
        /// HTTP status.
        status: u16,
        /// The provider's message, shortened, without the key.
        message: String,
    },
    /// A 200 that is not an event stream (a proxy's page, a server that does not stream).
    #[error("the provider answered something other than an event stream")]
    NotAStream,
    /// No first byte in time.
    #[error("the model did not begin to answer within {0:?}")]
    SlowStart(Duration),
    /// Silence inside the answer.
    #[error("the model fell silent for {0:?}")]
    Silent(Duration),
    /// The answer as a whole took too long.
    #[error("the model did not finish within {0:?}")]
    Endless(Duration),
    /// The stream as a whole is too long.
    #[error("the model's stream is longer than {MAX_STREAM_BYTES} bytes")]
    TooLong,
    /// The connection broke inside the answer.
    #[error("the connection to the model broke")]
    Broken(#[source] reqwest::Error),
    /// The bytes are not an event stream.
    #[error(transparent)]
    Stream(#[from] SseError),
    /// The events are not a turn.
    #[error(transparent)]
    Turn(#[from] TurnError),
}

impl ModelError {
    /// Whether the same request may succeed when it is made again. False for what a person has to change.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Url(_) | Self::Client(_) | Self::Refused { .. } => false,
            Self::Connect(_)
            | Self::Unavailable { .. }
            | Self::NotAStream
            | Self::SlowStart(_)
            | Self::Silent(_)
            | Self::Endless(_)
            | Self::TooLong
            | Self::Broken(_)
            | Self::Stream(_)
            | Self::Turn(_) => true,
        }
    }

    /// The stable name, for events.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url(_) | Self::Client(_) => "model_misconfigured",
            Self::Connect(_) => "model_unreachable",
            Self::Refused { .. } => "model_refused",
            Self::Unavailable { .. } => "model_unavailable",
            Self::SlowStart(_) | Self::Silent(_) | Self::Endless(_) => "model_timeout",
            Self::NotAStream | Self::TooLong | Self::Broken(_) | Self::Stream(_) | Self::Turn(_) => {
                "model_turn_failed"
            }
        }
    }
}

/// A client for one provider and model. Cheap to share behind an `Arc`; connections are kept.
#[derive(Debug)]
pub struct ModelClient {
    http: Client,
    endpoint: Url,
    authorization: Option<HeaderValue>,
    config: ModelConfig,
}

impl ModelClient {
    /// Checks the configuration; nothing is sent.
    ///
    /// Redirects are not followed, so that the key goes to the configured host alone; loopback is asked without a proxy.
    ///
    /// # Errors
    /// [`ModelError::Url`] for a URL of another form, or a key over plain HTTP beyond loopback; [`ModelError::Client`].
    pub fn new(config: ModelConfig) -> Result<Self, ModelError> {
        let endpoint = endpoint(&config.base_url)?;
        let is_loopback = is_loopback(&endpoint);
        if endpoint.scheme() == "http" && config.api_key.is_some() && !is_loopback {
            return Err(ModelError::Url("a key is sent over https or to loopback only"));
        }
        let authorization = config.api_key.as_ref().map(bearer).transpose()?;
        // Another part of the process may have installed it already; any rustls provider serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.timing.connect)
            .user_agent(concat!("mooring/", env!("CARGO_PKG_VERSION")));
        if is_loopback {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| ModelError::Client(error.without_url()))?;
        Ok(Self { http, endpoint, authorization, config })
    }

    /// Asks `model`, or the configured one, for one turn. Pieces of text go to `deltas` as they come; a watcher that is slow slows the stream, one that is
    /// gone changes nothing. Repeats only while no byte of an answer has come, so no text is sent twice by one call.
    ///
    /// Cancellation is safe: dropping the future closes the connection.
    ///
    /// # Errors
    /// Every variant but [`ModelError::Url`] and [`ModelError::Client`].
    pub async fn turn(
        &self,
        model: Option<&str>,
        messages: &[ChatMessage],
        tools: &[ToolDescription],
        deltas: &mpsc::Sender<String>,
    ) -> Result<Turn, ModelError> {
        let body = RequestBody {
            model: model.unwrap_or(&self.config.model),
            messages,
            tools: tools.iter().map(|function| RequestTool { kind: "function", function }).collect(),
            max_tokens: self.config.max_output_tokens,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        };
        let body = serde_json::to_vec(&body).expect("strings and JSON values always serialise");
        let response = self.ask(&body).await?;
        let whole = self.config.timing.turn;
        let until = Instant::now() + whole;
        match timeout_at(until, self.read(response, body.len(), deltas)).await {
            Ok(turn) => turn,
            Err(_) => Err(ModelError::Endless(whole)),
        }
    }

    async fn ask(&self, body: &[u8]) -> Result<Response, ModelError> {
        let timing = &self.config.timing;
        let mut attempt = 1;
        loop {
            let (error, asked) = match self.ask_once(body).await {
                Ok(response) => return Ok(response),
                Err(Failed::For(error)) => return Err(error),
                Err(Failed::Now { error, retry_after }) => (error, retry_after),
            };
            let pause = backoff(attempt, timing.base_delay, timing.longest_delay, random());
            let pause = asked.map_or(pause, |asked| asked.max(pause));
            if attempt >= timing.attempts || pause > timing.longest_delay {
                return Err(error);
            }
            tracing::warn!(
                attempt,
                pause_millis = pause.as_millis(),
                code = error.code(),
                "model asked again"
            );
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    async fn ask_once(&self, body: &[u8]) -> Result<Response, Failed> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let request = self.http.post(self.endpoint.clone()).headers(headers).body(body.to_vec()).send();
        let first_byte = self.config.timing.first_byte;
        let response = match timeout(first_byte, request).await {
            Err(_) => return Err(Failed::For(ModelError::SlowStart(first_byte))),
            Ok(Err(error)) => {
                let error = ModelError::Connect(error.without_url());
                return Err(Failed::Now { error, retry_after: None });
            }
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status == StatusCode::OK {
            let is_stream =
                response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(
                    |value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"),
                );
            return if is_stream { Ok(response) } else { Err(Failed::For(ModelError::NotAStream)) };
        }
        let asked = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| retry_after(value, Timestamp::now()));
        let message = self.refusal_text(response).await;
        let status_code = status.as_u16();
        if matches!(status_code, 408 | 425 | 429) || status.is_server_error() {
            let error = ModelError::Unavailable { status: status_code, message };
            return Err(Failed::Now { error, retry_after: asked });
        }
        Err(Failed::For(ModelError::Refused { status: status_code, message }))
    }

    async fn refusal_text(&self, mut response: Response) -> String {
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout(self.config.timing.connect, response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BYTES {
                break;
            }
        }
        let message = serde_json::from_slice::<serde_json::Value>(&body).map_or_else(
            |_| "no readable message".to_owned(),
            |body| error_text(body.get("error").unwrap_or(&body)),
        );
        self.without_key(message)
    }

    async fn read(
        &self,
        mut response: Response,
        request_bytes: usize,
        deltas: &mpsc::Sender<String>,
    ) -> Result<Turn, ModelError> {
        let timing = &self.config.timing;
        let mut decoder = SseDecoder::new(MAX_EVENT_BYTES);
        let mut assembly = Assembly::default();
        let mut events = Vec::new();
        let mut total = 0usize;
        loop {
            let patience = if total == 0 { timing.first_byte } else { timing.idle };
            let chunk = match timeout(patience, response.chunk()).await {
                Err(_) if total == 0 => return Err(ModelError::SlowStart(patience)),
                Err(_) => return Err(ModelError::Silent(patience)),
                Ok(Err(error)) => return Err(ModelError::Broken(error.without_url())),
                Ok(Ok(None)) => return Err(TurnError::MissingEnd.into()),
                Ok(Ok(Some(chunk))) => chunk,
            };
            total = total.saturating_add(chunk.len());
            if total > MAX_STREAM_BYTES {
                return Err(ModelError::TooLong);
            }
            decoder.push(&chunk, &mut events)?;
            for event in events.drain(..) {
                if event.data == "[DONE]" {
                    return Ok(assembly.finish(request_bytes)?);
                }
                if event.kind == "error" {
                    let value = serde_json::from_str(&event.data).unwrap_or_default();
                    return Err(TurnError::Provider(self.without_key(error_text(&value))).into());
                }
                match assembly.push(&event.data) {
                    Ok(None) => {}
                    // A closed channel is a watcher that left; the turn is wanted all the same.
                    Ok(Some(text)) => drop(deltas.send(text).await),
                    Err(TurnError::Provider(message)) => {
                        return Err(TurnError::Provider(self.without_key(message)).into());
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    fn without_key(&self, text: String) -> String {
        match &self.config.api_key {
            Some(key) if !key.expose_secret().is_empty() => text.replace(key.expose_secret(), "[redacted]"),
            Some(_) | None => text,
        }
    }
}

enum Failed {
    /// Asking again would not help, or could say something twice.
    For(ModelError),
    Now {
        error: ModelError,
        retry_after: Option<Duration>,
    },
}

fn endpoint(base: &str) -> Result<Url, ModelError> {
    let mut url = Url::parse(base.trim_end_matches('/')).map_err(|_| ModelError::Url("not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ModelError::Url("neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ModelError::Url("holds a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ModelError::Url("holds a query or a fragment"));
    }
    let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

fn bearer(key: &SecretString) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))
        .map_err(|_| ModelError::Url("the key holds characters that no header can carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn random() -> u64 {
    // Without randomness the pause is only unjittered.
    getrandom::u64().unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests;
