//! Ends: true ones, forced ones, and that nothing is left after any of them.

use std::time::{Duration, Instant};

use mooring_executor::runner::{End, EndKind, StartError, StartSpec};
use rustix::process::Signal;

use crate::fixture::{
    DEADLINE, Identity, World, await_condition, exited, finish, kill, line, parent, within,
};

/// 20 branches: new sessions, double forks, TERM, HUP and INT ignored, one stopped; then says that it is ready.
const HOSTILE: &str = r#"
trap '' TERM HUP INT
for i in 1 2 3 4 5 6 7 8 9 10; do
  setsid sh -c 'trap "" TERM; (setsid sleep 1000 & setsid sh -c "sleep 1000 & sleep 1000" &) ; sleep 1000' &
done
sh -c 'kill -STOP $$' &
sleep 0.2
echo ready
sleep 1000
"#;

fn background(mut spec: StartSpec) -> StartSpec {
    spec.background = true;
    spec.timeout = None;
    spec
}

fn timeout(mut spec: StartSpec, millis: u64) -> StartSpec {
    spec.timeout = Some(Duration::from_millis(millis));
    spec
}

#[tokio::test]
async fn a_hostile_tree_is_gone_at_the_limit_and_the_grace() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let begun = Instant::now();
        let outcome = world.run(timeout(world.shell(HOSTILE), 1500)).await;
        let limit = Duration::from_millis(1500);
        assert_eq!(outcome.end.kind, EndKind::TimedOut { timeout: limit }, "{identity:?}");
        assert_eq!(world.survivors(), Vec::<i32>::new(), "{identity:?}");
        assert!(outcome.end.survivors_killed >= 40, "{outcome:?}");
        let took = begun.elapsed();
        assert!(took >= limit + Duration::from_secs(2) && took < limit + Duration::from_secs(10), "{took:?}");
    }
}

#[tokio::test]
async fn a_process_that_obeys_term_ends_without_the_grace() {
    let world = World::new(Identity::Own);
    let begun = Instant::now();
    let outcome = world.run(timeout(world.argv(&["sleep", "1000"]), 100)).await;
    assert_eq!(outcome.end.kind, EndKind::TimedOut { timeout: Duration::from_millis(100) });
    assert!(begun.elapsed() < Duration::from_millis(1900), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_flood_does_not_starve_the_clock() {
    let world = World::new(Identity::Own);
    for program in ["yes", "cat /dev/zero", "while :; do (sleep 0 &) ; done"] {
        let running = world.start(timeout(world.shell(program), 500)).await;
        let (stdout, ended) = (running.stdout, running.ended);
        let end = within(ended).await;
        assert_eq!(end.kind, EndKind::TimedOut { timeout: Duration::from_millis(500) }, "{program}");
        drop(stdout);
    }
    world.await_no_survivor().await;
}

#[tokio::test]
async fn a_background_child_that_holds_the_pipe_does_not_hold_the_end() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let begun = Instant::now();
        let outcome = world.sh("setsid sleep 300 & echo OK").await;
        assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "OK\n"));
        assert_eq!(outcome.end.survivors_killed, 1);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(world.survivors(), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn a_background_command_keeps_its_survivors_until_cancelled() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let running = world.start(background(world.shell("setsid sleep 300 & exit 5"))).await;
        let end = within(running.ended).await;
        assert_eq!((end.kind, end.survivors_killed), (exited(5), 0));
        assert_eq!(world.survivors().len(), 1);
        running.control.cancel().await.expect("the runner is there");
        within(running.gone).await;
        assert_eq!(world.survivors(), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn a_cancelled_command_is_gone_whatever_it_ignores() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let mut running = world.start(world.shell(HOSTILE)).await;
        assert_eq!(line(&mut running.stdout).await, "ready");
        running.control.cancel().await.expect("the runner is there");
        running.control.cancel().await.expect("twice is once");
        let outcome = finish(running).await;
        assert_eq!(outcome.end.kind, EndKind::Cancelled);
        assert_eq!(world.survivors(), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn a_signal_is_reported_as_what_it_was() {
    let world = World::new(Identity::Own);
    for (text, end) in [
        ("kill -9 $$", EndKind::Signalled(9)),
        ("kill -SEGV $$", EndKind::Signalled(11)),
        ("kill -TERM $$", EndKind::Signalled(15)),
        ("sh -c 'kill -9 $$'; exit $?", exited(137)),
        ("exit 143", exited(143)),
        ("exit 124", exited(124)),
    ] {
        assert_eq!(world.sh(text).await.end.kind, end, "{text}");
    }
}

#[tokio::test]
async fn a_signal_on_request_reaches_the_main_process() {
    let world = World::new(Identity::Own);
    let text = "trap 'echo got; exit 6' USR1; echo ready; while :; do sleep 0.05; done";
    let mut running = world.start(world.shell(text)).await;
    assert_eq!(line(&mut running.stdout).await, "ready");
    running.control.signal(10).await.expect("the runner is there");
    assert!(matches!(running.control.signal(65).await, Err(StartError::Invalid(_))));
    let outcome = finish(running).await;
    assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(6), "got\n"));
}

#[tokio::test]
async fn killing_everything_reaches_nobody_else() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let mut bystander = world.start(background(world.shell("echo ready; sleep 1000"))).await;
        assert_eq!(line(&mut bystander.stdout).await, "ready");
        let attack = "kill -9 $PPID && echo reached; for p in $(ls /proc | grep '^[0-9]'); do \
                      [ $p = $$ ] || { kill -0 $p 2>/dev/null && [ \"$(cut -d' ' -f4 /proc/$p/stat 2>/dev/null)\" != $$ ] && \
                      [ -e /proc/$p ] && echo reached $p; }; done; echo done; kill -9 -1; exit 0";
        let outcome = world.sh(attack).await;
        assert_eq!(outcome.stdout, "done\n", "{identity:?}");
        let still = world.sh("echo alive").await;
        assert_eq!((still.end.kind, still.stdout.as_str()), (exited(0), "alive\n"));
        assert_eq!(world.survivors().len(), 2, "the bystander and its sleep");
        bystander.control.cancel().await.expect("the runner is there");
        within(bystander.gone).await;
    }
}

#[tokio::test]
async fn two_thousand_orphans_leave_no_zombie() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let text = "i=0; while [ $i -lt 2000 ]; do (sleep 0.01 &) ; i=$((i + 1)); done; exit 0";
        let running = world.start(background(world.shell(text))).await;
        assert_eq!(within(running.ended).await.kind, exited(0));
        within(running.gone).await;
        await_condition(|| world.supervisors().len() == 1).await;
    }
}

#[tokio::test]
async fn a_bomb_ends_at_its_process_limit() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let mut spec = world
            .shell("f() { f | f & }; i=0; while [ $i -lt 300 ]; do sleep 100 & i=$((i + 1)); done; wait");
        spec.process_limit = Some(100);
        let outcome = world.run(spec).await;
        assert_eq!(outcome.end.kind, EndKind::ProcessLimit { limit: 100 });
        assert_eq!(world.survivors(), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn processes_are_counted_while_they_live() {
    let world = World::new(Identity::Own);
    let mut running = world.start(background(world.shell("sleep 1000 & sleep 1000 & wait"))).await;
    within(running.processes.wait_for(|live| *live == 3)).await.expect("the link is there");
    running.control.cancel().await.expect("the runner is there");
    within(running.gone).await;
}

#[tokio::test]
async fn a_killed_runner_leaves_no_process() {
    for identity in Identity::all() {
        let mut world = World::new(identity);
        let mut running = world.start(world.shell(HOSTILE)).await;
        assert_eq!(line(&mut running.stdout).await, "ready");
        world.runner.kill().expect("it lives");
        let end = within(running.ended).await;
        assert_eq!(end.kind, EndKind::RunnerLost);
        world.await_no_survivor().await;
        assert!(matches!(world.link.start(world.shell("true")).await, Err(StartError::RunnerUnavailable)));
        assert!(matches!(running.control.cancel().await, Err(StartError::RunnerUnavailable)));
    }
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_process_and_its_command_was_killed() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let mut bystander = world.start(background(world.shell("echo ready; sleep 1000"))).await;
        assert_eq!(line(&mut bystander.stdout).await, "ready");
        await_condition(|| world.survivors().len() == 2).await;
        let spared = world.survivors();
        let mut running = world.start(world.shell(HOSTILE)).await;
        assert_eq!(line(&mut running.stdout).await, "ready");
        let hostile = world.survivors().into_iter().filter(|pid| !spared.contains(pid));
        let supervisors = world.supervisors();
        let mut above = hostile.filter_map(parent);
        kill(above.find(|pid| supervisors.contains(pid)).expect("the main process has one"), Signal::KILL);
        let outcome = finish(running).await;
        assert_eq!(outcome.end.kind, EndKind::Signalled(9));
        await_condition(|| world.survivors().len() == spared.len()).await;
        assert_eq!(world.survivors(), spared, "the bystander is untouched");
        bystander.control.cancel().await.expect("the runner is there");
        within(bystander.gone).await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_before_its_start_costs_no_command() {
    let world = World::new(Identity::Own);
    await_condition(|| world.supervisors().len() == 1).await;
    kill(world.supervisors()[0], Signal::KILL);
    await_condition(|| world.supervisors().is_empty()).await;
    let outcome = world.sh("echo fine").await;
    assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "fine\n"));
}

#[tokio::test]
async fn a_closed_link_ends_everything_and_the_runner() {
    for identity in Identity::all() {
        let mut world = World::new(identity);
        let mut running = world.start(background(world.shell(HOSTILE))).await;
        assert_eq!(line(&mut running.stdout).await, "ready");
        world.link.close();
        let lost = within(running.ended).await;
        assert_eq!(lost.kind, EndKind::RunnerLost);
        let status =
            tokio::task::spawn_blocking(move || (world.runner.wait(), world)).await.expect("no panic");
        assert!(status.0.expect("a child").success());
        assert_eq!(status.1.survivors(), Vec::<i32>::new());
    }
}

#[tokio::test]
async fn term_ends_the_runner_and_everything() {
    let mut world = World::new(Identity::Own);
    let mut running = world.start(background(world.shell(HOSTILE))).await;
    assert_eq!(line(&mut running.stdout).await, "ready");
    kill(i32::try_from(world.runner.id()).expect("a process number"), Signal::TERM);
    assert_eq!(within(running.ended).await.kind, EndKind::RunnerLost);
    let status = tokio::task::spawn_blocking(move || (world.runner.wait(), world)).await.expect("no panic");
    assert!(status.0.expect("a child").success());
    assert_eq!(status.1.survivors(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_runner_that_is_process_one_works_the_same() {
    if Identity::all().len() == 1 {
        return;
    }
    let world = World::as_process_one();
    let outcome = world.sh("setsid sleep 300 & kill -9 1; kill -9 -1; echo OK").await;
    assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "OK\n"));
    let limit = Duration::from_millis(1500);
    let hostile = world.run(timeout(world.shell(HOSTILE), 1500)).await;
    assert_eq!(hostile.end.kind, EndKind::TimedOut { timeout: limit });
    assert_eq!(world.survivors(), Vec::<i32>::new());
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_any_more_leaves_nothing() {
    let world = World::new(Identity::Own);
    let mut start = Box::pin(world.link.start(world.shell("sleep 1000")));
    assert!(futures::poll!(&mut start).is_pending(), "it waits for the link's task");
    drop(start);
    let outcome = world.sh("echo after").await;
    assert_eq!(outcome.stdout, "after\n");
    world.await_no_survivor().await;
}

#[tokio::test]
async fn the_end_of_a_foreground_command_is_told_before_its_limit_only_if_it_ended() {
    let world = World::new(Identity::Own);
    let End { kind, duration, .. } = world.run(timeout(world.argv(&["true"]), 3_600_000)).await.end;
    assert_eq!(kind, exited(0));
    assert!(duration < DEADLINE);
}
