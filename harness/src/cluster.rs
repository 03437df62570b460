//! Composition for a cluster: from a configuration to a gateway and a token exchange that serve, and their orderly end.
//!
//! ```text
//!  API server ─▶ exchange ─┐ mints                   Sessions ◀─watch─ API server
//!                          ▼                            │
//!                       callers ◀── who calls ── gateway ─▶ environment::kubernetes ──mTLS──▶ executors
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::{Client, Config};
use mooring_operator_api::exchange::GatewayEndpoint;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

mod health;

use crate::caller::{Callers, Reviewer, TokenKey};
use crate::environment::kubernetes::{KubernetesResolver, Links};
use crate::exchange::{self, Front};
use crate::gateway;
use crate::telemetry::story;
use crate::tls::{Incoming, Peers, Protocols, TlsFiles};

use health::Readiness;

/// For an answer of the API server.
const ANSWER: Duration = Duration::from_secs(15);
/// For a connection to it.
const CONNECT: Duration = Duration::from_secs(5);
/// For calls that are open when the harness ends.
const GRACE: Duration = Duration::from_secs(10);

/// What a harness in a cluster is made from.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Where the gateway listens; port 0 takes a free one.
    pub gateway_listen: SocketAddr,
    /// Where the token exchange listens.
    pub exchange_listen: SocketAddr,
    /// Where `/healthz` and `/readyz` are answered, without TLS.
    pub health_listen: SocketAddr,
    /// A folder with `tls.crt`, `tls.key`, `ca.crt` and `token.key`: what both servers show, who signed it, and 32 bytes that
    /// every replica has.
    pub tls: PathBuf,
    /// A folder with the certificate that executors know the harness by; it may be written later.
    pub executor_client: PathBuf,
    /// Whether environments of kind `kubernetes` are served. Otherwise every call is refused.
    pub serves_kubernetes: bool,
    /// How clients reach the gateway: `https://HOST:PORT`.
    pub gateway_url: String,
    /// The name in the gateway's certificate.
    pub gateway_name: String,
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// When there is no way to the API server, a file cannot be used, or an address is taken.
pub fn until_signal(config: ClusterConfig) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let stop = CancellationToken::new();
        let work = serve(config, stop.clone());
        tokio::pin!(work);
        tokio::select! {
            ended = &mut work => return ended,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("ending: calls that are open have {} s", GRACE.as_secs());
        stop.cancel();
        work.await
    })
}

/// Serves until `stop`.
async fn serve(config: ClusterConfig, stop: CancellationToken) -> anyhow::Result<()> {
    let (watching, client) = clients().await?;
    let gateway_files = Arc::new(TlsFiles::new(&config.tls, Protocols::Grpc));
    let exchange_files = Arc::new(TlsFiles::new(&config.tls, Protocols::Http));
    // What cannot be used is told now, not at the first call.
    gateway_files.config(&Peers::All).context("cannot use the certificate")?;
    let callers = Callers::new(token_key(&config.tls)?, Reviewer::new(client.clone()));
    let endpoint = endpoint(&config)?;

    // The watches and writers; they have no end of their own.
    let mut background = JoinSet::new();
    let (front, following) = Front::watch(watching.clone());
    background.spawn(following);
    let (activity, writing) = gateway::activity(client);
    background.spawn(writing);
    let resolver = config.serves_kubernetes.then(|| {
        let (resolver, watching) =
            KubernetesResolver::watch(watching, Links::new(config.executor_client.clone()));
        background.spawn(watching);
        Arc::new(resolver)
    });

    let mut servers = JoinSet::new();
    let readiness = Readiness::new(front.clone(), resolver.clone());
    let listener = bind(config.health_listen).await?;
    servers.spawn(health::serve(listener, readiness, stop.clone()));
    let (incoming, accepting) = Incoming::new(
        bind(config.exchange_listen).await?,
        {
            let front = front.clone();
            move || usable(&exchange_files, &front.peers()?)
        },
        stop.clone(),
    );
    servers.spawn(accepting);
    let parts = exchange::Parts { callers: callers.clone(), front, gateway: endpoint };
    servers.spawn(exchange::serve(incoming, parts, stop.clone()));
    let (incoming, accepting) = Incoming::new(
        bind(config.gateway_listen).await?,
        move || usable(&gateway_files, &Peers::All),
        stop.clone(),
    );
    servers.spawn(accepting);
    servers.spawn(gateway::serve(incoming, gateway::Parts { callers, resolver, activity }, stop.clone()));
    tracing::info!(gateway = %config.gateway_listen, exchange = %config.exchange_listen, "harness serves");

    // Until the stop, whatever ends has failed.
    tokio::select! {
        () = stop.cancelled() => {}
        Some(ended) = servers.join_next() => anyhow::bail!("a server ended: {ended:?}"),
        Some(ended) = background.join_next() => anyhow::bail!("a watch ended: {ended:?}"),
    }
    let ended = tokio::time::timeout(GRACE, async { while servers.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("some calls did not end in time and are cut");
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen at {address}"))
}

/// The configuration of this moment; a connection that cannot have one is closed.
fn usable(files: &TlsFiles, peers: &Peers) -> Option<Arc<rustls::ServerConfig>> {
    files.config(peers).inspect_err(|error| tracing::warn!(error = story(error), "cannot serve TLS")).ok()
}

fn token_key(folder: &Path) -> anyhow::Result<TokenKey> {
    let bytes = std::fs::read(folder.join("token.key")).context("cannot read token.key")?;
    TokenKey::new(&bytes).context("token.key cannot be used")
}

fn endpoint(config: &ClusterConfig) -> anyhow::Result<GatewayEndpoint> {
    let certificate_authority =
        std::fs::read_to_string(config.tls.join("ca.crt")).context("cannot read ca.crt")?;
    Ok(GatewayEndpoint {
        url: config.gateway_url.clone(),
        server_name: config.gateway_name.clone(),
        certificate_authority,
    })
}

/// One connection for watches and one for everything else, so that a long list delays no answer.
async fn clients() -> anyhow::Result<(Client, Client)> {
    let mut config = Config::infer().await.context("there is no way to an API server")?;
    config.connect_timeout = Some(CONNECT);
    let watching = Client::try_from(config.clone()).context("cannot make a client")?;
    config.read_timeout = Some(ANSWER);
    config.write_timeout = Some(ANSWER);
    let client = Client::try_from(config).context("cannot make a client")?;
    Ok((watching, client))
}
