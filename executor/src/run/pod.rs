//! Serving in a pod: TLS connections, a runner in the container beside this one, a volume that both mount.

use std::os::unix::ffi::OsStringExt as _;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Server;
use crate::args::Pod;
use crate::environment::{Site, Volume};
use crate::runner::{Host, LinkSlot};
use crate::tls::{Credentials, Listener};

/// Serves until SIGTERM has drained it.
pub(super) async fn serve(pod: Pod) -> anyhow::Result<()> {
    // First, since a process 1 without a handler never hears it (pid_namespaces(7)).
    let mut terminated = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let environment = std::env::vars_os().map(|(name, value)| (name.into_vec(), value.into_vec()));
    let volume = Volume::new(&pod.workspace, environment).context("opening the volume")?;
    let credentials = Credentials::open(&pod.tls).context("reading the certificate")?;
    let host = Host::open(&pod.runner_socket)?;
    let listener = Listener::bind(pod.listen, credentials).await.context("listening")?;
    tracing::info!(address = %listener.address().context("listening")?, "listening");

    let slot = LinkSlot::empty();
    let (server, services) = Server::new(Site::Volume(volume), slot.clone())?;
    let (no_more_runners, no_more_connections) = (CancellationToken::new(), CancellationToken::new());
    let hosting = tokio::spawn(host.run(slot.clone(), no_more_runners.clone()));
    let (incoming, accepting) = listener.into_incoming(no_more_connections.clone());
    let accepting = tokio::spawn(accepting);
    let mut served = tokio::spawn(services.serve(incoming, server.shut.clone()));
    tokio::select! {
        served = &mut served => served.context("the server panicked")?.context("serving")?,
        _ = terminated.recv() => {
            no_more_connections.cancel();
            accepting.await.context("the listener panicked")?;
            server.drain(served).await;
        }
    }
    no_more_runners.cancel();
    slot.close();
    hosting.await.context("the runner's host panicked")
}
