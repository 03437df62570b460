//! The clock is paused only once all that is awaited is a limit: it moves on whenever nothing else is ready, sockets or not.

use mooring_proto::certificate::{HARNESS, OPERATOR};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_stream::StreamExt as _;

use super::super::connection::IDLE_LIMIT;
use super::super::fixture::Authority;
use super::*;

/// A listener that accepts, and where.
struct Listening {
    address: SocketAddr,
    incoming: ReceiverStream<io::Result<Connection>>,
    authority: Authority,
    close: CancellationToken,
}

async fn listening() -> Listening {
    let authority = Authority::new();
    let folder = authority.folder();
    let credentials = Credentials::open(folder.path()).expect("usable files");
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), credentials).await.expect("a port");
    let address = listener.address().expect("bound");
    let close = CancellationToken::new();
    let (incoming, accepting) = listener.into_incoming(close.clone());
    tokio::spawn(accepting);
    Listening { address, incoming, authority, close }
}

impl Listening {
    async fn connect(&self, name: &str) -> io::Result<TlsStream<TcpStream>> {
        let tcp = TcpStream::connect(self.address).await?;
        let connector = TlsConnector::from(Arc::new(self.authority.client(name)));
        let mut stream = connector.connect(Authority::server_name(), tcp).await?;
        // The server has verified the client once it answers, or has refused it.
        stream.flush().await?;
        Ok(stream)
    }
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_let_go_after_the_handshakes_limit() {
    let listening = listening().await;
    let begun = Instant::now();
    let mut silent = TcpStream::connect(listening.address).await.expect("the port is open");
    tokio::time::pause();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert!(begun.elapsed() >= HANDSHAKE_LIMIT);
}

#[tokio::test]
async fn a_caller_that_never_speaks_http_is_let_go_after_the_idle_limit() {
    let mut listening = listening().await;
    let mut client = listening.connect(HARNESS).await.expect("let in");
    let mut connection = listening.incoming.next().await.expect("one").expect("a connection");
    client.write_all(b"x").await.expect("open");
    client.flush().await.expect("open");
    connection.read_exact(&mut [0; 1]).await.expect("what was said");
    tokio::time::pause();
    let heard = Instant::now();
    let silence = connection.read(&mut [0; 1]).await.expect_err("silence");
    assert_eq!(silence.kind(), io::ErrorKind::TimedOut);
    assert!(heard.elapsed() >= IDLE_LIMIT);
}

#[tokio::test]
async fn a_role_has_its_own_places_and_gets_them_back() {
    let mut listening = listening().await;
    let mut clients = Vec::new();
    let mut taken = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        clients.push(listening.connect(HARNESS).await.expect("let in"));
        taken.push(listening.incoming.next().await.expect("one").expect("a connection"));
    }
    let mut crowded = listening.connect(HARNESS).await.expect("the handshake itself is done");
    assert_eq!(crowded.read(&mut [0; 1]).await.unwrap_or(0), 0, "closed");

    let _operator = listening.connect(OPERATOR).await.expect("let in");
    listening.incoming.next().await.expect("one").expect("another role's place");
    taken.pop();
    let _harness = listening.connect(HARNESS).await.expect("let in");
    listening.incoming.next().await.expect("one").expect("a place that was given back");
}

#[tokio::test]
async fn more_handshakes_than_may_be_end_the_oldest() {
    let mut listening = listening().await;
    let begun = Instant::now();
    let mut silent = Vec::new();
    for _ in 0..=MAX_HANDSHAKES {
        silent.push(TcpStream::connect(listening.address).await.expect("the port is open"));
    }
    let mut oldest = silent.remove(0);
    assert_eq!(oldest.read(&mut [0; 1]).await.unwrap_or(0), 0, "made room");
    let _harness = listening.connect(HARNESS).await.expect("let in among them");
    listening.incoming.next().await.expect("one").expect("a connection");
    assert!(begun.elapsed() < HANDSHAKE_LIMIT, "nobody waited for a limit");
}

#[tokio::test]
async fn a_closed_listener_refuses_and_ends() {
    let mut listening = listening().await;
    listening.close.cancel();
    assert!(listening.incoming.next().await.is_none());
    assert!(TcpStream::connect(listening.address).await.is_err());
}
