//! The accept loop: nothing a peer does, and no shortage of the system, ends it.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::credentials::Credentials;
use super::refused::{Refused, RefusedTally};
use super::role::role_of;
use crate::grpc::Role;
use crate::telemetry::Tally;

/// How long a peer may take to show who it is.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Handshakes under way at one time. One takes milliseconds, so one more ends the oldest.
const MAX_HANDSHAKES: usize = 32;
/// Connections of one role at one time: replicas of a harness, or of the operator, and those they are reconnecting.
const MAX_CONNECTIONS: usize = 32;
/// How long accepting rests when the system has no descriptor or memory for one more.
const SHORTAGE_REST: Duration = Duration::from_millis(50);

/// Accepts connections and turns the allowed ones into [`Connection`]s.
pub struct Listener {
    tcp: TcpListener,
    credentials: Arc<Credentials>,
    places: Places,
    handshakes: JoinSet<Result<Connection, Refused>>,
    /// Of all handshakes, oldest first; ended ones are passed over.
    order: VecDeque<AbortHandle>,
    refused: RefusedTally,
    shortages: Tally,
    rest_until: Option<Instant>,
}

/// What came of one turn of the loop.
enum Turn {
    Closed,
    Greeted(Box<Result<Result<Connection, Refused>, JoinError>>),
    Accepted(io::Result<TcpStream>),
    Rested,
}

impl Listener {
    /// Listens on `address`.
    ///
    /// # Errors
    /// Any of bind(2) and listen(2).
    pub async fn bind(address: SocketAddr, credentials: Credentials) -> io::Result<Self> {
        Ok(Self {
            tcp: TcpListener::bind(address).await?,
            credentials: Arc::new(credentials),
            places: Places::new(),
            handshakes: JoinSet::new(),
            order: VecDeque::new(),
            refused: RefusedTally::default(),
            shortages: Tally::default(),
            rest_until: None,
        })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// Any of getsockname(2).
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The connections to come, and the loop that accepts them: it ends, and the port closes, with `close` or when nobody
    /// takes connections any more.
    pub fn into_incoming(
        self,
        close: CancellationToken,
    ) -> (ReceiverStream<io::Result<Connection>>, impl Future<Output = ()> + Send) {
        // Each one holds a place, so that there is always room.
        let (taken, incoming) = mpsc::channel(2 * MAX_CONNECTIONS);
        (ReceiverStream::new(incoming), self.accept(taken, close))
    }

    async fn accept(mut self, taken: mpsc::Sender<io::Result<Connection>>, close: CancellationToken) {
        loop {
            match self.turn(&close).await {
                Turn::Closed => return,
                Turn::Greeted(greeted) => match *greeted {
                    Ok(Ok(connection)) => {
                        if taken.send(Ok(connection)).await.is_err() {
                            return;
                        }
                    }
                    Ok(Err(refused)) => self.refused.note(refused),
                    Err(error) if error.is_cancelled() => self.refused.note(Refused::Slow),
                    Err(_) => self.refused.note(Refused::Broken),
                },
                Turn::Accepted(Ok(stream)) => self.greet(stream),
                Turn::Accepted(Err(error)) => self.survive(&error),
                Turn::Rested => self.rest_until = None,
            }
        }
    }

    async fn turn(&mut self, close: &CancellationToken) -> Turn {
        let rest_until = self.rest_until;
        tokio::select! {
            biased;
            () = close.cancelled() => Turn::Closed,
            Some(greeted) = self.handshakes.join_next() => Turn::Greeted(Box::new(greeted)),
            () = sleep_until(rest_until.unwrap_or_else(Instant::now)), if rest_until.is_some() => Turn::Rested,
            accepted = self.tcp.accept(), if rest_until.is_none() =>
                Turn::Accepted(accepted.map(|(stream, _)| stream)),
        }
    }

    fn greet(&mut self, stream: TcpStream) {
        self.order.retain(|handshake| !handshake.is_finished());
        while self.order.len() >= MAX_HANDSHAKES {
            self.shed();
        }
        let handshake = greet(stream, Arc::clone(&self.credentials), self.places.clone());
        self.order.push_back(self.handshakes.spawn(handshake));
    }

    /// Ends the handshake that has taken longest.
    fn shed(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            oldest.abort();
        }
    }

    /// Errors of one peer concern nobody else (accept(2)); a shortage gets better when peers that have shown nothing go.
    fn survive(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};

        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        if let Some(count) = self.shortages.note() {
            tracing::warn!(%error, count, "connections cannot be accepted for now");
        }
        self.shed();
        self.rest_until = Some(Instant::now() + SHORTAGE_REST);
    }
}

async fn greet(
    stream: TcpStream,
    credentials: Arc<Credentials>,
    places: Places,
) -> Result<Connection, Refused> {
    // Without it small answers wait; a peer that is gone already shows at the first read.
    let _ = stream.set_nodelay(true);
    let acceptor = TlsAcceptor::from(credentials.current());
    let greeted = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await.map_err(|_| Refused::Slow)?;
    let stream = greeted.map_err(|error| Refused::of(&error))?;
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let role = shown.and_then(role_of).ok_or(Refused::NoRole)?;
    let place = places.of(role).try_acquire_owned().map_err(|_| Refused::Crowded)?;
    Ok(Connection::new(stream, role, place))
}

/// Room for connections, by role: no caller can take what another needs.
#[derive(Clone)]
struct Places {
    harness: Arc<Semaphore>,
    operator: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        let places = || Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Self { harness: places(), operator: places() }
    }

    fn of(&self, role: Role) -> Arc<Semaphore> {
        match role {
            Role::Harness => Arc::clone(&self.harness),
            Role::Operator => Arc::clone(&self.operator),
        }
    }
}

#[cfg(test)]
mod tests;
