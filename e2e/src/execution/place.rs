//! From where on the network a connection is made.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::{AsyncRead, AsyncWrite, Join, ReadBuf, join};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A connection within one machine, under full load too.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// A place on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where this process is.
    Here,
    /// A network namespace of this machine, such as that of a pod: what is sent comes from that pod's address, and the
    /// cluster's policies decide on it as on the pod's own traffic. The path is that of the namespace (namespaces(7)). Needs
    /// root.
    Inside(PathBuf),
    /// A program that connects to the address and port which it is given after these words, and carries bytes both ways
    /// between there and its standard input and output: netcat in a pod, by way of kubectl.
    Relay(Vec<String>),
}

/// Bytes both ways.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Place {
    /// Of the process `pid`.
    pub fn of_process(pid: u32) -> Self {
        Self::Inside(PathBuf::from(format!("/proc/{pid}/ns/net")))
    }

    /// Connects to `address` from there.
    ///
    /// # Errors
    /// When the place is gone, or nobody takes the connection within five seconds. A relay's connection is found to be none
    /// when it is used.
    pub async fn connect(&self, address: SocketAddr) -> anyhow::Result<Box<dyn Duplex>> {
        if let Self::Relay(words) = self {
            return Ok(Box::new(Relayed::start(words, address)?));
        }
        let stream = self.within(move || TcpStream::connect_timeout(&address, CONNECT_DEADLINE)).await;
        let stream = stream.with_context(|| format!("connect to {address} from {self:?}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Box::new(tokio::net::TcpStream::from_std(stream)?))
    }

    /// Listens on `address` there.
    ///
    /// # Errors
    /// When the place is gone, is a relay, or the address is not to be had.
    pub async fn listen(&self, address: SocketAddr) -> anyhow::Result<tokio::net::TcpListener> {
        let listener = self.within(move || TcpListener::bind(address)).await;
        let listener = listener.with_context(|| format!("listen on {address} in {self:?}"))?;
        listener.set_nonblocking(true)?;
        Ok(tokio::net::TcpListener::from_std(listener)?)
    }

    /// A socket stays where it was made, so only the thread that makes it goes there, and ends with it.
    async fn within<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let path = match self {
            Self::Here => return tokio::task::spawn_blocking(make).await?.map_err(Into::into),
            Self::Inside(path) => path.clone(),
            Self::Relay(_) => bail!("a relay makes no sockets of ours"),
        };
        let thread = std::thread::spawn(move || -> anyhow::Result<T> {
            let namespace = std::fs::File::open(&path).with_context(|| format!("open {}", path.display()))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .with_context(|| format!("enter {}", path.display()))?;
            Ok(make()?)
        });
        let made = tokio::task::spawn_blocking(move || thread.join()).await?;
        made.map_err(|_| anyhow::anyhow!("the thread that makes a socket panicked"))?
    }
}

/// A connection that a program makes. Ends with it.
struct Relayed {
    streams: Join<ChildStdout, ChildStdin>,
    _program: Child,
}

impl Relayed {
    fn start(words: &[String], address: SocketAddr) -> anyhow::Result<Self> {
        let (program, arguments) = words.split_first().context("a relay has a program")?;
        let mut command = Command::new(program);
        command.args(arguments).args([address.ip().to_string(), address.port().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut program = command.spawn().with_context(|| format!("start {program}"))?;
        let stdout = program.stdout.take().context("its standard output")?;
        let stdin = program.stdin.take().context("its standard input")?;
        Ok(Self { streams: join(stdout, stdin), _program: program })
    }
}

impl AsyncRead for Relayed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.streams).poll_read(ctx, buffer)
    }
}

impl AsyncWrite for Relayed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.streams).poll_write(ctx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.streams).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.streams).poll_shutdown(ctx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn is_spoken_to(place: Place) {
        let listener = Place::Here.listen(([127, 0, 0, 1], 0).into()).await.expect("listen");
        let address = listener.local_addr().expect("address");
        let mut here = place.connect(address).await.expect("connect");
        here.write_all(b"question").await.expect("write");
        here.flush().await.expect("flush");
        let (mut there, _) = listener.accept().await.expect("accept");
        let mut bytes = [0; 8];
        there.read_exact(&mut bytes).await.expect("read");
        there.write_all(b"answer").await.expect("answer");
        drop(there);
        let mut answer = String::new();
        here.read_to_string(&mut answer).await.expect("read");
        assert_eq!((&bytes, answer.as_str()), (b"question", "answer"));
    }

    #[tokio::test]
    async fn a_connection_carries_bytes_both_ways() {
        is_spoken_to(Place::Here).await;
        // What netcat does, in the words of bash.
        let relay = "exec 3<>/dev/tcp/$1/$2; cat <&3 & exec cat >&3";
        is_spoken_to(Place::Relay(["bash", "-c", relay, "relay"].map(String::from).to_vec())).await;
    }
}
