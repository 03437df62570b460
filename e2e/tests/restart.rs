//! A harness that was away: the same sessions, the same questions, and never another folder.

use std::time::Duration;

use mooring_e2e::fixture::{Harness, World, sequence};
use serde_json::json;

const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_question_outlives_the_harness_and_is_answered_once() {
    let calls = [("Write", json!({"path": "asked", "content": "x"}))];
    let world = World::make(sequence(calls)).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({"mode": "askFirst"})).await.expect("session");
    client.say(&session, "go").await.expect("message");
    let asked = client.pending_approval(&session, DEADLINE).await.expect("question");
    let before =
        client.get(&format!("/v1/sessions/{session}")).await.expect("session").body["environment"].clone();
    harness.crash().await.expect("crash");

    let harness = world.start().await.expect("harness again");
    let client = harness.client().expect("client");
    let after =
        client.get(&format!("/v1/sessions/{session}")).await.expect("session").body["environment"].clone();
    assert_eq!(before, after);
    let again = client.pending_approval(&session, DEADLINE).await.expect("question again");
    assert_eq!(asked["id"], again["id"]);
    let id = again["id"].as_str().expect("id");
    let mut events = client.events(&session, None).await.expect("events");
    client.decide(id, "allow").await.expect("decide").expect(200).expect("allowed");
    let seen = events.until("run.finished", DEADLINE).await.expect("end");
    assert_eq!(seen.last().expect("end").data["state"], "finished");
    let twice = client.decide(id, "allow").await.expect("decide");
    assert_eq!(twice.status, 409, "{twice:?}");
    assert_eq!(std::fs::read_to_string(world.tree().join("asked")).expect("asked"), "x");
}

#[tokio::test]
async fn another_folder_over_old_state_is_a_mismatch() {
    let calls = [("Shell", json!({"command": "echo x >> touched"}))];
    let world = World::make(sequence(calls)).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({"mode": "fullTrust"})).await.expect("session");
    client.run(&session, "go", DEADLINE).await.expect("run");
    harness.stop(DEADLINE).await.expect("stop");

    let mut options = world.options.clone();
    options.tree = world.root().join("other");
    std::fs::create_dir(&options.tree).expect("other");
    let found = match Harness::start(&options).await {
        Ok(harness) => {
            let client = harness.client().expect("client");
            let mut events = client.events(&session, None).await.expect("events");
            events.until("run.finished", DEADLINE).await.expect("the first run");
            let path = format!("/v1/sessions/{session}/messages");
            let reply = client.post(&path, &json!({"text": "go"})).await.expect("reply");
            if reply.status == 202 {
                let seen = events.until("run.finished", DEADLINE).await.expect("the second run");
                seen.last().expect("end").data.to_string()
            } else {
                reply.body.to_string()
            }
        }
        Err(cause) => cause.to_string(),
    };
    assert!(found.contains("mismatch"), "{found}");
    assert_eq!(std::fs::read_to_string(world.tree().join("touched")).expect("touched"), "x\n");
    assert_eq!(std::fs::read_dir(&options.tree).expect("other").count(), 0);
}

#[tokio::test]
async fn events_go_on_where_a_reader_left_off() {
    let world = World::make(sequence([])).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({})).await.expect("session");
    let seen = client.run(&session, "go", DEADLINE).await.expect("run");
    let middle = &seen[seen.len() / 2].id;
    let mut rest = client.events(&session, Some(middle)).await.expect("events");
    let after = rest.until("run.finished", DEADLINE).await.expect("rest");
    let ids = |events: &[mooring_e2e::fixture::Event]| {
        events.iter().map(|event| event.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&after), ids(&seen)[seen.len() / 2 + 1..].to_vec());
    assert!(client.events(&session, Some("987654321")).await.is_err(), "an unknown id is never a replay");
}
