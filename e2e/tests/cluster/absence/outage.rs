//! Parts of the cluster stop and start again, and no Session is touched by it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use mooring_e2e::cluster::Component;
use mooring_e2e::execution::{Executor, Program};
use mooring_e2e::fixture::{await_condition, kill};
use mooring_e2e::platform::{Bound, SYSTEM, Session};

use crate::loss::is_replaced;
use crate::stage::{OPERATOR_PODS, start_operator, stop_operator, tell};
use crate::turn::{Turn, said, take_in_quiet};

/// What a deleted pod is told as soon after an outage of the API server: the cluster may have missed the node's lease
/// meanwhile, and then says for a moment that the node does not answer.
const AFTER_OUTAGE: &[&str] = &["PodDeleted", "NodeUnreachable"];
/// From its end to the next operator that works: the kubelet's restart and the first full lists.
const OPERATOR_DEADLINE: Duration = Duration::from_mins(1);
/// The controller manager's grace for a node is twenty seconds, and the operator is told after it.
const SILENCE_DEADLINE: Duration = Duration::from_mins(1);

/// The one running pod of the operator: its UID, and how often its container was started anew.
async fn operator(turn: &Turn) -> anyhow::Result<(String, i32)> {
    let pods = turn.ground.api::<Pod>(SYSTEM).list(&ListParams::default().labels(OPERATOR_PODS)).await?;
    let mut ready = pods.items.into_iter().filter_map(|pod| {
        let status = pod.status?;
        let is_ready = |condition: &k8s_openapi::api::core::v1::PodCondition| {
            condition.type_ == "Ready" && condition.status == "True"
        };
        let restarts = status.container_statuses?.first()?.restart_count;
        let is_ready = pod.metadata.deletion_timestamp.is_none() && status.conditions?.iter().any(is_ready);
        Some((pod.metadata.uid?, restarts)).filter(|_| is_ready)
    });
    ready.next().context("no operator is ready")
}

async fn await_operator(turn: &Turn, is_wanted: impl Fn(&(String, i32)) -> bool) -> anyhow::Result<()> {
    let look = async || operator(turn).await.ok().filter(|found| is_wanted(found)).map(drop);
    await_condition(OPERATOR_DEADLINE, "another operator is ready", look).await
}

/// Whatever stopped, the pod is the one it was and nobody bound it again.
async fn is_untouched(turn: &mut Turn, before: &Bound) -> anyhow::Result<()> {
    let after = turn.session.ready().await?;
    assert_eq!(&after, before);
    let (_, executor) = turn.executor().await?;
    assert_eq!(said(&executor, "echo alive").await?, "alive\n");
    Ok(())
}

/// Deletes the pod with kubectl.
async fn delete_pod(turn: &Turn, bound: &Bound) -> anyhow::Result<()> {
    let arguments = ["delete", "pod", &bound.executor.pod, "--wait=false"];
    turn.session.namespace.kubectl(&arguments).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_operator_comes_back_and_touches_no_session() {
    take_in_quiet(async |turn| {
        let (before, executor) = turn.executor().await?;
        let (uid, restarts) = operator(turn).await?;
        let start = Instant::now();
        kill(turn.ground.run()?.container_pid(&uid, "operator").await?)?;
        assert_eq!(said(&executor, "echo alive").await?, "alive\n");
        await_operator(turn, |(again, count)| *again != uid || *count > restarts).await?;
        tell(&format!("operator killed: ready again after {:.2} s", start.elapsed().as_secs_f64()));
        is_untouched(turn, &before).await?;
        is_replaced(turn, "pod deleted after the operator's restart", &["PodDeleted"], delete_pod).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_while_the_operator_is_stopped_is_mended_when_it_starts() {
    take_in_quiet(async |turn| {
        let (before, _) = turn.executor().await?;
        stop_operator(&turn.ground).await?;
        let namespace = &turn.session.namespace;
        namespace.kubectl(&["delete", "pod", &before.executor.pod, "--timeout=60s"]).await?;
        // Nobody is there to say otherwise.
        ensure!(turn.session.status().is("Ready"), "{}", turn.session.status().told());
        start_operator(&turn.ground).await?;
        let ready = Instant::now();
        let (after, seen) = turn.session.ready_from(before.epoch + 1).await?;
        tell(&format!(
            "pod deleted while the operator was stopped: Ready {:.2} s after the operator was",
            seen.saturating_duration_since(ready).as_secs_f64()
        ));
        assert_eq!(after.epoch, before.epoch + 1);
        assert_eq!(after.environment, before.environment);
        Ok(())
    })
    .await;
}

/// The node is silent, and nothing else happens: commands go on, and no pod is deleted or made.
async fn is_told_and_goes_on(turn: &mut Turn, before: &Bound, executor: &Executor) -> anyhow::Result<()> {
    let program =
        Program::shell("echo begun; read -r word < fifo; echo $word").lasting(Duration::from_mins(5));
    said(executor, "mkfifo fifo").await?;
    let command = executor.start(&program).await?.command_id;
    let start = Instant::now();
    let status = turn.session.condition(SILENCE_DEADLINE, "Ready", "Unknown", "NodeUnreachable").await?;
    tell(&format!("kubelet stopped: NodeUnreachable after {:.2} s", start.elapsed().as_secs_f64()));
    assert_eq!(status.executor.as_ref(), Some(&before.executor));
    assert_eq!(said(executor, "echo ended > fifo; rm fifo; echo alive").await?, "alive\n");
    let finished = executor.follow(&command).await?;
    ensure!(finished.is_success() && finished.text() == "begun\nended\n", "{}", finished.told());
    let pods = turn.ground.api::<Pod>(&turn.session.namespace.name).list(&ListParams::default()).await?;
    let pods = pods.items.into_iter().map(|pod| (pod.metadata.uid, pod.metadata.deletion_timestamp));
    assert_eq!(pods.collect::<Vec<_>>(), [(Some(before.executor.pod_uid.clone()), None)]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_falls_silent_is_told_and_stops_no_command_and_replaces_no_pod() {
    take_in_quiet(async |turn| {
        let (before, executor) = turn.executor().await?;
        let run = turn.ground.run()?.clone();
        run.stop(Component::Kubelet).await?;
        let told = Box::pin(is_told_and_goes_on(turn, &before, &executor)).await;
        let start = Instant::now();
        run.start(Component::Kubelet).await?;
        told?;
        is_untouched(turn, &before).await?;
        tell(&format!("kubelet started: Ready again after {:.2} s", start.elapsed().as_secs_f64()));
        is_replaced(turn, "pod deleted after the kubelet's restart", &["PodDeleted"], delete_pod).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_api_server_stops_no_command_and_replaces_no_pod() {
    take_in_quiet(async |turn| {
        let (before, executor) = turn.executor().await?;
        let run = turn.ground.run()?.clone();
        run.stop(Component::Apiserver).await?;
        let worked = said(&executor, "echo alive").await;
        let start = Instant::now();
        run.start(Component::Apiserver).await?;
        assert_eq!(worked?, "alive\n");
        tell(&format!("API server stopped: ready again after {:.2} s", start.elapsed().as_secs_f64()));
        // The watch of before comes back in its own time.
        turn.session = Session::open(&turn.session.namespace, &turn.session.name);
        is_untouched(turn, &before).await?;
        is_replaced(turn, "pod deleted after the API server's restart", AFTER_OUTAGE, delete_pod).await
    })
    .await;
}
