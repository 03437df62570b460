//! Another folder over the same state: a typed refusal, and neither tree is touched.

use super::world::run;
use super::{SHORT_DEADLINE, Stage};
use crate::fixture::{Client, Harness};

pub(super) async fn perform(stage: &mut Stage, session: &str) -> anyhow::Result<()> {
    stage.report.title("Another folder over the same state")?;
    let before = run(&stage.world.tree, "git", &["status", "--porcelain"]).await?;
    let mut options = stage.options.clone();
    options.tree.clone_from(&stage.world.other);
    let found = match Harness::start(&options).await {
        Ok(harness) => ask(&harness.client()?, session).await?,
        Err(cause) => cause.to_string(),
    };
    stage.report.say(&found)?;
    stage.report.check("it is a mismatch, by its code", found.contains("mismatch"), &found)?;
    let after = run(&stage.world.tree, "git", &["status", "--porcelain"]).await?;
    stage.report.check("the session's tree is as it was", before == after, &after)?;
    let entries = std::fs::read_dir(&stage.world.other)?.count();
    stage.report.check("the other folder is still empty", entries == 0, &entries.to_string())
}

/// What the session says when it is asked to work: the refusal of the message, or how its run ended.
async fn ask(client: &Client, session: &str) -> anyhow::Result<String> {
    let mut events = client.events(session, None).await?;
    events.until("run.finished", SHORT_DEADLINE).await?;
    let body = serde_json::json!({"text": "where are we?"});
    let reply = client.post(&format!("/v1/sessions/{session}/messages"), &body).await?;
    if reply.status != 202 {
        return Ok(format!("{} {}", reply.status, reply.body));
    }
    let seen = events.until("run.finished", SHORT_DEADLINE).await?;
    let told = seen.iter().filter(|event| matches!(event.kind.as_str(), "run.finished" | "tool.result"));
    Ok(told.map(|event| event.data.to_string()).collect::<Vec<_>>().join(" "))
}
