//! Slow and greedy callers, with a server of little patience.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{ApiParts, Nudge, Patience, serve};
use crate::environment::EnvironmentResolver;
use crate::store::{Store, wall_clock};

const DEADLINE: Duration = Duration::from_secs(20);
const IMPATIENT: Duration = Duration::from_millis(200);

struct Server {
    address: SocketAddr,
    drain: CancellationToken,
    served: tokio::task::JoinHandle<()>,
    nudges: mpsc::Receiver<Nudge>,
    _folder: tempfile::TempDir,
}

impl Server {
    async fn start(patience: Patience) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let store = Store::open(&folder.path().join("mooring.db"), wall_clock()).await.expect("store");
        let resolver = Arc::new(EnvironmentResolver::new(store.clone(), None).expect("resolver"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let address = listener.local_addr().expect("address");
        let drain = CancellationToken::new();
        let (sender, nudges) = mpsc::channel(8);
        let parts = ApiParts {
            store,
            resolver,
            token: "token".into(),
            models: vec!["scripted".to_owned()],
            nudges: sender,
            patience,
            drain: drain.clone(),
        };
        let served = tokio::spawn(serve(listener, parts));
        Self { address, drain, served, nudges, _folder: folder }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("connect")
    }

    /// Asks with the token; gives the status line and what follows.
    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("send");
        rest(&mut stream).await
    }

    async fn stop(self) {
        self.drain.cancel();
        tokio::time::timeout(DEADLINE, self.served).await.expect("it ends").expect("in order");
    }
}

/// Everything until the server closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    // A connection that was cut is at its end as well.
    let _ = tokio::time::timeout(DEADLINE, read).await.expect("the end in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off() {
    let server = Server::start(Patience { head: IMPATIENT, ..Patience::default() }).await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET /v1/info HTTP/1.1\r\nHost: loc").await.expect("send");
    let answer = rest(&mut slow).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_does_not_end_is_a_timeout() {
    let server = Server::start(Patience { request: IMPATIENT, ..Patience::default() }).await;
    let mut slow = server.connect().await;
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token\r\nContent-Length: 9\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.expect("send");
    let answer = rest(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("\"code\":\"timeout\"") && answer.contains("\"retryable\":true"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn callers_that_hold_connections_do_not_keep_the_person_out() {
    let server = Server::start(Patience { connections: 4, ..Patience::default() }).await;
    let mut greedy = Vec::new();
    for _ in 0..12 {
        greedy.push(server.connect().await);
    }
    assert!(server.ask("GET", "/v1/info", "").await.starts_with("HTTP/1.1 200"));
    drop(greedy);
    server.stop().await;
}

#[tokio::test]
async fn a_message_nudges_the_loop_after_it_is_stored() {
    let mut server = Server::start(Patience::default()).await;
    let made = server.ask("POST", "/v1/sessions", r#"{"profile":"no-fs"}"#).await;
    let (_, body) = made.split_once("\r\n\r\n").expect("body");
    let session: serde_json::Value = serde_json::from_str(body).expect("json");
    let id = session["id"].as_str().expect("id");
    let said = server.ask("POST", &format!("/v1/sessions/{id}/messages"), r#"{"text":"hello"}"#).await;
    assert!(said.starts_with("HTTP/1.1 202"), "{said}");
    assert_eq!(server.nudges.recv().await, Some(Nudge::Wake(id.parse().expect("id"))));
    let stopped = server.ask("POST", &format!("/v1/sessions/{id}/interrupt"), "").await;
    assert!(stopped.starts_with("HTTP/1.1 202"), "{stopped}");
    assert_eq!(server.nudges.recv().await, Some(Nudge::Interrupt(id.parse().expect("id"))));
    server.stop().await;
}
