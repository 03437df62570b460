//! The harness's gateway, for one session.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mooring_operator_api::ExchangeStatus;
use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::gateway::{AUTHORIZATION, SESSION};
use mooring_proto::v1::command_service_client::CommandServiceClient;
use mooring_proto::v1::file_service_client::FileServiceClient;
use mooring_proto::v1::workspace_service_client::WorkspaceServiceClient;
use mooring_proto::v1::{ErrorCode, RequestContext};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};
use uuid::Uuid;

use crate::cluster::Cluster;
use crate::error::Error;

/// For the TCP handshake.
const CONNECT: Duration = Duration::from_secs(10);
/// For TCP, TLS and HTTP together.
const HANDSHAKE: Duration = Duration::from_secs(20);
/// How often a silent connection is asked whether it lives, and how long it has to answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// A connection that says with every call whose it is and which session is meant.
pub(crate) type Line = InterceptedService<Channel, Caller>;

/// The gateway, for one session.
pub(crate) struct Gateway {
    cluster: Cluster,
    /// Instead of the address the cluster tells.
    address: Option<String>,
    session: MetadataValue<Ascii>,
    line: Mutex<Line>,
}

/// Whose calls they are and which session is meant.
#[derive(Clone)]
pub(crate) struct Caller {
    authorization: MetadataValue<Ascii>,
    session: MetadataValue<Ascii>,
}

impl Interceptor for Caller {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        metadata.insert(AUTHORIZATION, self.authorization.clone());
        metadata.insert(SESSION, self.session.clone());
        Ok(request)
    }
}

/// A client under the protocol's limits for one message. What is generated for each service has no trait for it.
macro_rules! bounded {
    ($client:expr) => {
        $client.max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
    };
}

impl Gateway {
    /// Exchanges the person's credential for a token and connects.
    ///
    /// # Errors
    /// What the exchange fails with, and [`Error::Gateway`], [`Error::Unreachable`].
    pub(crate) async fn open(cluster: Cluster, address: Option<String>, name: &str) -> Result<Self, Error> {
        let session = format!("{}/{name}", cluster.namespace);
        let session = MetadataValue::try_from(session)
            .map_err(|_| Error::Usage(format!("a session cannot be named {name}")))?;
        let line = connect(&cluster, address.as_deref(), session.clone()).await?;
        Ok(Self { cluster, address, session, line: Mutex::new(line) })
    }

    /// Exchanges and connects anew.
    ///
    /// # Errors
    /// As [`Gateway::open`].
    pub(crate) async fn renew(&self) -> Result<(), Error> {
        let line = connect(&self.cluster, self.address.as_deref(), self.session.clone()).await?;
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
        Ok(())
    }

    fn line(&self) -> Line {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Files.
    pub(crate) fn files(&self) -> FileServiceClient<Line> {
        bounded!(FileServiceClient::new(self.line()))
    }

    /// Commands.
    pub(crate) fn commands(&self) -> CommandServiceClient<Line> {
        bounded!(CommandServiceClient::new(self.line()))
    }

    /// Import and Export.
    pub(crate) fn workspaces(&self) -> WorkspaceServiceClient<Line> {
        bounded!(WorkspaceServiceClient::new(self.line()))
    }

    /// Makes a call, and once more with a new token when the gateway does not accept this one.
    ///
    /// # Errors
    /// What the call is refused with.
    pub(crate) async fn call<T>(&self, call: impl AsyncFn() -> Result<T, Status>) -> Result<T, Error> {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(status) => Error::from(status),
        };
        if error.code() != Some(ErrorCode::Unauthenticated) {
            return Err(error);
        }
        self.renew().await?;
        Ok(call().await?)
    }
}

/// For a read: the present environment, whoever the token speaks for.
pub(crate) fn read() -> RequestContext {
    RequestContext::default()
}

/// For an effect, under an operation id of its own.
pub(crate) fn effect() -> RequestContext {
    RequestContext { operation_id: Uuid::new_v4().simple().to_string(), ..RequestContext::default() }
}

async fn connect(
    cluster: &Cluster,
    address: Option<&str>,
    session: MetadataValue<Ascii>,
) -> Result<Line, Error> {
    let ExchangeStatus { token, gateway, .. } = cluster.exchange().await?;
    let mut authorization = MetadataValue::try_from(format!("Bearer {token}"))
        .map_err(|_| Error::Gateway("its token is no header".to_owned()))?;
    authorization.set_sensitive(true);
    let url = address.unwrap_or(&gateway.url).to_owned();
    if !url.starts_with("https://") {
        return Err(Error::Gateway(format!("{url} is not https")));
    }
    let tls = ClientTlsConfig::new()
        .domain_name(gateway.server_name)
        .ca_certificate(Certificate::from_pem(gateway.certificate_authority));
    let endpoint = Endpoint::from_shared(url.clone())
        .and_then(|endpoint| endpoint.tls_config(tls))
        .map_err(|error| Error::Gateway(format!("{url}: {}", story(&error))))?
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    let unreachable = |cause: String| Error::Unreachable { url: url.clone(), cause };
    let channel = match tokio::time::timeout(HANDSHAKE, endpoint.connect()).await {
        Err(_) => return Err(unreachable("it does not answer".to_owned())),
        Ok(Err(error)) => return Err(unreachable(story(&error))),
        Ok(Ok(channel)) => channel,
    };
    Ok(InterceptedService::new(channel, Caller { authorization, session }))
}

/// The last cause of an error, which says what happened.
fn story(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
