//! The first run: find a bug, fix it, prove it, push the fix. Then everything is checked without the agent.

use anyhow::Context as _;
use serde_json::json;

use super::world::{output, run};
use super::{RUN_DEADLINE, SHORT_DEADLINE, Stage};
use crate::fixture::{Event, Harness};

const WORDS: &str = "A test of the Go module in intervals/ fails. Find the bug, fix it, prove the fix with the tests, \
                     then push it to a branch.";
const PUSH: &str = "git push origin HEAD:fix/merge-inside";
const FIXED: &str = "\t\t\tlast.End = max(last.End, next.End)\n";
const BROKEN: &str = "\t\t\tlast.End = next.End\n";

pub(super) async fn perform(stage: &mut Stage, harness: Harness) -> anyhow::Result<Harness> {
    stage.report.title("Run 1: find, fix, prove, push")?;
    let tree = stage.world.tree.clone();
    let source = tree.join("intervals/intervals.go");
    let before = std::fs::read_to_string(&source).context("the module")?;
    let failing = output(&tree.join("intervals"), "go", &["test", "./..."]).await?;
    let text = String::from_utf8_lossy(&failing.stdout).into_owned();
    stage.report.check("before: the tests fail", text.contains("--- FAIL: TestMerge/one_inside"), &text)?;

    let client = harness.client()?;
    let session = client.create_session(&json!({})).await?;
    let mut events = client.events(&session, None).await?;
    client.say(&session, WORDS).await?;
    stage.report.say("The agent is at work; Go compiles its standard library for the agent's own cache.")?;
    let asked = events.until("approval.requested", RUN_DEADLINE).await?;
    let approval = client.pending_approval(&session, SHORT_DEADLINE).await?;
    let shown = approval["arguments"].to_string();
    let pushed =
        output(&stage.world.remote, "git", &["rev-parse", "--verify", "-q", "fix/merge-inside"]).await?;
    stage.report.transcript(&asked)?;
    stage.report.check("the push is asked about, as it will run", shown.contains(PUSH), &shown)?;
    stage.report.check("nothing is pushed before the answer", !pushed.status.success(), "a branch")?;
    let id = approval["id"].as_str().context("approval id")?;
    client.decide(id, "allow").await?.expect(200)?;
    let rest = events.until("run.finished", RUN_DEADLINE).await?;
    stage.report.transcript(&rest)?;
    check_end(stage, &rest)?;

    let expected = before.replace(BROKEN, FIXED);
    let after = std::fs::read_to_string(&source).context("the module")?;
    stage.report.check("the file has the fix and no other byte changed", after == expected, &after)?;
    let passing = output(&tree.join("intervals"), "go", &["test", "-count=1", "./..."]).await?;
    let text = String::from_utf8_lossy(&passing.stdout).into_owned();
    stage.report.check("`go test` passes when we run it", passing.status.success(), &text)?;
    let head = run(&tree, "git", &["rev-parse", "HEAD"]).await?;
    let branch = run(&stage.world.remote, "git", &["rev-parse", "refs/heads/fix/merge-inside"]).await?;
    stage.report.check(
        "the remote's branch is the agent's commit",
        head == branch,
        &format!("{head} {branch}"),
    )?;
    let pushed =
        run(&stage.world.remote, "git", &["show", "fix/merge-inside:intervals/intervals.go"]).await?;
    stage.report.check("the pushed file is the fixed one", pushed == expected, &pushed)?;
    let touched = run(&tree, "git", &["diff", "--name-only", "HEAD~1"]).await?;
    stage.report.check(
        "the commit touches that file alone",
        touched == "intervals/intervals.go\n",
        &touched,
    )?;
    Ok(harness)
}

fn check_end(stage: &mut Stage, events: &[Event]) -> anyhow::Result<()> {
    let end = events.last().map(|event| event.data.clone()).unwrap_or_default();
    stage.report.check("the run ends with an answer", end["state"] == "finished", &end.to_string())?;
    let tools: Vec<String> = stage
        .model
        .requests()
        .iter()
        .flat_map(|request| request.body["messages"].as_array().cloned().unwrap_or_default())
        .flat_map(|message| message["tool_calls"].as_array().cloned().unwrap_or_default())
        .filter_map(|call| call["function"]["name"].as_str().map(str::to_owned))
        .collect();
    let used = ["Grep", "Read", "Edit", "Shell"].iter().all(|tool| tools.iter().any(|used| used == tool));
    stage.report.check("Grep, Read, Edit and Shell were used", used, &tools.join(" "))
}
