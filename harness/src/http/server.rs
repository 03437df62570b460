//! Connections: how many, how slow, and how they end.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::peer::Ends;

/// Connections at once; more wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 512;
/// Time to send a request's head, and to stay idle between two requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Header lines of a request.
const MAX_HEADERS: usize = 64;
/// Bytes of a request's head that are read at all.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Time that open requests have when the server is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the system refused to accept, for example for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `drain` is cancelled, then lets open requests end.
///
/// HTTP/1.1 only: the API needs none of HTTP/2, nor its floods.
pub(crate) async fn serve(listener: TcpListener, router: Router, drain: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let (stream, ends, permit) = tokio::select! {
            () = drain.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &permits) => accepted,
        };
        connections.spawn(converse(stream, ends, permit, router.clone(), drain.clone()));
    }
    drop(listener);
    let ended =
        tokio::time::timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!(connections = connections.len(), "connections that did not end are closed");
    }
}

/// The next connection that can be served. Cancel-safe.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> (TcpStream, Ends, OwnedSemaphorePermit) {
    let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        let accepted = listener.accept().await.and_then(|(stream, theirs)| {
            let ours = stream.local_addr()?;
            Ok((stream, Ends { ours, theirs }))
        });
        match accepted {
            Ok((stream, ends)) => return (stream, ends, permit),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse(
    stream: TcpStream,
    ends: Ends,
    _permit: OwnedSemaphorePermit,
    router: Router,
    drain: CancellationToken,
) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES);
    let service = TowerToHyperService::new(Connected { router, ends });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = drain.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The router, with both ends of the connection beside each request.
#[derive(Clone)]
struct Connected {
    router: Router,
    ends: Ends,
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
        request.extensions_mut().insert(self.ends);
        self.router.call(request)
    }
}
