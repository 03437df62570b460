//! A connection to one executor, for one environment.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use hyper_util::rt::TokioIo;
use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::v1::{
    Actor, EnvironmentRef, Lease, RequestContext, actor::Actor as ActorKind,
    command_service_client::CommandServiceClient, file_service_client::FileServiceClient,
    workspace_service_client::WorkspaceServiceClient,
};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Uri};
use tonic::{Request, Status};
use tonic_health::pb::health_client::HealthClient;

use super::{Identity, Place};

/// From a connection to its first use: the handshake, on a busy machine.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Counts the operations of this process: an executor knows the ids of all its callers.
static OPERATIONS: AtomicU64 = AtomicU64::new(0);

/// What a caller says about whom it wants to reach. Compared exactly by the executor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// The environment. One that is all empty is not sent.
    pub environment: EnvironmentRef,
    /// The epoch of its executor.
    pub epoch: u64,
    /// A workspace in it; empty: the main one.
    pub workspace_id: String,
}

/// A connection, and what each call on it carries.
pub type Wire = InterceptedService<Channel, Words>;

/// The metadata of a call: none to an executor, who and for which session to a gateway.
#[derive(Clone, Debug, Default)]
pub struct Words(pub(super) Vec<(&'static str, String)>);

impl Interceptor for Words {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for (name, value) in &self.0 {
            let value = value.parse().map_err(|_| Status::invalid_argument("not a value of metadata"))?;
            request.metadata_mut().insert(*name, value);
        }
        Ok(request)
    }
}

/// A client of one executor. Clones share the connection.
#[derive(Clone)]
pub struct Executor {
    channel: Wire,
    /// On whose behalf it calls, where it may say so.
    actor: Option<Actor>,
    /// What every call says.
    pub target: Target,
}

impl Executor {
    /// Connects over mutual TLS: shows `identity`, and believes the executor when it is certified as `server_name`.
    ///
    /// # Errors
    /// When no connection comes about, the handshake included. A server that does not accept the certificate may say so only
    /// at the first call (RFC 8446, section 4.4.4: the client's side of a handshake is over first).
    pub async fn connect(
        address: SocketAddr,
        server_name: &str,
        identity: &Identity,
        place: &Place,
        target: Target,
    ) -> anyhow::Result<Self> {
        crate::install_crypto();
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&identity.authority))
            .identity(tonic::transport::Identity::from_pem(&identity.certificate, &identity.key))
            .domain_name(server_name);
        let endpoint = Endpoint::from_shared(format!("https://{address}"))?.tls_config(tls).context("TLS")?;
        Self::over(endpoint, address, place, target).await
    }

    /// Connects without TLS, as nobody should be able to.
    ///
    /// # Errors
    /// When no connection comes about.
    pub async fn connect_plain(address: SocketAddr, place: &Place, target: Target) -> anyhow::Result<Self> {
        Self::over(Endpoint::from_shared(format!("http://{address}"))?, address, place, target).await
    }

    async fn over(
        endpoint: Endpoint,
        address: SocketAddr,
        place: &Place,
        target: Target,
    ) -> anyhow::Result<Self> {
        let channel = dial(endpoint, address, place).await?;
        let lease = Lease { session_id: "e2e".to_owned(), lease_epoch: 1 };
        let actor = Some(Actor { actor: Some(ActorKind::Lease(lease)) });
        Ok(Self { channel: InterceptedService::new(channel, Words::default()), actor, target })
    }

    /// The executor of a session, reached through a gateway under `words`.
    pub(super) fn behind(channel: Channel, words: Words, target: Target) -> Self {
        Self { channel: InterceptedService::new(channel, words), actor: None, target }
    }

    /// The same connection with other words.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Target)) -> Self {
        let mut other = self.clone();
        change(&mut other.target);
        other
    }

    /// The context of a new operation.
    pub fn context(&self) -> RequestContext {
        let number = OPERATIONS.fetch_add(1, Ordering::Relaxed);
        RequestContext {
            environment: Some(self.target.environment.clone()).filter(|it| *it != EnvironmentRef::default()),
            epoch: self.target.epoch,
            workspace_id: self.target.workspace_id.clone(),
            actor: self.actor.clone(),
            operation_id: format!("e2e-{}-{number}", std::process::id()),
        }
    }

    /// Files, as the protocol has them.
    pub fn files(&self) -> FileServiceClient<Wire> {
        FileServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Commands, as the protocol has them.
    pub fn commands(&self) -> CommandServiceClient<Wire> {
        CommandServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Workspaces, as the protocol has them.
    pub fn workspaces(&self) -> WorkspaceServiceClient<Wire> {
        WorkspaceServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// Health.
    pub fn health(&self) -> HealthClient<Wire> {
        HealthClient::new(self.channel.clone())
    }
}

/// A channel to `address` from `place`.
pub(super) async fn dial(endpoint: Endpoint, address: SocketAddr, place: &Place) -> anyhow::Result<Channel> {
    let place = place.clone();
    let connector = tower::service_fn(move |_: Uri| {
        let place = place.clone();
        async move { place.connect(address).await.map(TokioIo::new).map_err(std::io::Error::other) }
    });
    let channel = endpoint.connect_timeout(CONNECT_DEADLINE).connect_with_connector(connector).await;
    channel.with_context(|| format!("connect to {address}"))
}
