//! The documented line, as it is written, with the real `curl`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Stage;
use super::world::output;
use crate::fixture::{Harness, descendants};

pub(super) async fn perform(stage: &mut Stage, harness: Harness) -> anyhow::Result<Harness> {
    stage.report.title("A session without files, by curl")?;
    if output(&stage.world.folder, "curl", &["--version"]).await.is_err() {
        stage.report.say("curl is not installed: left out.")?;
        return Ok(harness);
    }
    let before = pids(&harness);
    let url = format!("http://{}/v1/sessions", harness.address());
    let line = ["-s", "-X", "POST", url.as_str(), "-d", r#"{"profile":"no-fs"}"#];
    stage.report.say(&format!("curl -s -X POST {url} -d '{{\"profile\":\"no-fs\"}}'"))?;
    let answer = output(&stage.world.folder, "curl", &line).await?;
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    let session: Value = serde_json::from_str(&text).unwrap_or_default();
    stage.report.say(text.trim())?;
    let made = session["id"].is_string()
        && session["profile"] == "no-fs"
        && session["environment"]["kind"] == "none";
    stage.report.check("it makes a session with no environment", made, &text)?;
    let after = pids(&harness);
    stage.report.check("and no process", after.is_subset(&before), &format!("{before:?} {after:?}"))?;
    Ok(harness)
}

fn pids(harness: &Harness) -> BTreeSet<u32> {
    descendants(harness.pid()).into_iter().map(|seen| seen.pid).collect()
}
