//! Files and commands from outside, for the owner of a session.
//!
//! ```text
//!  caller ─TLS, token, session─▶ admit ─▶ file, command, workspace ──mTLS──▶ executor
//!                                 │ who calls, whose session, which environment, is it ready
//!                                 └─▶ activity: the session was used
//! ```
//!
//! The gateway holds no state and repeats nothing: a broken call is the caller's to repeat, under the same operation id.

mod activity;
mod admit;
mod command;
mod file;
mod forward;
mod refuse;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::v1::command_service_server::CommandServiceServer;
use mooring_proto::v1::file_service_server::FileServiceServer;
use mooring_proto::v1::workspace_service_server::WorkspaceServiceServer;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::caller::Callers;
use crate::environment::kubernetes::KubernetesResolver;
use crate::telemetry::story;
use crate::tls::Incoming;

pub use activity::{Activity, activity};

use admit::Gate;

/// Calls on one connection at once.
const CALLS: usize = 128;
/// A peer that is silent for so long is asked, and given up after as long again.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of a call's metadata.
const MAX_HEADER_BYTES: u32 = 64 * 1024;

/// What the gateway works with.
pub struct Parts {
    /// Knows who calls.
    pub callers: Callers,
    /// Finds environments; without one every call is refused.
    pub resolver: Option<Arc<KubernetesResolver>>,
    /// Is told that a session was used.
    pub activity: Activity,
}

/// Serves until `stop`, then lets open calls end.
pub(crate) async fn serve(incoming: Incoming, parts: Parts, stop: CancellationToken) {
    let gate = Arc::new(Gate::new(parts));
    let files = FileServiceServer::new(file::Files(Arc::clone(&gate)));
    let commands = CommandServiceServer::new(command::Commands(Arc::clone(&gate)));
    let workspaces = WorkspaceServiceServer::new(workspace::Workspaces(gate));
    let served = Server::builder()
        .concurrency_limit_per_connection(CALLS)
        .http2_keepalive_interval(Some(SILENCE))
        .http2_keepalive_timeout(Some(SILENCE))
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .add_service(files.max_decoding_message_size(MAX_MESSAGE_BYTES))
        .add_service(commands.max_decoding_message_size(MAX_MESSAGE_BYTES))
        .add_service(workspaces.max_decoding_message_size(MAX_MESSAGE_BYTES))
        .serve_with_incoming_shutdown(incoming.stream(), stop.cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(error = story(&error), "the gateway no longer serves");
    }
}
