//! The HTTP API from outside: what is refused, and what needs no token.

use std::process::Command;

use mooring_e2e::fixture::{World, sequence};
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_with_a_wrong_field_is_refused_and_none_is_made() {
    let world = World::make(sequence([])).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    for (body, named) in [
        (json!({"profile": "fast"}), "profile"),
        (json!({"profile": ""}), "profile"),
        (json!({"profile": "Default"}), "profile"),
        (json!({"profile": null}), "profile"),
        (json!({"profil": "no-fs"}), "profil"),
        (json!({"profile": "no-fs", "workspace": "sub"}), "workspace"),
        (json!({"mode": "yolo"}), "mode"),
        (json!({"workspace": "../elsewhere"}), ""),
    ] {
        let reply = client.post("/v1/sessions", &body).await.expect("reply");
        assert_eq!(reply.status, 400, "{body}: {reply:?}");
        assert!(!reply.code().is_empty(), "{reply:?}");
        assert!(reply.body["message"].as_str().is_some_and(|text| text.contains(named)), "{body}: {reply:?}");
        assert_eq!(reply.body["retryable"], false, "{reply:?}");
    }
    let list = client.get("/v1/sessions").await.expect("list").expect(200).expect("list");
    let sessions = list.as_array().or_else(|| list["sessions"].as_array()).expect("sessions");
    assert!(sessions.is_empty(), "{list}");
}

#[tokio::test]
async fn a_workspace_of_nothing_is_no_workspace() {
    let world = World::make(sequence([])).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    for empty in [
        json!({"profile": "no-fs"}),
        json!({"profile": "no-fs", "workspace": null}),
        json!({"profile": "no-fs", "workspace": ""}),
        json!({"profile": "no-fs", "workspace": {}}),
    ] {
        let reply = client.post("/v1/sessions", &empty).await.expect("reply");
        assert_eq!(reply.status, 201, "{empty}: {reply:?}");
        assert_eq!(reply.body["environment"]["kind"], "none", "{reply:?}");
    }
}

#[tokio::test]
async fn the_documented_line_works_as_written_and_a_stranger_can_do_no_more() {
    let world = World::make(sequence([])).await.expect("world");
    let harness = world.start().await.expect("harness");
    let url = format!("http://{}/v1/sessions", harness.address());
    let output =
        Command::new("curl").args(["-s", "-X", "POST", &url, "-d", r#"{"profile":"no-fs"}"#]).output();
    let output = output.expect("curl is needed for this test");
    let session: Value = serde_json::from_slice(&output.stdout).expect("json");
    let id = session["id"].as_str().expect("id").to_owned();
    assert_eq!(session["profile"], "no-fs");

    let stranger = harness.client().expect("client").anonymous();
    let reply = stranger.get(&format!("/v1/sessions/{id}")).await.expect("reply");
    assert_eq!(reply.status, 200, "{reply:?}");
    let over = stranger.post("/v1/sessions", &json!({"mode": "fullTrust"})).await.expect("reply");
    assert!([400, 401, 403].contains(&over.status), "{over:?}");
    let words = stranger
        .post(&format!("/v1/sessions/{id}/messages"), &json!({"text": "hello"}))
        .await
        .expect("reply");
    assert_eq!(words.status, 401, "{words:?}");
    for path in ["/v1/sessions", "/v1/approvals", "/v1/preferences", &format!("/v1/sessions/{id}/events")] {
        let reply = stranger.get(path).await.expect("reply");
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
    }
}

#[tokio::test]
async fn a_session_without_files_has_no_file_tool_and_no_process() {
    let world = World::with_calls([("Shell", json!({"command": "touch ran"}))]).await.expect("world");
    let harness = world.start().await.expect("harness");
    let before = mooring_e2e::fixture::descendants(harness.pid()).len();
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({"profile": "no-fs"})).await.expect("session");
    let events = client.run(&session, "go", std::time::Duration::from_mins(1)).await.expect("run");
    assert_eq!(events.last().expect("end").data["state"], "finished", "{events:?}");
    for request in world.model.requests() {
        let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        for gone in [
            "Read",
            "ListDir",
            "Write",
            "Edit",
            "Copy",
            "Move",
            "Remove",
            "Grep",
            "Glob",
            "Shell",
            "ShellStatus",
        ] {
            assert!(!names.contains(&gone), "{names:?}");
        }
    }
    assert!(!world.tree().join("ran").exists());
    assert!(mooring_e2e::fixture::descendants(harness.pid()).len() <= before);
}
