//! Serving as a child of the harness, over sockets that it handed down.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use rustix::net::SocketType;
use tokio::signal::unix::{SignalKind, signal};

use super::Server;
use crate::args::Inherited;
use crate::environment::Site;
use crate::grpc::Connection;
use crate::inherited::take_socket;
use crate::runner::{Link, LinkSlot};

/// The two sockets, owned.
pub(super) struct Sockets {
    grpc: OwnedFd,
    link: OwnedFd,
}

impl Sockets {
    /// Takes them by their numbers. Meant for the start of the process.
    pub(super) fn take(inherited: Inherited) -> anyhow::Result<Self> {
        let grpc = take_socket(inherited.grpc_fd, SocketType::STREAM).context("taking the gRPC socket")?;
        let link =
            take_socket(inherited.runner_fd, SocketType::SEQPACKET).context("taking the runner's socket")?;
        Ok(Self { grpc, link })
    }
}

/// Serves until the connection closes or SIGTERM has drained it.
pub(super) async fn serve(sockets: Sockets) -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let slot = LinkSlot::holding(Link::connect(sockets.link).context("connecting to the runner")?);
    let stream = UnixStream::from(sockets.grpc);
    stream.set_nonblocking(true).context("preparing the gRPC socket")?;
    let stream = tokio::net::UnixStream::from_std(stream).context("preparing the gRPC socket")?;
    let connection = Connection::new(stream);
    let closed = connection.closed();

    let (server, services) = Server::new(Site::Folders, slot.clone())?;
    let mut served = tokio::spawn(services.serve(connection.into_incoming(), server.shut.clone()));
    tokio::select! {
        () = closed.cancelled() => tracing::info!("the connection closed"),
        served = &mut served => served.context("the server panicked")?.context("serving")?,
        _ = terminated.recv() => server.drain(served).await,
    }
    slot.close();
    Ok(())
}
