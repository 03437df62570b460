//! One verified connection: who called, and how long it may be silent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use crate::grpc::{Caller, Role};

/// A connection from which nothing came for so long is dead: even an idle peer answers the pings of HTTP/2, sent every
/// 30 s, and one that never begins to speak HTTP/2 gets none.
pub(super) const IDLE_LIMIT: Duration = Duration::from_mins(1);

/// A connection of a caller with a role.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    role: Role,
    idle: Pin<Box<Sleep>>,
    /// The place among the connections of the role, given back when dropped.
    _place: OwnedSemaphorePermit,
}

impl Connection {
    pub(super) fn new(stream: TlsStream<TcpStream>, role: Role, place: OwnedSemaphorePermit) -> Self {
        Self { stream, role, idle: Box::pin(sleep(IDLE_LIMIT)), _place: place }
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        Caller::Remote(self.role)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) {
            self.idle.as_mut().reset(Instant::now() + IDLE_LIMIT);
            return Poll::Ready(read);
        }
        ready!(self.idle.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
