//! The one connection an executor of a local environment has.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::server::Connected;

use super::role::Caller;

/// A connected stream whose end can be waited for.
pub struct Connection {
    stream: UnixStream,
    closed: CancellationToken,
    _told: DropGuard,
}

impl Connection {
    /// Over `stream`.
    pub fn new(stream: UnixStream) -> Self {
        let closed = CancellationToken::new();
        Self { stream, _told: closed.clone().drop_guard(), closed }
    }

    /// Cancelled once the server is done with the connection, whoever closed it.
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// This connection and then none: the stream ends when the connection has closed.
    pub fn into_incoming(self) -> impl Stream<Item = io::Result<Self>> {
        let closed = self.closed();
        let end = futures::stream::once(async move { closed.cancelled().await });
        tokio_stream::once(Ok(self)).merge(end.filter_map(|()| None))
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        Caller::Parent
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
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
