//! A real HTTP server on loopback that misbehaves, one way per test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, Response as Answer};
use axum::routing::post;
use futures::StreamExt as _;
use futures::stream;

use super::*;

type Script = Arc<dyn Fn(u32, &HeaderMap, &str) -> Answer<Body> + Send + Sync>;

struct Server {
    url: String,
    asked: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(script: impl Fn(u32, &HeaderMap, &str) -> Answer<Body> + Send + Sync + 'static) -> Server {
    let asked = Arc::new(AtomicU32::new(0));
    let state: (Arc<AtomicU32>, Script) = (Arc::clone(&asked), Arc::new(script));
    let app = Router::new().route("/v1/chat/completions", post(answer)).with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}/v1/", listener.local_addr().expect("address"));
    let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("serve") });
    Server { url, asked, task }
}

async fn answer(
    State((asked, script)): State<(Arc<AtomicU32>, Script)>,
    headers: HeaderMap,
    body: String,
) -> Answer<Body> {
    let n = asked.fetch_add(1, Ordering::SeqCst) + 1;
    script(n, &headers, &body)
}

fn events(body: impl Into<Body>) -> Answer<Body> {
    Answer::builder().header(CONTENT_TYPE, "text/event-stream").body(body.into()).expect("answer")
}

fn refusal(status: u16, retry_after: Option<&str>, body: &str) -> Answer<Body> {
    let mut answer = Answer::builder().status(status);
    if let Some(value) = retry_after {
        answer = answer.header(RETRY_AFTER, value);
    }
    answer.body(Body::from(body.to_owned())).expect("answer")
}

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"h\u{e9}llo\"}}]}\n\n";
const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn client(url: &str) -> ModelClient {
    ModelClient::new(ModelConfig {
        base_url: url.to_owned(),
        model: "test".to_owned(),
        api_key: Some(SecretString::from("sk-canary-0123456789")),
        max_output_tokens: None,
        timing: ModelTiming {
            first_byte: Duration::from_millis(400),
            idle: Duration::from_millis(200),
            turn: Duration::from_secs(2),
            attempts: 3,
            base_delay: Duration::from_millis(2),
            longest_delay: Duration::from_secs(1),
            ..ModelTiming::default()
        },
    })
    .expect("client")
}

async fn ask(url: &str) -> (Result<Turn, ModelError>, String) {
    let (deltas, mut watch) = mpsc::channel(64);
    let messages = [ChatMessage::User { content: "hi".to_owned() }];
    let turn = client(url).turn(None, &messages, &[], &deltas).await;
    drop(deltas);
    let mut seen = String::new();
    while let Some(text) = watch.recv().await {
        seen.push_str(&text);
    }
    (turn, seen)
}

async fn failure(
    script: impl Fn(u32, &HeaderMap, &str) -> Answer<Body> + Send + Sync + 'static,
) -> (ModelError, u32) {
    let server = serve(script).await;
    let (turn, _) = ask(&server.url).await;
    (turn.expect_err("a failed turn"), server.asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn an_answer_cut_inside_a_character_arrives_whole() {
    let server = serve(|_, headers, body| {
        assert_eq!(headers[AUTHORIZATION], "Bearer sk-canary-0123456789");
        assert!(body.contains(r#""stream":true"#) && body.contains(r#""role":"user""#));
        let bytes = format!(": waiting\r\n\r\n{HELLO}{END}").into_bytes();
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> =
            bytes.chunks(1).map(|byte| Ok(byte.to_vec())).collect();
        events(Body::from_stream(stream::iter(pieces)))
    })
    .await;
    let (turn, seen) = ask(&server.url).await;
    let turn = turn.expect("turn");
    assert_eq!(
        (turn.text.as_str(), seen.as_str(), turn.end),
        ("h\u{e9}llo", "h\u{e9}llo", super::super::TurnEnd::Complete)
    );
}

#[tokio::test]
async fn a_missing_end_is_a_failed_turn() {
    for body in [String::new(), HELLO.to_owned(), format!("{HELLO}{}", END.replace("data: [DONE]\n\n", ""))] {
        let (error, asked) = failure(move |_, _, _| events(body.clone())).await;
        assert!(matches!(error, ModelError::Turn(TurnError::MissingEnd)), "{error:?}");
        assert_eq!(asked, 1, "what was heard in part is not asked for again by the client");
    }
}

#[tokio::test]
async fn a_page_with_status_200_is_not_an_answer() {
    let (error, _) = failure(|_, _, _| Answer::new(Body::from("<html>please log in</html>"))).await;
    assert!(matches!(error, ModelError::NotAStream));
}

#[tokio::test]
async fn an_error_inside_the_stream_fails_the_turn_and_shows_no_key() {
    let (error, _) = failure(|_, _, _| {
        events(format!(
            "{HELLO}data: {{\"error\":{{\"message\":\"bad key sk-canary-0123456789\"}}}}\n\n{END}"
        ))
    })
    .await;
    assert_eq!(error.to_string(), "the provider reported an error in the stream: bad key [redacted]");
    let (error, _) =
        failure(|_, _, _| events(format!("{HELLO}event: error\ndata: {{\"message\":\"no\"}}\n\n{END}")))
            .await;
    assert!(matches!(error, ModelError::Turn(TurnError::Provider(_))), "{error:?}");
}

#[tokio::test]
async fn a_storm_is_waited_out_and_retry_after_is_honoured() {
    let server = serve(|n, _, _| match n {
        1 => refusal(429, Some("0"), "{}"),
        2 => refusal(503, None, "busy"),
        _ => events(format!("{HELLO}{END}")),
    })
    .await;
    assert_eq!(ask(&server.url).await.0.expect("turn").text, "h\u{e9}llo");
    assert_eq!(server.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn retries_are_bounded_in_number_and_in_patience() {
    let (error, asked) = failure(|_, _, _| refusal(500, None, "")).await;
    assert!(matches!(error, ModelError::Unavailable { status: 500, .. }) && asked == 3, "{error:?} {asked}");
    let (error, asked) = failure(|_, _, _| refusal(429, Some("3600"), "")).await;
    assert!(matches!(error, ModelError::Unavailable { status: 429, .. }) && asked == 1, "{error:?} {asked}");
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_shows_no_key() {
    let (error, asked) =
        failure(|_, _, _| refusal(401, None, r#"{"error":{"message":"key sk-canary-0123456789 is wrong"}}"#))
            .await;
    assert_eq!(error.to_string(), "the provider refused the request with 401: key [redacted] is wrong");
    assert!(asked == 1 && !error.is_retryable());
    assert!(!format!("{error:?}").contains("canary"));
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_elsewhere() {
    let (error, asked) = failure(|_, _, _| {
        Answer::builder()
            .status(307)
            .header(LOCATION, "/v1/chat/completions")
            .body(Body::empty())
            .expect("answer")
    })
    .await;
    assert!(matches!(error, ModelError::Refused { status: 307, .. }) && asked == 1);
}

#[tokio::test]
async fn silence_at_the_start_and_in_the_middle_is_bounded() {
    let (error, _) =
        failure(|_, _, _| events(Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>())))
            .await;
    assert!(matches!(error, ModelError::SlowStart(_)), "{error:?}");
    let (error, _) = failure(|_, _, _| {
        let head = stream::iter([Ok::<_, std::io::Error>(HELLO.as_bytes().to_vec())]);
        events(Body::from_stream(head.chain(stream::pending())))
    })
    .await;
    assert!(matches!(error, ModelError::Silent(_)), "{error:?}");
}

#[tokio::test]
async fn an_endless_stream_is_bounded() {
    // Comments keep the connection lively for ever; only the limit of the turn, or of its bytes, ends it.
    let (error, _) = failure(|_, _, _| {
        let forever = stream::unfold((), |()| async {
            tokio::task::yield_now().await;
            Some((Ok::<_, std::io::Error>(b": still here\n".to_vec()), ()))
        });
        events(Body::from_stream(forever))
    })
    .await;
    assert!(matches!(error, ModelError::Endless(_) | ModelError::TooLong), "{error:?}");
    let (error, _) = failure(|_, _, _| {
        let forever = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b'x'; 65_536]));
        events(Body::from_stream(forever))
    })
    .await;
    assert!(matches!(error, ModelError::Stream(SseError::TooLong { .. })), "{error:?}");
}

#[tokio::test]
async fn no_listener_is_unreachable_and_names_no_url() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}/v1", listener.local_addr().expect("address"));
    drop(listener);
    let error = ask(&url).await.0.expect_err("unreachable");
    assert_eq!((error.code(), error.to_string().as_str()), ("model_unreachable", "cannot reach the model"));
}

#[test]
fn urls_that_would_leak_are_refused() {
    let check = |url: &str| {
        ModelClient::new(ModelConfig {
            base_url: url.to_owned(),
            model: "m".to_owned(),
            api_key: Some(SecretString::from("sk")),
            max_output_tokens: None,
            timing: ModelTiming::default(),
        })
        .map_err(|error| error.to_string())
        .err()
    };
    for url in
        ["https://openrouter.ai/api/v1", "http://127.0.0.1:1/v1", "http://[::1]:1", "http://localhost:8080"]
    {
        assert_eq!(check(url), None, "{url}");
    }
    for url in ["http://example.com/v1", "https://user:pw@example.com", "ftp://x", "x", "https://a/?key=1"] {
        assert!(check(url).is_some(), "{url}");
    }
}
