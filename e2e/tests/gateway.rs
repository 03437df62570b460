//! A harness as a cluster starts it, with an API server that is away: what its doors let through, and what it never does.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use mooring_e2e::execution::{Authority, Executor, Gateway, Place, Program, Target, code};
use mooring_e2e::fixture::{await_condition, binary};
use mooring_proto::v1::ErrorCode;
use ring::hmac;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const DEADLINE: Duration = Duration::from_secs(20);
const NAME: &str = "mooring-harness.mooring-system.svc";
const KEY: [u8; 32] = [7; 32];

/// A running harness. Dropping it ends it.
struct Harness {
    process: Child,
    _folder: tempfile::TempDir,
    gateway: Gateway,
    exchange: SocketAddr,
    health: SocketAddr,
}

impl Drop for Harness {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_address() -> anyhow::Result<SocketAddr> {
    // Free a moment ago; nothing else on this machine is told of it.
    Ok(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

impl Harness {
    /// Serves environments of these kinds.
    async fn start(environments: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mooring-gateway-").tempdir()?;
        let authority = Authority::make()?;
        let server = authority.certify_server(NAME)?;
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes);
        write("tls.crt", server.certificate.as_bytes())?;
        write("tls.key", server.key.as_bytes())?;
        write("ca.crt", server.authority.as_bytes())?;
        write("token.key", &KEY)?;
        let [gateway, exchange, health, nobody] =
            [free_address()?, free_address()?, free_address()?, free_address()?];
        let kubeconfig = format!(
            "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
             clusters: [{{name: a, cluster: {{server: \"https://{nobody}\"}}}}], users: [{{name: a, user: {{token: t}}}}]}}"
        );
        write("kubeconfig", kubeconfig.as_bytes())?;
        let mut command = Command::new(binary("mooring")?);
        command.arg("serve").env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        command.env("KUBECONFIG", folder.path().join("kubeconfig")).env("MOORING_TLS", folder.path());
        command.env("MOORING_EXECUTOR_CLIENT", folder.path()).env("MOORING_ENVIRONMENTS", environments);
        command.env("MOORING_GATEWAY_URL", format!("https://{gateway}")).env("MOORING_GATEWAY_NAME", NAME);
        for (name, address) in [("GATEWAY", gateway), ("EXCHANGE", exchange), ("HEALTH", health)] {
            command.env(format!("MOORING_{name}_LISTEN"), address.to_string());
        }
        let process = command.spawn().context("start a harness")?;
        let gateway = Gateway { address: gateway, name: NAME.to_owned(), authority: server.authority };
        let harness = Self { process, _folder: folder, gateway, exchange, health };
        let lives = async || harness.get("/healthz").await.ok().filter(|(code, _)| *code == 200);
        await_condition(DEADLINE, "the harness lives", lives).await?;
        Ok(harness)
    }

    async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let answer = reqwest::get(format!("http://{}{path}", self.health)).await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    async fn client(&self, token: &str) -> anyhow::Result<Executor> {
        self.gateway.connect(&Place::Here, token, "agents/first", Target::default()).await
    }

    /// A connection to a door, the handshake over.
    async fn converse(
        &self,
        door: SocketAddr,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&[u8]],
    ) -> anyhow::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.gateway.authority.as_bytes()) {
            roots.add(certificate?)?;
        }
        let mut config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = TcpStream::connect(door).await?;
        Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(NAME)?, stream).await?)
    }

    /// What a door that speaks this version answers to a request.
    async fn ask(
        &self,
        door: SocketAddr,
        version: &'static SupportedProtocolVersion,
    ) -> anyhow::Result<Vec<u8>> {
        let mut stream = self.converse(door, &[version], &[b"http/1.1", b"h2"]).await?;
        stream.write_all(b"GET /apis HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

/// A token as the exchange makes it.
fn token(key: &[u8], user: &str, seconds_from_now: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let exp = i64::try_from(now.as_secs()).expect("a time") + seconds_from_now;
    let claims = base64(serde_json::json!({"user": user, "exp": exp}).to_string().as_bytes());
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), claims.as_bytes());
    format!("{claims}.{}", base64(code.as_ref()))
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

async fn refused(client: &Executor) -> anyhow::Result<ErrorCode> {
    let read = client.read("README.md").await.err().context("a file was read")?;
    let run = client.start(&Program::argv(["true"])).await.err().context("a command was started")?;
    let write = client.write("x", b"x").await.err().context("a file was written")?;
    let code_of = code(&read).with_context(|| format!("{read:?}"))?;
    ensure!([code(&run), code(&write)] == [Some(code_of); 2], "{run:?} {write:?}");
    Ok(code_of)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_resolver_nothing_is_served_and_nothing_here_is_touched() {
    mooring_e2e::install_crypto();
    let harness = Harness::start("").await.expect("a harness");
    let client = harness.client(&token(&KEY, "ana", 60)).await.expect("a connection");
    assert_eq!(refused(&client).await.expect("refused"), ErrorCode::NoResolver);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_believed_only_under_its_key_and_in_its_time() {
    mooring_e2e::install_crypto();
    let harness = Harness::start("kubernetes").await.expect("a harness");
    for bad in [token(&[8; 32], "ana", 60), token(&KEY, "ana", -1), token(&KEY, "", 60)] {
        let client = harness.client(&bad).await.expect("a connection");
        assert_eq!(refused(&client).await.expect("refused"), ErrorCode::Unauthenticated);
    }
    // Of Sessions nothing is known while the API server is away; that is no reason to say that there are none.
    let client = harness.client(&token(&KEY, "ana", 60)).await.expect("a connection");
    assert_eq!(refused(&client).await.expect("refused"), ErrorCode::NotReady);
    // Another's token cannot be checked at all.
    let client = harness.client("a.b.c").await.expect("a connection");
    assert_eq!(refused(&client).await.expect("refused"), ErrorCode::NotReady);
    let (code, why) = harness.get("/readyz").await.expect("an answer");
    assert_eq!(code, 503, "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_doors_speak_tls_1_3_alone_and_the_exchange_to_no_stranger() {
    mooring_e2e::install_crypto();
    let harness = Harness::start("kubernetes").await.expect("a harness");
    for door in [harness.gateway.address, harness.exchange] {
        assert!(harness.ask(door, &version::TLS12).await.is_err(), "TLS 1.2 at {door}");
        let plain = reqwest::get(format!("http://{door}/apis")).await;
        assert!(plain.is_err(), "plain text at {door}: {plain:?}");
    }
    // While nobody knows what the API server's own certificate looks like, nobody is spoken to.
    assert!(harness.ask(harness.exchange, &version::TLS13).await.is_err());
    let plain = Executor::connect_plain(harness.gateway.address, &Place::Here, Target::default()).await;
    if let Ok(plain) = plain {
        assert!(plain.list("").await.is_err());
    }
}

/// Whoever connects and then says nothing, or half of what begins a conversation, is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_word_is_closed() {
    mooring_e2e::install_crypto();
    let harness = Harness::start("kubernetes").await.expect("a harness");
    for words in ["", "PRI * HTTP"] {
        let mut stream = harness
            .converse(harness.gateway.address, rustls::DEFAULT_VERSIONS, &[b"h2"])
            .await
            .expect("a handshake");
        stream.write_all(words.as_bytes()).await.expect("written");
        let closed = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "still open after {DEADLINE:?}");
    }
}
