//! The serving half's side of the socket: keeps one runner connected, one after the other.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::slot::LinkSlot;
use super::socket::{Place, PlaceError};
use crate::telemetry::Tally;

/// How long a connected runner may take to say hello. It does so at its start, before anything else.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);
/// Rest after the system refused a socket or a connection.
const RETRY: Duration = Duration::from_millis(100);

/// Why the runner's socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Its path cannot be one.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused it.
    #[error("cannot make the runner's socket")]
    Open(#[source] io::Error),
}

/// Listens for the runner. The socket is on disk exactly while no runner is connected.
pub struct Host {
    place: Place,
    socket: Option<AsyncFd<OwnedFd>>,
    strangers: Tally,
}

impl Host {
    /// Makes the socket at `path`, mode 0600. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let place = Place::new(path)?;
        let socket = open(&place).map_err(HostError::Open)?;
        Ok(Self { place, socket: Some(socket), strangers: Tally::default() })
    }

    /// Puts every runner that connects into `slot`, and takes it out when it is lost. Ends with `close`; a runner that is
    /// connected then stays.
    pub async fn run(mut self, slot: LinkSlot, close: CancellationToken) {
        let _ = close.run_until_cancelled(self.serve(&slot)).await;
        self.shut();
    }

    async fn serve(&mut self, slot: &LinkSlot) {
        loop {
            let Some(link) = self.next_runner().await else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            self.shut();
            tracing::info!("a runner is connected");
            slot.set(Some(link.clone()));
            link.closed().await;
            slot.set(None);
        }
    }

    /// The next runner that has said hello in a version that is spoken. `None` after any failure.
    async fn next_runner(&mut self) -> Option<Link> {
        if self.socket.is_none() {
            let opened = open(&self.place);
            self.socket =
                opened.inspect_err(|error| tracing::error!(%error, "no socket for the runner")).ok();
        }
        let accepted = accept(&self.place, self.socket.as_ref()?).await;
        let connection = match accepted {
            Ok(Some(connection)) => connection,
            Ok(None) => {
                if let Some(count) = self.strangers.note() {
                    tracing::warn!(count, "something that is no runner connected to its socket");
                }
                return None;
            }
            Err(error) => {
                tracing::warn!(%error, "the runner's connection cannot be taken");
                return None;
            }
        };
        let link = Link::connect(connection)
            .inspect_err(|error| tracing::warn!(%error, "the runner's connection cannot be used"))
            .ok()?;
        if let Ok(Ok(_)) = tokio::time::timeout(HELLO_PATIENCE, link.capabilities()).await {
            return Some(link);
        }
        tracing::warn!("a runner connected and did not say hello");
        link.close();
        None
    }

    fn shut(&mut self) {
        self.socket = None;
        if let Err(error) = self.place.clear() {
            tracing::error!(%error, "the runner's socket cannot be removed");
        }
    }
}

fn open(place: &Place) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "tokio cannot see that an `OwnedFd` keeps its descriptor")]
    // SAFETY: `as_raw_fd` of an `OwnedFd` is one open descriptor for as long as it is owned, and the `AsyncFd` owns it.
    let socket = unsafe { AsyncFd::register_with_interest(place.open()?, Interest::READABLE) }?;
    Ok(socket)
}

async fn accept(place: &Place, socket: &AsyncFd<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    let taken = socket.async_io(Interest::READABLE, |socket| match place.accept(socket) {
        Err(Errno::CONNABORTED) => Err(io::ErrorKind::WouldBlock.into()),
        other => other.map_err(io::Error::from),
    });
    taken.await
}
