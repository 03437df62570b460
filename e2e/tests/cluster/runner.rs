//! What befalls the commands befalls neither the executor nor the Session.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use mooring_e2e::execution::{Executor, Program};
use mooring_e2e::fixture::kill;
use mooring_proto::v1::attach_response::Event;
use mooring_proto::v1::command_end::End;

use super::stage::tell;
use super::turn::{STATUS_DEADLINE, said, take_in_peace};

/// A command that is killed with its runner is told at once.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Whether the node accounts memory by control groups of the second version. The kubelet sets `memory.oom.group` there, so
/// that whoever uses too much takes its whole container with it (kubernetes/kubernetes#117793).
async fn ends_whole_containers(executor: &Executor) -> anyhow::Result<bool> {
    // The first version has a line for each of its controllers, the second has one that names none (cgroups(7)).
    let groups = said(executor, "cat /proc/self/cgroup").await?;
    ensure!(groups.lines().any(|line| line.starts_with("0::") || line.contains(":memory:")), "{groups}");
    Ok(!groups.contains(":memory:"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_bomb_ends_and_the_session_lives() {
    take_in_peace(async |turn| {
        let (before, executor) = turn.executor().await?;
        let is_whole = ends_whole_containers(&executor).await?;
        // One line without an end, of which it keeps all.
        let finished = executor.run(&Program::argv(["tail", "/dev/zero"])).await?;
        let millis = finished.end.duration_millis;
        if is_whole {
            ensure!(matches!(finished.end.end, Some(End::RunnerLost(_))), "{}", finished.told());
            let shown = turn.session.condition(SHOWN, "RunnerRestarted", "True", "RunnerOutOfMemory").await?;
            ensure!(shown.is("Ready"), "{}", shown.told());
            tell(&format!("memory bomb, control groups 2: runner_lost after {millis} ms, RunnerOutOfMemory"));
        } else {
            ensure!(matches!(finished.end.end, Some(End::OutOfMemory(_))), "{}", finished.told());
            tell(&format!("memory bomb, control groups 1: out_of_memory after {millis} ms"));
        }
        assert_eq!(said(&executor, "echo alive").await?, "alive\n");
        assert_eq!(turn.session.ready().await?, before);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_runner_loses_its_commands_and_nothing_else() {
    take_in_peace(async |turn| {
        let (before, executor) = turn.executor().await?;
        let program = Program::shell("echo begun; exec sleep 1000").lasting(Duration::from_mins(10));
        let command = executor.start(&program).await?.command_id;
        let mut events = executor.attach(&command).await?;
        let first = events.message().await?.context("output")?;
        ensure!(matches!(first.event, Some(Event::Output(_))), "{first:?}");

        let start = Instant::now();
        kill(turn.ground.run()?.container_pid(&before.executor.pod_uid, "runner").await?)?;
        let finished = tokio::time::timeout(END_DEADLINE, executor.follow(&command)).await;
        let finished = finished.context("the command's end is told")??;
        ensure!(matches!(finished.end.end, Some(End::RunnerLost(_))), "{}", finished.told());
        let told = start.elapsed();

        let (again, refusals) = executor.run_once_possible(&Program::shell("echo again")).await?;
        assert_eq!(again.text(), "again\n");
        let works = start.elapsed();
        // The kubelet tells it after the fact, and the operator after the kubelet.
        let shown = turn.session.condition(SHOWN, "RunnerRestarted", "True", "RunnerExited").await?;
        tell(&format!(
            "runner killed: runner_lost after {:.2} s, commands again after {:.2} s ({refusals} times \
             runner_unavailable), RunnerRestarted after {:.2} s",
            told.as_secs_f64(),
            works.as_secs_f64(),
            start.elapsed().as_secs_f64(),
        ));
        ensure!(shown.is("Ready"), "{}", shown.told());
        assert_eq!(turn.session.ready().await?, before);
        Ok(())
    })
    .await;
}

/// The kubelet looks at its containers each second, and tells the API server soon after.
const SHOWN: Duration = Duration::from_secs(STATUS_DEADLINE.as_secs() + 5);
