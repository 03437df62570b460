//! `SIGKILL` of each process in turn: nothing of a command survives, and what is told of it is true.

use std::time::Duration;

use mooring_e2e::fixture::{
    Client, Harness, World, await_condition, descendants, is_alive, kill, sequence, tool_results, with_marker,
};
use serde_json::json;

const DEADLINE: Duration = Duration::from_secs(20);
const RUN_DEADLINE: Duration = Duration::from_mins(2);

struct Running {
    world: World,
    harness: Harness,
    client: Client,
    session: String,
}

/// A session whose command runs, with children that ignore TERM and have left its process group.
async fn running() -> Running {
    let command = "trap '' TERM; echo started >> started; setsid sleep 1000 & (setsid sh -c 'sleep 1000 & sleep 1000' &); \
                   sleep 1000; echo ended >> started";
    let calls = [
        ("Shell", json!({"command": command, "timeoutMillis": 600_000})),
        ("Shell", json!({"command": "echo again >> started"})),
    ];
    let world = World::make(sequence(calls)).await.expect("world");
    let harness = world.start().await.expect("harness");
    let client = harness.client().expect("client");
    let session = client.create_session(&json!({"mode": "fullTrust"})).await.expect("session");
    client.say(&session, "go").await.expect("message");
    await_condition(DEADLINE, "four sleepers", async || {
        let sleepers =
            with_marker(world.marker()).into_iter().filter(|seen| seen.command_line == "sleep 1000");
        (sleepers.count() == 4).then_some(())
    })
    .await
    .expect("the command runs");
    Running { world, harness, client, session }
}

impl Running {
    /// Everything that carries the marker, but for the harness.
    async fn command_is_gone(&self) {
        let harness = self.harness.pid();
        let left = || with_marker(self.world.marker()).into_iter().filter(|seen| seen.pid != harness);
        let sleepers = || left().filter(|seen| seen.command_line.contains("sleep 1000")).collect::<Vec<_>>();
        let gone =
            await_condition(DEADLINE, "the command to be gone", async || sleepers().is_empty().then_some(()))
                .await;
        assert!(gone.is_ok(), "{:?}", sleepers());
    }

    /// How the first call was told, once the run is over.
    async fn told(&self) -> String {
        let mut events = self.client.events(&self.session, None).await.expect("events");
        let seen = events.until("run.finished", RUN_DEADLINE).await.expect("the run ends");
        let results = tool_results(&seen);
        let end = seen.last().expect("end").data.clone();
        assert_eq!(end["state"], "finished", "{end}: {results:?}");
        results.first().expect("result").text.clone()
    }

    fn lines(&self) -> String {
        std::fs::read_to_string(self.world.tree().join("started")).expect("started")
    }
}

#[tokio::test]
async fn a_killed_harness_takes_everything_along_and_does_nothing_twice() {
    let Running { world, harness, session, .. } = running().await;
    let below: Vec<u32> = descendants(harness.pid()).iter().map(|seen| seen.pid).collect();
    harness.crash().await.expect("crash");
    await_condition(DEADLINE, "everything below the harness to be gone", async || {
        (with_marker(world.marker()).is_empty() && !below.iter().any(|pid| is_alive(*pid))).then_some(())
    })
    .await
    .unwrap_or_else(|cause| panic!("{cause}: {:?}", with_marker(world.marker())));
    let harness = world.start().await.expect("harness again");
    let client = harness.client().expect("client");
    let running = Running { world, harness, client, session };
    let told = running.told().await;
    assert!(told.contains("executor_lost"), "{told}");
    assert_eq!(running.lines(), "started\nagain\n");
}

#[tokio::test]
async fn a_killed_executor_is_told_as_executor_lost() {
    let running = running().await;
    let serve = running.harness.half("serve").await.expect("serve half");
    kill(serve.pid).expect("kill");
    running.command_is_gone().await;
    let told = running.told().await;
    assert!(told.contains("executor_lost"), "{told}");
    assert_eq!(running.lines(), "started\nagain\n");
}

#[tokio::test]
async fn a_killed_runner_is_told_as_runner_lost() {
    let running = running().await;
    let run = running.harness.half("run").await.expect("run half");
    kill(run.pid).expect("kill");
    running.command_is_gone().await;
    let told = running.told().await;
    assert!(told.contains("runner_lost"), "{told}");
    assert!(!running.lines().contains("ended"), "{}", running.lines());
}

#[tokio::test]
async fn a_killed_supervisor_leaves_nothing_and_reads_as_signal_9() {
    let running = running().await;
    let run = running.harness.half("run").await.expect("run half");
    // The runner may hold a spare one, which supervises nothing yet.
    let supervises = |pid| descendants(pid).iter().any(|seen| seen.command_line == "sleep 1000");
    let mut supervisors = descendants(run.pid);
    supervisors.retain(|seen| seen.parent == run.pid && supervises(seen.pid));
    assert_eq!(supervisors.len(), 1, "{supervisors:?}");
    kill(supervisors[0].pid).expect("kill the supervisor");
    running.command_is_gone().await;
    let told = running.told().await;
    assert!(told.contains("signal 9"), "{told}");
    assert_eq!(running.lines(), "started\nagain\n");
}
