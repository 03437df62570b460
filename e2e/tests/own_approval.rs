//! A command of the agent that reaches for the harness which runs it: it is not the person.

use std::time::Duration;

use mooring_e2e::fixture::{World, await_condition, sequence};
use serde_json::json;

const DEADLINE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_command_cannot_answer_its_own_approval() {
    // It waits for the port and the approval's id, then tries with no token, with a made-up one, and looks for the real one.
    let probe = "until [ -s approval ] && [ -s port ]; do sleep 0.05; done\n\
        url=http://127.0.0.1:$(cat port)/v1/approvals/$(cat approval)/decision\n\
        for header in 'X-Nothing: 1' 'Authorization: Bearer made-up' 'Cookie: session=made-up'; do\n\
          curl -s -o /dev/null -w '%{http_code} ' -H \"$header\" -X POST \"$url\" -d '{\"answer\":\"allow\"}' >> answers\n\
        done\n\
        curl -s -o /dev/null -w '%{http_code} ' http://127.0.0.1:$(cat port)/v1/approvals >> answers\n\
        cat \"$STATE_FOLDER/token\" >> answers 2>/dev/null\n\
        echo end >> answers";
    let calls = [
        ("Shell", json!({"command": "sh probe.sh", "background": true})),
        ("Write", json!({"path": "asked", "content": "x"})),
    ];
    let mut world = World::make(sequence(calls)).await.expect("world");
    // In a file: a command that names the approvals is refused before anybody is asked.
    std::fs::write(world.tree().join("probe.sh"), probe).expect("probe");
    let state = world.options.state.to_string_lossy().into_owned();
    world.options = world.options.with("STATE_FOLDER", &state);
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({"mode": "askFirst"})).await.expect("session");
    client.say(&session, "go").await.expect("message");
    let first = client.pending_approval(&session, DEADLINE).await.expect("the command is asked about");
    client
        .decide(first["id"].as_str().expect("id"), "allow")
        .await
        .expect("decide")
        .expect(200)
        .expect("allowed");
    let second = await_condition(DEADLINE, "the second question", async || {
        let approval = client.pending_approval(&session, DEADLINE).await.ok()?;
        (approval["id"] != first["id"]).then_some(approval)
    })
    .await
    .expect("the write is asked about");
    let id = second["id"].as_str().expect("id");
    std::fs::write(world.tree().join("port"), harness.address().port().to_string()).expect("port");
    std::fs::write(world.tree().join("approval"), id).expect("approval");
    let answers = await_condition(DEADLINE, "the command's attempts", async || {
        std::fs::read_to_string(world.tree().join("answers")).ok().filter(|text| text.ends_with("end\n"))
    })
    .await
    .expect("attempts");
    let codes: Vec<&str> = answers.split_whitespace().collect();
    assert_eq!(codes.len(), 5, "{answers}");
    for code in &codes[..4] {
        assert!(["401", "403"].contains(code), "{answers}");
    }
    let still = client.pending_approval(&session, DEADLINE).await.expect("still pending");
    assert_eq!(still["id"], second["id"]);
    assert!(!world.tree().join("asked").exists());
}
