//! Who may ask for what.

use std::fmt::Write;

use expect_test::expect;

use crate::wire::{Server, raw};

/// Rows: calls. Columns: callers. A cell: the status.
#[tokio::test]
async fn only_the_token_speaks_for_the_person() {
    let server = Server::start().await;
    let theirs = server.session(r#"{"profile":"no-fs"}"#).await;
    let own = server.send("POST", "/v1/sessions", &[("Host", "127.0.0.1")], r#"{"profile":"no-fs"}"#).await;
    let own = own.body["id"].as_str().expect("id").to_owned();
    let bearer = format!("Bearer {}", server.token);
    let basic = format!("Basic {}", server.token);
    let local = ("Host", "127.0.0.1:8081");
    let callers: [(&str, Vec<(&str, &str)>); 9] = [
        ("token", vec![local, ("Authorization", &bearer)]),
        ("none", vec![local]),
        ("wrong", vec![local, ("Authorization", "Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")]),
        ("basic", vec![local, ("Authorization", &basic)]),
        ("twice", vec![local, ("Authorization", &bearer), ("Authorization", &bearer)]),
        ("origin", vec![local, ("Origin", "http://127.0.0.1:8081")]),
        ("fetch", vec![local, ("Sec-Fetch-Site", "same-origin")]),
        ("rebound", vec![("Host", "evil.test"), ("Authorization", &bearer)]),
        ("hosts", vec![local, ("Host", "evil.test"), ("Authorization", &bearer)]),
    ];
    let calls = [
        ("POST", "/v1/sessions".to_owned(), r#"{"profile":"no-fs"}"#),
        ("POST", "/v1/sessions".to_owned(), r#"{"profile":"no-fs","mode":"fullTrust"}"#),
        ("GET", format!("/v1/sessions/{own}"), ""),
        ("GET", format!("/v1/sessions/{theirs}"), ""),
        ("GET", "/v1/sessions".to_owned(), ""),
        ("PATCH", format!("/v1/sessions/{own}"), r#"{"mode":"auto"}"#),
        ("POST", format!("/v1/sessions/{own}/interrupt"), ""),
        ("POST", format!("/v1/sessions/{own}/steer"), r#"{"text":"x"}"#),
        ("GET", format!("/v1/sessions/{own}/messages"), ""),
        ("GET", format!("/v1/sessions/{own}/transcript"), ""),
        ("GET", "/v1/approvals".to_owned(), ""),
        ("POST", format!("/v1/approvals/{own}/decision"), r#"{"answer":"allow"}"#),
        ("GET", "/v1/tools".to_owned(), ""),
        ("GET", "/v1/info".to_owned(), ""),
        ("GET", "/v1/openapi.json".to_owned(), ""),
        ("GET", "/v1/nothing".to_owned(), ""),
        ("OPTIONS", "/v1/sessions".to_owned(), ""),
    ];
    let mut table = String::new();
    for (method, path, body) in &calls {
        let shown = path.replace(&own, "OWN").replace(&theirs, "THEIRS");
        write!(table, "{:<48}", format!("{method} {shown} {body}")).expect("text");
        for (name, headers) in &callers {
            let reply = server.send(method, path, headers, body).await;
            write!(table, " {name}={}", reply.status).expect("text");
            if reply.status == 401 {
                assert_eq!(reply.code(), "unauthenticated");
                assert!(reply.head.to_lowercase().contains("www-authenticate: bearer"), "{}", reply.head);
            }
        }
        table = table.trim_end().to_owned();
        table.push('\n');
    }
    expect![[r#"
        POST /v1/sessions {"profile":"no-fs"}            token=201 none=201 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        POST /v1/sessions {"profile":"no-fs","mode":"fullTrust"} token=201 none=403 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/sessions/OWN                             token=200 none=200 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/sessions/THEIRS                          token=200 none=404 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/sessions                                 token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        PATCH /v1/sessions/OWN {"mode":"auto"}           token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        POST /v1/sessions/OWN/interrupt                  token=409 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        POST /v1/sessions/OWN/steer {"text":"x"}         token=409 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/sessions/OWN/messages                    token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/sessions/OWN/transcript                  token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/approvals                                token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        POST /v1/approvals/OWN/decision {"answer":"allow"} token=404 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/tools                                    token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/info                                     token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/openapi.json                             token=200 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        GET /v1/nothing                                  token=404 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
        OPTIONS /v1/sessions                             token=405 none=401 wrong=401 basic=401 twice=401 origin=401 fetch=401 rebound=421 hosts=421
    "#]].assert_eq(&table);
    let counted = server.ask("GET", "/v1/info", "").await.body["authenticationFailures"].as_u64();
    assert!(counted.is_some_and(|failures| failures > 50), "{counted:?}");
    server.harness.stop().await;
}

#[tokio::test]
async fn a_request_without_a_loopback_host_is_misdirected() {
    let server = Server::start().await;
    for head in [
        "GET /v1/info HTTP/1.1\r\n",
        "GET /v1/info HTTP/1.0\r\n",
        "GET http://evil.test/v1/info HTTP/1.1\r\nHost: localhost\r\n",
        "GET /v1/info HTTP/1.1\r\nHost: 127.0.0.1.evil.test\r\n",
    ] {
        let request = format!("{head}Authorization: Bearer {}\r\nConnection: close\r\n\r\n", server.token);
        let reply = raw(server.address(), request.as_bytes()).await;
        assert_eq!((reply.status, reply.code()), (421, "host_not_loopback"), "{head}");
    }
    server.harness.stop().await;
}

#[tokio::test]
async fn too_many_requests_without_the_token_do_not_stop_the_person() {
    let server = Server::start().await;
    let mut last = server.send("GET", "/v1/info", &[("Host", "localhost")], "").await;
    for _ in 0..1000 {
        if last.status == 429 {
            break;
        }
        last = server.send("GET", "/v1/info", &[("Host", "localhost")], "").await;
    }
    assert_eq!((last.status, last.code()), (429, "rate_limited"));
    assert_eq!(last.body["retryable"], true);
    assert!(last.head.to_lowercase().contains("retry-after: "), "{}", last.head);
    assert_eq!(server.ask("GET", "/v1/info", "").await.status, 200);
    server.harness.stop().await;
}

/// Only root can be another user for a moment.
#[tokio::test]
async fn another_user_of_this_machine_may_do_nothing() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        println!("not checked: only root can start a process of another user");
        return;
    }
    let server = Server::start().await;
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'POST /v1/sessions HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\n{{}}' >&3; head -n 1 <&3",
        server.address().port()
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).uid(65534).gid(65534).current_dir("/");
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("join").expect("bash");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "HTTP/1.1 401 Unauthorized");
    server.harness.stop().await;
}
