//! Bad input: refused with the one error shape, and nothing else happens.

use serde_json::Value;

use crate::wire::{Server, raw};

/// Each body of `POST /v1/sessions`: status, code, and what the message names.
#[tokio::test]
async fn a_session_is_made_from_exactly_what_is_known() {
    let server = Server::start().await;
    let refused = [
        (r#"{"profile":"fast"}"#, "invalid_field", "profile"),
        (r#"{"profile":""}"#, "invalid_field", "profile"),
        (r#"{"profile":"Default"}"#, "invalid_field", "profile"),
        (r#"{"profile":null}"#, "invalid_field", "profile"),
        (r#"{"profile":["default"]}"#, "invalid_field", "profile"),
        (r#"{"profile":"no-fs","profil":1}"#, "unknown_field", "profil"),
        (r#"{"environmentNote":"x"}"#, "unknown_field", "environmentNote"),
        (r#"{"ownerWords":[]}"#, "unknown_field", "ownerWords"),
        (r#"{"profile":"no-fs","profile":"default"}"#, "invalid_json", "profile"),
        (r#"{"limits":{"turns":1,"turns":2}}"#, "invalid_json", "turns"),
        (r#"{"profile":"no-fs","workspace":"inner"}"#, "invalid_field", "workspace"),
        (r#"{"profile":"no-fs","workspace":{"git":"x"}}"#, "invalid_field", "workspace"),
        (r#"{"workspace":7}"#, "invalid_field", "workspace"),
        (r#"{"workspace":"../outside"}"#, "workspace_not_inside", "workspace"),
        (r#"{"workspace":"/"}"#, "workspace_not_inside", "workspace"),
        (r#"{"workspace":"out"}"#, "workspace_not_inside", "workspace"),
        (r#"{"workspace":"file"}"#, "workspace_not_inside", "workspace"),
        (r#"{"workspace":"absent"}"#, "workspace_not_inside", "workspace"),
        (r#"{"mode":"Auto"}"#, "invalid_field", "mode"),
        (r#"{"mode":4}"#, "invalid_field", "mode"),
        (r#"{"executorClass":"small"}"#, "invalid_field", "executorClass"),
        (r#"{"model":"another"}"#, "invalid_field", "model"),
        (r#"{"limits":{"turns":0}}"#, "invalid_field", "limits.turns"),
        (r#"{"limits":{"turns":1.5}}"#, "invalid_field", "limits.turns"),
        (r#"{"limits":{"turn":1}}"#, "unknown_field", "limits.turn"),
        (r#"{"limits":[]}"#, "invalid_field", "limits"),
        ("[]", "invalid_json", "object"),
        ("\"x\"", "invalid_json", "object"),
        ("{", "invalid_json", "JSON"),
        ("{} {}", "invalid_json", "JSON"),
        ("profile=no-fs", "invalid_json", "JSON"),
    ];
    for (body, code, named) in refused {
        let reply = server.ask("POST", "/v1/sessions", body).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{body}: {reply:?}");
        assert!(reply.message().contains(named), "{body}: {reply:?}");
        assert_eq!(reply.body["retryable"], false);
    }
    let deep = "[".repeat(10_000);
    assert_eq!(server.ask("POST", "/v1/sessions", &deep).await.status, 400);
    assert_eq!(server.ask("GET", "/v1/sessions", "").await.body["sessions"], Value::Array(Vec::new()));
    server.harness.stop().await;
}

#[tokio::test]
async fn every_empty_workspace_is_empty_and_a_folder_inside_is_a_workspace() {
    let server = Server::start().await;
    for body in [
        r#"{"profile":"no-fs"}"#,
        r#"{"profile":"no-fs","workspace":null}"#,
        r#"{"profile":"no-fs","workspace":""}"#,
        r#"{"profile":"no-fs","workspace":{}}"#,
    ] {
        let reply = server.ask("POST", "/v1/sessions", body).await;
        assert_eq!(reply.status, 201, "{body}: {reply:?}");
        assert_eq!(reply.body["profile"], "no-fs");
        assert_eq!(reply.body["environment"]["kind"], "none");
        assert_eq!(reply.body["environment"]["id"], reply.body["id"]);
    }
    let root = server.path("tree").canonicalize().expect("root").to_str().expect("text").to_owned();
    let absolute = format!(r#"{{"workspace":"{root}/inner"}}"#);
    for (body, id) in [
        ("", root.clone()),
        ("{}", root.clone()),
        (r#"{"profile":"default","workspace":{}}"#, root.clone()),
        (r#"{"workspace":"inner"}"#, format!("{root}/inner")),
        (absolute.as_str(), format!("{root}/inner")),
    ] {
        let reply = server.ask("POST", "/v1/sessions", body).await;
        assert_eq!(reply.status, 201, "{body}: {reply:?}");
        assert_eq!(reply.body["profile"], "default");
        assert_eq!(reply.body["environment"]["kind"], "local");
        assert_eq!(reply.body["environment"]["id"], id);
    }
    server.harness.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_one_error_shape() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let one = format!("/v1/sessions/{session}");
    let other = "/v1/sessions/0123456789abcdef0123456789abcdef";
    let upper = format!("/v1/sessions/{}", session.to_uppercase());
    let cases = [
        ("GET", "/", 404, "route_not_found"),
        ("GET", "/v1/tasks", 404, "route_not_found"),
        ("GET", "/v1/preferences", 404, "route_not_found"),
        ("PUT", "/v1/preferences", 404, "route_not_found"),
        ("PUT", "/v1/sessions", 405, "method_not_allowed"),
        ("POST", &one, 405, "method_not_allowed"),
        ("GET", other, 404, "session_not_found"),
        ("GET", &upper, 404, "session_not_found"),
        ("GET", "/v1/sessions/..%2fapprovals", 404, "session_not_found"),
        ("DELETE", other, 404, "session_not_found"),
        ("GET", &format!("{other}/events"), 404, "session_not_found"),
        ("GET", &format!("{other}/messages"), 404, "session_not_found"),
        ("POST", &format!("{other}/interrupt"), 404, "session_not_found"),
        ("POST", &format!("{one}/interrupt"), 409, "no_open_run"),
        ("GET", &format!("{one}/runs/{session}"), 404, "run_not_found"),
        ("GET", &format!("/v1/approvals/{session}"), 404, "approval_not_found"),
        ("GET", "/v1/approvals?state=open", 400, "invalid_field"),
        ("GET", "/v1/approvals?states=open", 400, "unknown_parameter"),
        ("GET", "/v1/approvals?state=denied&state=pending", 400, "invalid_query"),
        ("GET", "/v1/tools?profile=fast", 400, "invalid_field"),
        ("GET", "/v1/sessions?token=x", 400, "unknown_parameter"),
    ];
    for (method, path, status, code) in cases {
        let reply = server.ask(method, path, "").await;
        assert_eq!((reply.status, reply.code()), (status, code), "{method} {path}: {reply:?}");
        let fields: Vec<&String> = reply.body.as_object().expect("object").keys().collect();
        assert_eq!(fields, ["code", "message", "retryable"]);
    }
    server.harness.stop().await;
}

#[tokio::test]
async fn words_are_text_of_some_length() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let path = format!("/v1/sessions/{session}/messages");
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(256 * 1024 + 1));
    let cases =
        ["{}", r#"{"text":""}"#, r#"{"text":" \n"}"#, r#"{"text":7}"#, r#"{"text":"a\u0000b"}"#, &long];
    for body in cases {
        let reply = server.ask("POST", &path, body).await;
        assert_eq!((reply.status, reply.code()), (400, "invalid_field"), "{reply:?}");
    }
    let origin = server.ask("POST", &path, r#"{"text":"x","origin":"owner"}"#).await;
    assert_eq!((origin.status, origin.code()), (400, "unknown_field"));
    let lone = server.ask("POST", &path, r#"{"text":"\ud800"}"#).await;
    assert_eq!((lone.status, lone.code()), (400, "invalid_json"));
    server.harness.stop().await;
}

#[tokio::test]
async fn a_change_is_typed_too() {
    let server = Server::start().await;
    let session = server.session(r#"{"profile":"no-fs"}"#).await;
    let path = format!("/v1/sessions/{session}");
    for (body, code) in [
        ("{}", "invalid_field"),
        (r#"{"profile":"default"}"#, "unknown_field"),
        (r#"{"trusted":"yes"}"#, "invalid_field"),
        (r#"{"suspended":null}"#, "invalid_field"),
        (r#"{"mode":""}"#, "invalid_field"),
    ] {
        let reply = server.ask("PATCH", &path, body).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{body}: {reply:?}");
    }
    let reply = server.ask("PATCH", &path, r#"{"mode":"fullTrust","trusted":true,"suspended":true}"#).await;
    assert_eq!(reply.status, 200);
    assert_eq!((&reply.body["mode"], &reply.body["trusted"]), (&"fullTrust".into(), &true.into()));
    let asleep = server.ask("POST", &format!("{path}/messages"), r#"{"text":"hello"}"#).await;
    assert_eq!((asleep.status, asleep.code()), (409, "session_suspended"));
    server.harness.stop().await;
}

#[tokio::test]
async fn sizes_are_bounded() {
    let server = Server::start().await;
    let large = format!(r#"{{"profile":"{}"}}"#, "x".repeat(1024 * 1024));
    let reply = server.ask("POST", "/v1/sessions", &large).await;
    assert_eq!((reply.status, reply.code()), (413, "body_too_large"));
    let bearer = format!("Bearer {}", server.token);
    let padding = "x".repeat(20 * 1024);
    let headers =
        [("Host", "localhost"), ("Authorization", bearer.as_str()), ("X-Padding", padding.as_str())];
    let reply = server.send("GET", "/v1/info", &headers, "").await;
    assert_eq!((reply.status, reply.code()), (431, "headers_too_large"));
    let headers = [("Host", "localhost"), ("Authorization", bearer.as_str()), ("Content-Encoding", "gzip")];
    let reply = server.send("POST", "/v1/sessions", &headers, "x").await;
    assert_eq!((reply.status, reply.code()), (415, "unsupported_encoding"));
    let plain = [("Host", "localhost"), ("Authorization", bearer.as_str()), ("Content-Type", "text/plain")];
    let reply = server.send("POST", "/v1/sessions", &plain, r#"{"profile":"no-fs"}"#).await;
    assert_eq!(reply.status, 201, "a body is JSON whatever its Content-Type");
    server.harness.stop().await;
}

#[tokio::test]
async fn a_body_that_stops_early_is_no_body() {
    let server = Server::start().await;
    let request = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        server.token
    );
    let reply = raw(server.address(), request.as_bytes()).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    assert_eq!(server.ask("GET", "/v1/sessions", "").await.body["sessions"], Value::Array(Vec::new()));
    server.harness.stop().await;
}
