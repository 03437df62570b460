//! The gRPC edge: services, limits and how an error looks outside.

mod call;
mod command_service;
mod connection;
mod file_service;
mod quota;
mod role;
mod status;
mod workspace_service;

use std::sync::Arc;
use std::time::Duration;

use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::v1::command_service_server::{CommandServiceServer, SERVICE_NAME as COMMANDS};
use mooring_proto::v1::file_service_server::{FileServiceServer, SERVICE_NAME as FILES};
use mooring_proto::v1::workspace_service_server::{SERVICE_NAME as WORKSPACES, WorkspaceServiceServer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

pub use call::Calls;
pub use command_service::CommandServiceImpl;
pub use connection::Connection;
pub use file_service::FileServiceImpl;
pub use role::{Caller, Role, Roles};
pub use workspace_service::WorkspaceServiceImpl;

use crate::commands::Commands;
use crate::environment::Environment;

/// Calls of one connection at one time, streams included. Further ones wait at the caller (RFC 9113, section 5.1.2).
const MAX_CALLS: u32 = 256;
/// The longest a call may take to answer, or to begin its stream, when its caller names no deadline.
const ANSWER_LIMIT: Duration = Duration::from_mins(10);
/// Bytes of request headers. A peer that sends much more loses the connection, and with it the executor, so this is far
/// above what any caller has reason to send.
const MAX_HEADER_BYTES: u32 = 256 * 1024;
/// Bytes in flight towards us: per call, and in all.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Streams that a peer may open and reset before they were looked at (CVE-2023-44487).
const MAX_RESET_STREAMS: usize = 64;
/// How long a silent peer is believed to live.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// All services over one environment.
pub struct Services {
    environment: Arc<Environment>,
    commands: Arc<Commands>,
    calls: Calls,
    reporter: HealthReporter,
}

impl Services {
    /// The services of `environment` and its `commands`.
    pub fn new(environment: Arc<Environment>, commands: Arc<Commands>) -> Self {
        Self { environment, commands, calls: Calls::new(), reporter: HealthReporter::new() }
    }

    /// The calls that are being served.
    pub fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// What `grpc.health.v1` tells.
    pub fn health(&self) -> Health {
        Health(self.reporter.clone())
    }

    /// Serves the connections of `incoming` until there are no more and all have closed, or until `shut` and the last call
    /// have ended. Each connection says who calls, and each call is asked for in [`Caller::may_call`].
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn serve<C>(
        self,
        incoming: impl Stream<Item = std::io::Result<C>>,
        shut: CancellationToken,
    ) -> Result<(), tonic::transport::Error>
    where
        C: AsyncRead + AsyncWrite + Connected<ConnectInfo = Caller> + Unpin + Send + 'static,
    {
        self.health().set(ServingStatus::Serving).await;
        let health = tonic_health::pb::health_server::HealthServer::new(
            tonic_health::server::HealthService::from_health_reporter(self.reporter),
        );
        let commands = CommandServiceServer::new(CommandServiceImpl::new(
            Arc::clone(&self.environment),
            Arc::clone(&self.commands),
        ));
        let files = FileServiceServer::new(FileServiceImpl::new(Arc::clone(&self.environment)));
        let workspaces =
            WorkspaceServiceServer::new(WorkspaceServiceImpl::new(self.environment, self.commands));
        Server::builder()
            .max_concurrent_streams(MAX_CALLS)
            .timeout(ANSWER_LIMIT)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .http2_max_pending_accept_reset_streams(Some(MAX_RESET_STREAMS))
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
            .layer(self.calls)
            .layer(Roles::default())
            .add_service(health)
            .add_service(
                commands
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                files
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                workspaces
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .serve_with_incoming_shutdown(incoming, shut.cancelled_owned())
            .await
    }
}

/// What `grpc.health.v1` tells about the executor as a whole (the empty service name) and about each service.
pub struct Health(HealthReporter);

impl Health {
    async fn set(&self, status: ServingStatus) {
        for service in ["", COMMANDS, FILES, WORKSPACES] {
            self.0.set_service_status(service, status).await;
        }
    }

    /// Tells that no new work is taken.
    pub async fn stop(&self) {
        self.set(ServingStatus::NotServing).await;
    }
}
