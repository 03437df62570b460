//! Connections: how many, how slow, and how they end.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::Patience;
use super::peer::Ends;

/// Header lines of a request.
const MAX_HEADERS: usize = 64;
/// Bytes of a request's head that are read at all.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Pause after the system refused to accept, for example for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// One connection, as the gate sees it.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// Both ends.
    pub(crate) ends: Ends,
    proven: Arc<AtomicBool>,
}

impl Connection {
    /// A good token was shown on it: it is not closed to make room.
    pub(crate) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }
}

/// Serves until `drain` is cancelled, then lets open requests end.
///
/// HTTP/1.1 only: the API needs none of HTTP/2, nor its floods.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    patience: Patience,
    drain: CancellationToken,
) {
    let mut open = Open::new(patience.connections);
    let mut connections = JoinSet::new();
    loop {
        let (stream, ends) = tokio::select! {
            () = drain.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener), if open.has_room(connections.len()) => accepted,
        };
        let (connection, close) = open.enter(ends);
        connections.spawn(converse(stream, connection, patience, router.clone(), close, drain.clone()));
    }
    drop(listener);
    let ended =
        tokio::time::timeout(patience.drain, async { while connections.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!(connections = connections.len(), "connections that did not end are closed");
    }
}

/// The open connections, oldest first. When there are too many, the oldest on which nobody showed a good token is closed:
/// a process without the token can then not keep the person out by holding connections.
struct Open {
    most: usize,
    entries: VecDeque<(Arc<AtomicBool>, CancellationToken)>,
}

impl Open {
    fn new(most: usize) -> Self {
        Self { most, entries: VecDeque::new() }
    }

    /// Whether one more can be served, now that `count` are open; closes one if that makes room.
    fn has_room(&mut self, count: usize) -> bool {
        if count < self.most {
            return true;
        }
        self.entries.retain(|(proven, _)| Arc::strong_count(proven) > 1);
        let unproven = self.entries.iter().position(|(proven, _)| !proven.load(Ordering::Relaxed));
        if let Some((_, close)) = unproven.and_then(|at| self.entries.remove(at)) {
            close.cancel();
        }
        // It is gone when its task has ended, which wakes the loop.
        false
    }

    fn enter(&mut self, ends: Ends) -> (Connection, CancellationToken) {
        if self.entries.len() >= self.most.saturating_mul(2) {
            self.entries.retain(|(proven, _)| Arc::strong_count(proven) > 1);
        }
        let (proven, close) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        self.entries.push_back((Arc::clone(&proven), close.clone()));
        (Connection { ends, proven }, close)
    }
}

/// The next connection. Cancel-safe.
async fn accept(listener: &TcpListener) -> (TcpStream, Ends) {
    loop {
        let accepted = listener.accept().await.and_then(|(stream, theirs)| {
            let ours = stream.local_addr()?;
            Ok((stream, Ends { ours, theirs }))
        });
        match accepted {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse(
    stream: TcpStream,
    connection: Connection,
    patience: Patience,
    router: Router,
    close: CancellationToken,
    drain: CancellationToken,
) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    let service = TowerToHyperService::new(Connected { router, connection });
    let conversation = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(conversation);
    let result = tokio::select! {
        result = conversation.as_mut() => result,
        () = close.cancelled() => return,
        () = drain.cancelled() => {
            conversation.as_mut().graceful_shutdown();
            conversation.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The router, with the connection beside each request.
#[derive(Clone)]
struct Connected {
    router: Router,
    connection: Connection,
}

impl<B> Service<Request<B>> for Connected
where
    Router: Service<Request<B>, Response = Response<axum::body::Body>, Error = Infallible>,
{
    type Response = Response<axum::body::Body>;
    type Error = Infallible;
    type Future = <Router as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <Router as Service<Request<B>>>::poll_ready(&mut self.router, ctx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.connection.clone());
        self.router.call(request)
    }
}
