//! Whoever is not let in: by certificate, by protocol, or for want of an end. Others are served all the while.

use std::net::SocketAddr;

use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::fixture::{Authority, DEADLINE, Ground, Pod, Shown, text};

/// The connection preface and an empty SETTINGS frame (RFC 9113, sections 3.4 and 6.5).
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

/// Whether the server answers HTTP/2 to a client of this configuration.
async fn is_let_in(address: SocketAddr, config: ClientConfig) -> bool {
    let talking = async {
        let tcp = TcpStream::connect(address).await?;
        let mut tls =
            TlsConnector::from(std::sync::Arc::new(config)).connect(Authority::name_for_tls(), tcp).await?;
        tls.write_all(HELLO).await?;
        tls.flush().await?;
        tls.read(&mut [0; 9]).await
    };
    let answer = tokio::time::timeout(DEADLINE, talking).await.expect("an answer or a refusal");
    answer.is_ok_and(|count| count > 0)
}

#[tokio::test]
async fn a_certificate_that_is_wrong_in_anything_is_not_let_in() {
    let ground = Ground::new();
    let pod = Pod::start_unbound(&ground).await;
    let ours = &ground.authority;
    let other = Authority::new();
    let modern: &[&'static SupportedProtocolVersion] = &[&TLS13];
    let old: &[&'static SupportedProtocolVersion] = &[&TLS12];
    let both: &[&'static SupportedProtocolVersion] = &[&TLS12, &TLS13];
    let self_made = Shown { certificate: other.pem(), ..other.harness() };
    assert!(self_made.key.contains("PRIVATE KEY"));
    let cases = [
        ("the harness", Some(ours.harness()), modern, true),
        ("the operator, older versions offered too", Some(ours.operator()), both, true),
        ("no certificate", None, modern, false),
        ("TLS 1.2 alone", Some(ours.harness()), old, false),
        ("another authority", Some(other.harness()), modern, false),
        ("expired", Some(ours.expired()), modern, false),
        ("not valid yet", Some(ours.of_the_future()), modern, false),
        ("an executor's own", Some(ours.server()), modern, false),
        ("an executor's name as a client", Some(ours.client(&Authority::server_name())), modern, false),
        ("a wildcard", Some(ours.client("*.mooring.internal")), modern, false),
        ("no name of ours", Some(ours.client("harness.mooring.internal.example.org")), modern, false),
    ];
    for (case, shown, versions, expected) in cases {
        let config = ours.raw(shown.as_ref(), versions);
        assert_eq!(is_let_in(pod.address, config).await, expected, "{case}");
    }
    for refused in ["NoCertificate", "Incompatible", "Certificate", "NoRole"] {
        pod.await_log(&format!("connections were refused refused={refused} count=")).await;
    }
}

#[tokio::test]
async fn plain_text_gets_no_answer() {
    let ground = Ground::new();
    let pod = Pod::start_unbound(&ground).await;
    for first in [HELLO, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut tcp = TcpStream::connect(pod.address).await.expect("the port is open");
        tcp.write_all(first).await.expect("room for a few bytes");
        let mut answer = Vec::new();
        // Closed or reset; before that at most the alert that ends TLS.
        let _ = tokio::time::timeout(DEADLINE, tcp.read_to_end(&mut answer)).await.expect("an end");
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    pod.await_log("refused=NotTls").await;
}

#[tokio::test]
async fn two_hundred_silent_connections_and_few_descriptors_keep_nobody_out() {
    // As few as an executor can work with, so that accepting itself fails; and enough for all handshakes there may be.
    for (descriptors, fails) in [(40, true), (128, false)] {
        let ground = Ground::new();
        let pod = Pod::start_with_descriptors(&ground, descriptors).await;
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(
                tokio::time::timeout(DEADLINE, TcpStream::connect(pod.address)).await.expect("accepted"),
            );
        }
        if fails {
            pod.await_log("connections cannot be accepted for now").await;
        }
        // The silent ones are still there; the oldest of them made room.
        let harness = ground.authority.harness();
        let connecting = pod.connect(&ground, &harness);
        let channel = tokio::time::timeout(DEADLINE, connecting).await.expect("in time").expect("let in");
        let mut served = mooring_proto::v1::command_service_client::CommandServiceClient::new(channel);
        served.list(mooring_proto::v1::ListRequest { context: pod.look() }).await.expect("List");
        drop(silent);
        assert_eq!(pod.run(text("echo served")).await.stdout_text(), "served\n");
    }
}

#[tokio::test]
async fn calls_that_are_reset_at_once_cost_no_memory_and_nobody_else() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let channel = pod.connect(&ground, &ground.authority.harness()).await.expect("let in");
    let client = mooring_proto::v1::command_service_client::CommandServiceClient::new(channel);
    let before = pod.peak_kib();
    for _ in 0..50 {
        let calls = (0..100).map(|_| {
            let mut client = client.clone();
            let request = mooring_proto::v1::ListRequest { context: pod.look() };
            async move { client.list(request).await.map(drop) }
        });
        // Some are on their way when they are dropped, which resets their streams.
        let first = futures::future::select_all(calls.map(Box::pin));
        let _ = tokio::time::timeout(DEADLINE, first).await.expect("an answer or an end");
    }
    let grown = pod.peak_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB");
    assert_eq!(pod.run(text("echo served")).await.stdout_text(), "served\n");
}
