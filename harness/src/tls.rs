//! Connections that are accepted under TLS 1.3.

mod connection;
mod files;
mod place;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use crate::telemetry::story;

pub(crate) use connection::Connection;
pub(crate) use files::{Peers, Protocols};
pub use files::{TlsError, TlsFiles};
use place::Places;

/// For a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections that are ready and not taken.
const READY: usize = 16;
/// Pause after the system refused to accept, for example for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections whose handshake is over.
pub(crate) struct Incoming {
    ready: mpsc::Receiver<Connection>,
}

impl Incoming {
    /// Connections to `listener`, each under the configuration of its moment, and what accepts them until `stop`. Without a
    /// configuration a connection is closed.
    pub(crate) fn new(
        listener: TcpListener,
        config: impl Fn() -> Option<Arc<ServerConfig>> + Send + 'static,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, ready) = mpsc::channel(READY);
        let places = Places::default();
        let accepting = async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let (stream, peer) = match accepted {
                    Ok((stream, peer)) => (stream, peer.ip()),
                    Err(error) => {
                        tracing::warn!(error = story(&error), "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                // Without a place or a configuration it is closed.
                let (Some(place), Some(config)) = (places.take(peer), config()) else { continue };
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Some(stream) = shake(stream, config).await {
                        // Nobody takes it any more: the program ends.
                        let _ = sender.send(Connection::new(stream, place)).await;
                    }
                });
            }
        };
        (Self { ready }, accepting)
    }

    /// As a stream.
    pub(crate) fn stream(self) -> Pin<Box<dyn Stream<Item = std::io::Result<Connection>> + Send>> {
        Box::pin(ReceiverStream::new(self.ready).map(Ok))
    }

    /// The next one; `None` once nothing accepts any more. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Connection> {
        self.ready.recv().await
    }
}

async fn shake(stream: TcpStream, config: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    // Small messages go out at once; one that cannot have it is only slower.
    let _ = stream.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(error = story(&error), "a handshake failed");
            None
        }
        Err(_) => None,
    }
}
