//! A harness that serves, and a client that sends exactly what it is told.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_harness::run::{Harness, LocalConfig, ModelChoice};
use mooring_harness::store::{Store, wall_clock};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) harness: Harness,
    pub(crate) token: String,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Server {
    /// Serves `tree` with its state in `state`, two folders side by side. The model is where nobody listens.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(folder.path().join("tree/inner")).expect("tree");
        std::fs::create_dir_all(folder.path().join("outside")).expect("outside");
        std::os::unix::fs::symlink(folder.path().join("outside"), folder.path().join("tree/out"))
            .expect("link");
        std::fs::write(folder.path().join("tree/file"), "x").expect("file");
        Self::over(folder).await
    }

    /// The same folders, served anew.
    pub(crate) async fn again(self) -> Self {
        self.harness.stop().await;
        Self::over(self.folder).await
    }

    async fn over(folder: tempfile::TempDir) -> Self {
        let harness = Harness::start(config(folder.path())).await.expect("start");
        let token = std::fs::read_to_string(harness.token_file()).expect("token");
        Self { harness, token, folder }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.harness.address()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A second hand on the store, as the agent loop's.
    pub(crate) async fn store(&self) -> Store {
        Store::open(&self.path("state/mooring.db"), wall_clock()).await.expect("store")
    }

    /// Asks with the token.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        self.send(method, path, &[("Host", "localhost"), ("Authorization", &bearer)], body).await
    }

    /// Asks with these headers alone.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").expect("text");
        }
        write!(request, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("text");
        raw(self.address(), request.as_bytes()).await
    }

    /// Makes a session and gives its id.
    pub(crate) async fn session(&self, body: &str) -> String {
        let reply = self.ask("POST", "/v1/sessions", body).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.body["id"].as_str().expect("id").to_owned()
    }
}

pub(crate) fn config(folder: &Path) -> LocalConfig {
    mooring_harness::run::install_crypto();
    LocalConfig {
        tree: folder.join("tree"),
        listen: "127.0.0.1:0".parse().expect("address"),
        state: folder.join("state"),
        model: Some(ModelChoice {
            base_url: "http://127.0.0.1:9/v1".to_owned(),
            name: "scripted".to_owned(),
            provider_key: None,
            key_file: None,
        }),
        read_only: Vec::new(),
        executor: folder.join("no-executor"),
        variables: Vec::new(),
    }
}

/// Sends bytes and reads the one answer to its end.
pub(crate) async fn raw(address: SocketAddr, request: &[u8]) -> Reply {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("connect");
        // A server may answer and close before it has read everything.
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8(bytes).expect("text")
    };
    let text = tokio::time::timeout(DEADLINE, exchange).await.expect("an answer in time");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
}
