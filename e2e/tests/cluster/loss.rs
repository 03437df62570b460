//! An executor that is lost comes back as the next epoch of the same environment, over equal bytes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use mooring_e2e::execution::code;
use mooring_e2e::fixture::kill;
use mooring_e2e::platform::{Bound, Sighting, Watch};
use mooring_proto::v1::ErrorCode;
use serde_json::json;

use super::stage::tell;
use super::turn::{STATUS_DEADLINE, Turn, take_in_peace};

/// From what is done to a pod to the API showing it.
const SHOWN_DEADLINE: Duration = Duration::from_secs(30);

/// Loses the executor's pod in some way, and sees the next one.
pub(super) async fn is_replaced(
    turn: &mut Turn,
    what: &str,
    reasons: &[&str],
    lose: impl AsyncFnOnce(&Turn, &Bound) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (before, executor) = turn.executor().await?;
    let mut pod = Watch::of(turn.ground.api::<Pod>(&turn.session.namespace.name), &before.executor.pod);
    let start = Instant::now();
    lose(turn, &before).await?;
    let shown = pod.until(SHOWN_DEADLINE, "the API shows the loss", shown, told).await?;
    let told = turn.session.not_ready(start, STATUS_DEADLINE).await;
    let (said, seen) = told.with_context(|| format!("{what}, which the API showed"))?;
    let (after, ready) = turn.session.ready_from(before.epoch + 1).await?;
    tell(&format!(
        "{what}: Ready=False {said} {:.2} s after the API showed it, Ready again after {:.2} s",
        seen.saturating_duration_since(shown).as_secs_f64(),
        (ready - start).as_secs_f64(),
    ));
    ensure!(seen.saturating_duration_since(shown) <= STATUS_DEADLINE, "the status was late");
    ensure!(reasons.contains(&said.as_str()), "{said} is told, none of {reasons:?}");
    assert_eq!(after.epoch, before.epoch + 1);
    assert_eq!(after.environment, before.environment);
    assert_eq!(after.claim, before.claim);
    assert_ne!(after.executor.pod_uid, before.executor.pod_uid);
    assert_ne!(after.executor.boot_id, before.executor.boot_id);
    drop(executor);
    // Who still speaks of the former epoch is told so.
    let late = turn.session.connect(&after, &turn.product).await?.with(|target| target.epoch = before.epoch);
    let refused = late.list("").await.expect_err("the former epoch is over");
    assert_eq!(code(&refused), Some(ErrorCode::StaleEpoch));
    Ok(())
}

/// When the API first showed that the executor's pod is going or gone.
fn shown(seen: &[Sighting<Pod>]) -> Option<Instant> {
    let is_lost = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        let mut ended = statuses
            .into_iter()
            .flatten()
            .filter(|container| container.state.as_ref().is_some_and(|state| state.terminated.is_some()));
        pod.metadata.deletion_timestamp.is_some() || ended.next().is_some()
    };
    seen.iter().find(|sighting| sighting.object.as_ref().is_none_or(is_lost)).map(|sighting| sighting.at)
}

fn told(pod: &Pod) -> String {
    serde_json::to_string(&pod.status).unwrap_or_default()
}

/// As `kubectl drain` does it for each pod of a node.
async fn evict(turn: &Turn, bound: &Bound) -> anyhow::Result<()> {
    let (namespace, pod) = (&turn.session.namespace.name, &bound.executor.pod);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": pod},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    let arguments = ["create", "--raw", &path, "-f", "-"];
    let said = turn.ground.kubectl.ask(&arguments, eviction.to_string().as_bytes()).await?;
    ensure!(said.is_success, "{said:?}");
    Ok(())
}

/// The executor's process, killed from the node.
async fn kill_executor(turn: &Turn, bound: &Bound) -> anyhow::Result<()> {
    kill(turn.ground.run()?.container_pid(&bound.executor.pod_uid, "executor").await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_pod_is_replaced_over_the_same_bytes() {
    take_in_peace(async |turn| {
        is_replaced(turn, "pod deleted", &["PodDeleted"], async |turn, bound| {
            let namespace = &turn.session.namespace;
            namespace.kubectl(&["delete", "pod", &bound.executor.pod, "--wait=false"]).await.map(drop)
        })
        .await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_exits_is_replaced_over_the_same_bytes() {
    take_in_peace(async |turn| is_replaced(turn, "executor killed", &["ExecutorLost"], kill_executor).await)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_deleted_without_grace_is_replaced_over_the_same_bytes() {
    take_in_peace(async |turn| {
        is_replaced(turn, "pod deleted by force", &["PodDeleted"], async |turn, bound| {
            let arguments =
                ["delete", "pod", &bound.executor.pod, "--wait=false", "--grace-period=0", "--force"];
            turn.session.namespace.kubectl(&arguments).await.map(drop)
        })
        .await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_pod_is_replaced_over_the_same_bytes() {
    take_in_peace(async |turn| is_replaced(turn, "pod evicted", &["Evicted"], evict).await).await;
}
