//! The event stream: durable, in order, resumed within its session.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::wire::{DEADLINE, Server};

/// Reads a stream until `count` events or its end; gives `id event` of each.
async fn follow(server: &Server, session: &str, headers: &str, query: &str, count: usize) -> Vec<String> {
    let mut stream = TcpStream::connect(server.address()).await.expect("connect");
    let request = format!(
        "GET /v1/sessions/{session}/events{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n{headers}\r\n",
        server.token
    );
    stream.write_all(request.as_bytes()).await.expect("send");
    read(&mut stream, count).await
}

async fn read(stream: &mut TcpStream, count: usize) -> Vec<String> {
    let mut text = String::new();
    let reading = async {
        let mut buffer = [0_u8; 4096];
        loop {
            let events = parse(&text);
            if events.len() >= count {
                return events;
            }
            match stream.read(&mut buffer).await.expect("read") {
                0 => return events,
                n => text.push_str(&String::from_utf8_lossy(&buffer[..n])),
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("events in time")
}

fn parse(text: &str) -> Vec<String> {
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    text.split("\n\n")
        .filter(|block| block.contains("data:") && block.contains("id:"))
        .filter_map(|block| Some(format!("{} {}", field(block, "id:")?, field(block, "event:")?)))
        .collect()
}

#[tokio::test]
async fn a_stream_begins_at_the_beginning_and_goes_on_after_the_last_event_seen() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    for mode in ["askFirst", "readOnly"] {
        let body = format!(r#"{{"mode":"{mode}"}}"#);
        assert_eq!(server.ask("PATCH", &format!("/v1/sessions/{session}"), &body).await.status, 200);
    }
    let all = [
        format!("{session}-1 session.created"),
        format!("{session}-2 session.changed"),
        format!("{session}-3 session.changed"),
    ];
    assert_eq!(follow(&server, &session, "", "", 3).await, all);
    let resume = format!("Last-Event-ID: {session}-1\r\n");
    assert_eq!(follow(&server, &session, &resume, "", 2).await, all[1..]);
    let query = format!("?lastEventId={session}-2");
    assert_eq!(follow(&server, &session, "", &query, 1).await, all[2..]);
    let server = server.again().await;
    assert_eq!(follow(&server, &session, &resume, "", 2).await, all[1..], "after a restart");
    server.harness.stop().await;
}

#[tokio::test]
async fn an_event_reaches_a_reader_that_is_there_already() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let mut stream = TcpStream::connect(server.address()).await.expect("connect");
    let request = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(request.as_bytes()).await.expect("send");
    assert_eq!(read(&mut stream, 1).await, [format!("{session}-1 session.created")]);
    server.ask("PATCH", &format!("/v1/sessions/{session}"), r#"{"trusted":true}"#).await;
    assert_eq!(read(&mut stream, 1).await, [format!("{session}-2 session.changed")]);
    server.ask("DELETE", &format!("/v1/sessions/{session}"), "").await;
    assert_eq!(read(&mut stream, 1).await, Vec::<String>::new(), "the stream of a deleted session ends");
    server.harness.stop().await;
}

#[tokio::test]
async fn an_id_that_is_not_of_this_session_replays_nothing() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let other = server.session(r#"{"profile":"no-fs"}"#).await;
    let bearer = format!("Bearer {}", server.token);
    let path = format!("/v1/sessions/{session}/events");
    let foreign = format!("{other}-1");
    let ahead = format!("{session}-2");
    let zero = format!("{session}-0");
    let padded = format!("{session}-01");
    for id in [
        foreign.as_str(),
        &ahead,
        &zero,
        &padded,
        "1",
        "",
        "-1",
        "x-1",
        &format!("{session}-9223372036854775808"),
    ] {
        let headers = [("Host", "localhost"), ("Authorization", bearer.as_str()), ("Last-Event-ID", id)];
        let reply = server.send("GET", &path, &headers, "").await;
        assert_eq!((reply.status, reply.code()), (404, "event_unknown"), "{id}");
    }
    server.harness.stop().await;
}

#[tokio::test]
async fn a_stream_ends_when_the_server_does() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let mut stream = TcpStream::connect(server.address()).await.expect("connect");
    let request = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        server.token
    );
    stream.write_all(request.as_bytes()).await.expect("send");
    assert_eq!(read(&mut stream, 1).await.len(), 1);
    let started = std::time::Instant::now();
    server.harness.stop().await;
    assert_eq!(read(&mut stream, 1).await, Vec::<String>::new());
    assert!(started.elapsed() < std::time::Duration::from_secs(8), "it did not wait for the stream");
}
