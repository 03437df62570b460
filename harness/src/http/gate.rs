//! Who calls, and what that caller may ask for. Every request passes here first.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::Api;
use super::error::ApiError;
use super::peer::{Ends, user_of};
use super::rate::Payer;
use super::server::Connection;
use crate::session::Creator;

/// Bytes of all header names and values together.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Who a request speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The person: whoever can read the token of the state folder.
    Person,
    /// A process of the person's user without the token. Commands of the agent are such processes.
    SameUser,
}

impl Caller {
    /// The creator that a session of this caller gets.
    pub(crate) const fn creator(self) -> Creator {
        match self {
            Self::Person => Creator::Person,
            Self::SameUser => Creator::SameUser,
        }
    }
}

/// SHA-256 of the token. Comparing digests takes the same time wherever two tokens differ.
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    fn matches(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |different, (mine, theirs)| different | (mine ^ theirs)) == 0
    }
}

/// Passes a request on with its [`Caller`], or answers it.
pub(crate) async fn gate(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    let response = match admit(&api, &parts).await {
        Ok(caller) => {
            parts.extensions.insert(caller);
            let request = Request::from_parts(parts, body);
            match tokio::time::timeout(api.request_timeout, next.run(request)).await {
                Ok(response) => response,
                Err(_) => ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the request took too long")
                    .retryable()
                    .into_response(),
            }
        }
        Err(refused) => refused.into_response(),
    };
    tracing::debug!(%method, path, status = response.status().as_u16(), "answered");
    response
}

async fn admit(api: &Api, request: &Parts) -> Result<Caller, ApiError> {
    check_size(&request.headers)?;
    check_host(&request.uri, &request.headers)?;
    let shown = match bearer(&request.headers) {
        Shown::Token(token) if api.token.matches(&TokenDigest::of(token)) => {
            if let Some(connection) = request.extensions.get::<Connection>() {
                connection.prove();
            }
            pay(api, Payer::Person)?;
            return Ok(Caller::Person);
        }
        Shown::Token(_) | Shown::Unreadable => "a token that is not this server's",
        Shown::Nothing => "no token",
    };
    let user = match request.extensions.get::<Connection>() {
        Some(connection) => caller_user(connection.ends).await,
        None => None,
    };
    pay(api, user.map_or(Payer::Unknown, Payer::User))?;
    let narrow = shown == "no token"
        && user == Some(rustix::process::getuid().as_raw())
        && !is_from_browser(&request.headers)
        && is_open_to_same_user(&request.method, request.uri.path());
    if narrow {
        return Ok(Caller::SameUser);
    }
    let failures = api.count_authentication_failure();
    tracing::warn!(user, failures, method = %request.method, "refused a caller that showed {shown}");
    Err(ApiError::new(
        StatusCode::UNAUTHORIZED,
        "unauthenticated",
        "this call needs the token of the state folder; hint: Authorization: Bearer <token>",
    ))
}

/// What a process of the same user may ask for without a token: make a session, and read the description of one.
fn is_open_to_same_user(method: &Method, path: &str) -> bool {
    if method == Method::POST {
        return path == "/v1/sessions";
    }
    let one_session =
        path.strip_prefix("/v1/sessions/").is_some_and(|id| !id.is_empty() && !id.contains('/'));
    method == Method::GET && one_session
}

fn pay(api: &Api, payer: Payer) -> Result<(), ApiError> {
    api.rates.take(payer, Instant::now()).map_err(|wait| {
        let seconds = wait.as_secs().saturating_add(1);
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests").after(seconds)
    })
}

async fn caller_user(ends: Ends) -> Option<u32> {
    match tokio::task::spawn_blocking(move || user_of(ends)).await {
        Ok(Ok(user)) => user,
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot read the kernel's socket table");
            None
        }
        Err(_) => None,
    }
}

enum Shown<'a> {
    Nothing,
    Token(&'a str),
    Unreadable,
}

fn bearer(headers: &HeaderMap) -> Shown<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return if headers.contains_key(header::AUTHORIZATION) { Shown::Unreadable } else { Shown::Nothing };
    };
    match value.to_str().ok().and_then(|text| text.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Shown::Token(token.trim()),
        Some(_) | None => Shown::Unreadable,
    }
}

/// A browser sends these for every page, foreign ones included (Fetch Standard; W3C Fetch Metadata).
fn is_from_browser(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name == header::ORIGIN || name.as_str().starts_with("sec-fetch-"))
}

fn check_size(headers: &HeaderMap) -> Result<(), ApiError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes <= MAX_HEADER_BYTES {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "headers_too_large",
        format!("headers hold at most {MAX_HEADER_BYTES} bytes"),
    ))
}

/// The named host must be loopback: a name that a foreign page made point here (DNS rebinding) is not.
fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(is_loopback),
        (None, _) | (Some(_), Some(_)) => false,
    };
    let absolute = uri.authority().is_none_or(|authority| is_loopback(authority.as_str()));
    if named && absolute {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::MISDIRECTED_REQUEST,
        "host_not_loopback",
        "the Host of a request must be localhost or a loopback address",
    ))
}

fn is_loopback(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    if without_port.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let plain =
        without_port.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(without_port);
    plain.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_loopback_by_address_or_by_the_one_name() {
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:8081", "127.9.9.9", "[::1]", "[::1]:8081"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "10.0.0.1:8081",
            "localhost:x",
            "[::2]",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn without_a_token_nothing_is_open_but_making_and_describing_a_session() {
        let open = [(Method::POST, "/v1/sessions"), (Method::GET, "/v1/sessions/0123")];
        for (method, path) in open {
            assert!(is_open_to_same_user(&method, path), "{method} {path}");
        }
        let closed = [
            (Method::GET, "/v1/sessions"),
            (Method::GET, "/v1/sessions/"),
            (Method::HEAD, "/v1/sessions/0123"),
            (Method::PATCH, "/v1/sessions/0123"),
            (Method::DELETE, "/v1/sessions/0123"),
            (Method::GET, "/v1/sessions/0123/events"),
            (Method::POST, "/v1/sessions/0123/messages"),
            (Method::POST, "/v1/sessions/"),
            (Method::POST, "/v1/approvals/0123/decision"),
            (Method::GET, "/v1/approvals"),
            (Method::GET, "/v1/info"),
        ];
        for (method, path) in closed {
            assert!(!is_open_to_same_user(&method, path), "{method} {path}");
        }
    }
}
