//! Sessions at the API server.

use serde_json::{Value, json};

use crate::fixture::World;

fn session(status: &str, reason: &str) -> Value {
    json!({
        "apiVersion": "mooring.dev/v1alpha1", "kind": "Session",
        "metadata": {"name": "one", "namespace": "team", "resourceVersion": "1", "uid": "u"},
        "spec": {"owner": "ana", "mode": "auto"},
        "status": {"conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "words",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    })
}

#[tokio::test]
async fn a_new_session_belongs_to_whoever_the_api_server_says_we_are() {
    let world = World::open().await;
    let words =
        ["session", "create", "one", "--class", "small", "--mode", "askFirst", "--storage-size", "1Gi"];
    let ran = world.run(words).await;
    assert_eq!((ran.code, ran.text().as_str()), (0, "session.mooring.dev/one created\n"), "{ran:?}");
    let spec = world.api().written[0]["spec"].clone();
    assert_eq!(spec["owner"], "ana");
    assert_eq!(spec["mode"], "askFirst");
    assert_eq!(spec["executorClass"], "small");
    assert_eq!(spec["workspace"], json!({"storage": {"size": "1Gi"}}));
    let ran = world.run(["session", "create", "one", "--profile", "no-fs", "-o", "json"]).await;
    let made: Value = serde_json::from_slice(&ran.stdout).expect("JSON and nothing else");
    assert_eq!((made["spec"]["profile"].as_str(), made["spec"].get("workspace")), (Some("no-fs"), None));
}

#[tokio::test]
async fn waiting_ends_when_the_session_is_ready_or_never_will_be() {
    let world = World::open().await;
    world.api().sessions = vec![session("True", "Bound")];
    let ran = world.run(["session", "create", "one", "--wait"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    world.api().sessions = vec![session("False", "StartDeadlineExceeded")];
    let ran = world.run(["session", "create", "one", "--wait"]).await;
    ran.check_failed(&["error: one is not ready: StartDeadlineExceeded: words", "hint: Remove that reason"]);
    world.api().sessions = vec![session("False", "VolumePending")];
    let ran = world.run(["session", "create", "one", "--wait", "--wait-timeout", "1s"]).await;
    ran.check_failed(&["one: VolumePending: words", "error: one is not ready: VolumePending"]);
}

#[tokio::test]
async fn sessions_are_listed_as_kubectl_lists_objects() {
    let world = World::open().await;
    world.api().sessions = vec![session("True", "Bound")];
    let ran = world.run(["session", "list"]).await;
    let expected = "NAME   READY   REASON   MODE   CLASS   AGE\none    True    Bound    auto\n";
    assert_eq!(ran.text(), expected);
    let ran = world.run(["session", "list", "-A", "-o", "json"]).await;
    let list: Value = serde_json::from_slice(&ran.stdout).expect("JSON and nothing else");
    assert_eq!(list["items"][0]["metadata"]["name"], "one");
    let ran = world.run(["session", "list", "-o", "yaml"]).await;
    assert!(ran.text().contains("owner: ana"), "{}", ran.text());
}

#[tokio::test]
async fn a_session_sleeps_and_wakes() {
    let world = World::open().await;
    assert_eq!(world.run(["session", "suspend", "one"]).await.text(), "session.mooring.dev/one suspended\n");
    assert_eq!(world.run(["session", "resume", "one"]).await.text(), "session.mooring.dev/one resumed\n");
    let written = world.api().written.clone();
    assert_eq!(written, [json!({"spec": {"suspended": true}}), json!({"spec": {"suspended": false}})]);
}
