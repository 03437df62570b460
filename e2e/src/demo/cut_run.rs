//! The second run, cut twice by `SIGKILL` of the harness: under a command, and under a question.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{MARKER, RUN_DEADLINE, SHORT_DEADLINE, Stage};
use crate::fixture::{Client, Event, Harness, await_condition, descendants, is_alive, with_marker};

const WORDS: &str = "Please do the errand: three entries in errand.log.";

/// Gives the session's id; no harness runs afterwards.
pub(super) async fn perform(stage: &mut Stage, harness: Harness) -> anyhow::Result<String> {
    stage.report.title("Run 2: cut by SIGKILL under a command")?;
    let log = stage.world.tree.join("errand.log");
    let client = harness.client()?;
    let session = client.create_session(&json!({})).await?;
    let identity = environment(&client, &session).await?;
    client.say(&session, WORDS).await?;
    await_condition(RUN_DEADLINE, "the second entry", async || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("second-begun"))
    })
    .await?;
    crash_whole(stage, harness).await?;

    let harness = Harness::start(&stage.options).await?;
    let client = harness.client()?;
    let now = environment(&client, &session).await?;
    stage.report.check("the session has the same identity", now == identity, &format!("{identity} {now}"))?;
    let approval = client.pending_approval(&session, RUN_DEADLINE).await?;
    stage.report.check(
        "the run goes on to its next question",
        approval["id"].is_string(),
        &approval.to_string(),
    )?;

    stage.report.title("Run 2: cut by SIGKILL under a question")?;
    harness.crash().await?;
    let harness = Harness::start(&stage.options).await?;
    let client = harness.client()?;
    let again = client.pending_approval(&session, SHORT_DEADLINE).await?;
    stage.report.check(
        "the same question is still there",
        again["id"] == approval["id"],
        &again.to_string(),
    )?;
    let id = again["id"].as_str().context("approval id")?;
    client.decide(id, "deny").await?.expect(200)?;
    let events = to_the_end(&client, &session).await?;
    stage.report.transcript(&events)?;
    check_once(stage, &events, &log)?;
    let code = harness.stop(SHORT_DEADLINE).await?;
    stage.report.check("the harness stops when it is asked to", code == Some(0), &format!("{code:?}"))?;
    Ok(session)
}

fn check_once(stage: &mut Stage, events: &[Event], log: &std::path::Path) -> anyhow::Result<()> {
    let end = events.last().map(|event| event.data.clone()).unwrap_or_default();
    stage.report.check("the run ends with an answer", end["state"] == "finished", &end.to_string())?;
    let written = std::fs::read_to_string(log).context("errand.log")?;
    let once = written == "first\nsecond-begun\nthird\n";
    stage.report.check("nothing is done twice: each entry is there once", once, &written)?;
    let told = |event: &&Event| {
        event.kind == "tool.result" && event.data["text"].to_string().contains("executor_lost")
    };
    let lost = events.iter().filter(told).count();
    stage.report.check("the model is told that the executor was lost, once", lost == 1, &lost.to_string())
}

/// All events of the session up to the end of its run.
async fn to_the_end(client: &Client, session: &str) -> anyhow::Result<Vec<Event>> {
    client.events(session, None).await?.until("run.finished", RUN_DEADLINE).await
}

async fn environment(client: &Client, session: &str) -> anyhow::Result<Value> {
    let body = client.get(&format!("/v1/sessions/{session}")).await?.expect(200)?;
    Ok(body["environment"].clone())
}

/// Kills the harness alone and waits until nothing that it had started lives: the executor's halves, the supervisor (known
/// by descent) and the command (known by its environment).
async fn crash_whole(stage: &mut Stage, harness: Harness) -> anyhow::Result<()> {
    let below: Vec<u32> = descendants(harness.pid()).iter().map(|seen| seen.pid).collect();
    let marker = marker(stage);
    let commands = with_marker(&marker).len();
    stage.report.check(
        "the command is there to be cut",
        below.len() >= 4 && commands >= 2,
        &format!("{below:?}"),
    )?;
    harness.crash().await?;
    let gone = await_condition(SHORT_DEADLINE, "the command to be gone", async || {
        (with_marker(&marker).is_empty() && !below.iter().any(|pid| is_alive(*pid))).then_some(())
    })
    .await;
    let alive: Vec<String> = with_marker(&marker).into_iter().map(|seen| seen.command_line).collect();
    stage.report.check("no process of it outlives the harness", gone.is_ok(), &alive.join("; "))
}

fn marker(stage: &Stage) -> String {
    let value =
        stage.options.variables.iter().find(|(name, _)| name == MARKER).map(|(_, value)| value.clone());
    value.and_then(|value| value.into_string().ok()).unwrap_or_default()
}
