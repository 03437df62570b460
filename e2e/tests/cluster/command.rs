//! Variables of a Session: its commands start with them, and nobody else is told a secret one.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use mooring_e2e::digest;
use mooring_e2e::platform::{Bound, OPERATOR, SYSTEM, Session, SessionStatus, Sighting, Watch};
use serde_json::json;

use super::stage::{Stage, on_stage, tell};
use super::turn::{STATUS_DEADLINE, said};

const START_DEADLINE: Duration = Duration::from_mins(1);

/// When both containers of the first epoch's pod were seen to run.
async fn runs(stage: &Stage, session: &mut Session) -> anyhow::Result<Instant> {
    let digest = digest::whole(session.uid().await?.as_bytes());
    let name = format!("ses-{}-1", &digest[..20]);
    let find = |seen: &[Sighting<Pod>]| {
        let is_running = |pod: &Pod| pod.status.as_ref()?.phase.as_deref().map(|phase| phase == "Running");
        let running = seen.iter().find(|it| it.object.as_ref().and_then(is_running) == Some(true));
        running.map(|sighting| sighting.at)
    };
    let mut pod = Watch::of(stage.ground.api::<Pod>(&stage.namespace.name), &name);
    let told = |pod: &Pod| serde_json::to_string(&pod.status).unwrap_or_default();
    pod.until(START_DEADLINE, "the pod runs", find, told).await
}

/// Everything that is written about a Session, for whoever may read it: all its versions, events, logs.
async fn written(stage: &Stage, session: &Session, bound: &Bound) -> anyhow::Result<String> {
    let mut written = Vec::new();
    for sighting in session.sightings() {
        written.push(serde_json::to_string(&sighting.object)?);
    }
    let label = format!("app.kubernetes.io/name={OPERATOR}");
    let pod = bound.executor.pod.as_str();
    for look in [
        ["get", "events", "--output", "yaml"].as_slice(),
        &["get", "pod", pod, "--output", "yaml"],
        &["logs", pod, "--all-containers", "--tail=-1"],
    ] {
        written.push(stage.namespace.kubectl(look).await?);
    }
    let log = ["--namespace", SYSTEM, "logs", "--tail=-1", "--selector", &label];
    let log = stage.ground.kubectl.run(&log).await?;
    ensure!(log.contains(&stage.namespace.name), "the operator's log says nothing about the Session: {log}");
    written.push(log);
    Ok(written.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_starts_with_its_variables_and_a_secret_one_is_told_to_nobody_else() {
    on_stage("variables", async |stage| {
        let value = format!("canary-{}", digest::whole(stage.namespace.name.as_bytes()));
        let spec = json!({"variables": [
            {"name": "PLACE_NAME", "value": "a quiet harbour"},
            {"name": "DEPLOY_WORD", "secret": {"name": "deploy", "key": "word"}},
        ]});
        let mut session = Session::apply(&stage.namespace, "one", &spec).await?;
        let runs = runs(stage, &mut session).await?;
        let find = |status: &SessionStatus| {
            let ready = status.condition("Ready").filter(|it| it.reason == "SecretNotFound")?;
            (ready.status == "False").then(|| ready.message.clone())
        };
        let (message, seen) = session.until(START_DEADLINE, "Ready=False SecretNotFound", find).await?;
        ensure!(message.contains("deploy"), "{message}");
        let late = seen.saturating_duration_since(runs);
        ensure!(late <= STATUS_DEADLINE, "told {late:?} after the pod ran");

        let secret = |key: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "deploy"},
                "stringData": {key: value},
            })
        };
        stage.namespace.apply_raw(secret("other")).await?;
        let find = |status: &SessionStatus| {
            let ready = status.condition("Ready").filter(|it| it.reason == "SecretNotFound")?;
            ready.message.contains("word").then_some(())
        };
        session.until(START_DEADLINE, "a message that names the key", find).await?;
        stage.namespace.apply_raw(secret("word")).await?;
        let start = Instant::now();
        let bound = session.ready().await.context("after the Secret came")?;
        tell(&format!(
            "missing Secret: told {:.2} s after the pod ran, Ready {:.2} s after it came",
            late.as_secs_f64(),
            start.elapsed().as_secs_f64()
        ));
        assert_eq!(bound.epoch, 1);
        let executor = session.connect(&bound, &stage.product).await?;
        let seen = said(&executor, r#"printf '%s, %s' "$PLACE_NAME" "$DEPLOY_WORD""#).await?;
        assert_eq!(seen, format!("a quiet harbour, {value}"));
        let written = written(stage, &session, &bound).await?;
        ensure!(written.contains("a quiet harbour"), "the search finds nothing");
        ensure!(!written.contains(&value), "the secret value is told");
        Ok(())
    })
    .await;
}
