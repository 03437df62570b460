//! A connection that holds its place among those that are open, and loses it when its peer says nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::place::Place;

/// From the end of the handshake to the first [`FIRST_WORDS`]; what comes later is for HTTP to watch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the preface of HTTP/2 (RFC 9113, section 3.4). A request of HTTP/1.1 is longer.
const FIRST_WORDS: usize = 24;

/// A connection whose handshake is over.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    /// While the peer has not said its first words: how many bytes it said, and until when.
    silence: Option<(usize, Pin<Box<Sleep>>)>,
    _place: Place,
}

impl Connection {
    pub(super) fn new(stream: TlsStream<TcpStream>, place: Place) -> Self {
        Self { stream, silence: Some((0, Box::pin(sleep(PATIENCE)))), _place: place }
    }

    /// What the other end has shown, its own certificate first.
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.stream.get_ref().1.peer_certificates().unwrap_or_default()
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(ctx, buffer);
        if let Some((said, deadline)) = &mut self.silence {
            *said += buffer.filled().len() - before;
            if *said >= FIRST_WORDS {
                self.silence = None;
            } else if polled.is_pending() && deadline.as_mut().poll(ctx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(ctx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}
