//! How commands end, and that nothing of them lives on.

use std::time::{Duration, Instant};

use mooring_proto::v1::{Cancelled, ErrorCode, RunnerLost, SignalRequest, StartRequest, command_end::End};

use crate::fixture::{Executor, await_condition, code_of, lives, text};

#[tokio::test]
async fn a_signal_is_told_as_a_signal() {
    let executor = Executor::start().await;
    assert_eq!(executor.run(text("kill -KILL $$")).await.cause(), End::Signalled(9));
    assert_eq!(executor.run(text("kill -SEGV $$")).await.cause(), End::Signalled(11));
    assert_eq!(executor.run(text("exit 137")).await.cause(), End::Exited(137));
}

#[tokio::test]
async fn a_command_that_never_ends_is_timed_out_with_all_it_started() {
    let executor = Executor::start().await;
    let request = StartRequest {
        timeout_millis: 500,
        ..text(
            "trap '' TERM INT HUP; setsid sleep 1000 & echo $! > child; (setsid sleep 1000 & echo $! > grandchild); while :; do sleep 1; done",
        )
    };
    let outcome = executor.run(request).await;
    let End::TimedOut(timed_out) = outcome.cause() else { panic!("{outcome:?}") };
    assert_eq!(timed_out.timeout_millis, 500);
    for name in ["child", "grandchild"] {
        let id = executor.await_file(name).await;
        await_condition(name, || !lives(&id)).await;
    }
}

#[tokio::test]
async fn cancel_returns_once_nothing_lives() {
    let executor = Executor::start().await;
    let request =
        text("trap '' TERM; echo $$ > self; setsid sleep 1000 & echo $! > child; wait; wait; sleep 1000");
    let started = executor.start_command(request).await.expect("Start");
    let ids = [executor.await_file("self").await, executor.await_file("child").await];
    assert!(ids.iter().all(|id| lives(id)));
    let end = executor.cancel(&started.command_id).await;
    assert_eq!(end.end.expect("a cause"), End::Cancelled(Cancelled {}));
    assert!(!ids.iter().any(|id| lives(id)));
    // The end stays what it was.
    let again = executor.cancel(&started.command_id).await;
    assert_eq!(again.end, end.end);
    assert_eq!(executor.status(&started.command_id).await.live_processes, 0);
}

#[tokio::test]
async fn survivors_that_hold_the_pipes_do_not_hold_the_call() {
    let executor = Executor::start().await;
    let asked = Instant::now();
    let outcome = executor.run(text("setsid sleep 1000 & echo $! > child; echo done")).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(outcome.stdout_text(), "done\n");
    let end = outcome.end.expect("an end");
    assert_eq!((end.end, end.survivors_killed), (Some(End::Exited(0)), 1));
    let id = executor.await_file("child").await;
    await_condition("the survivor is gone", || !lives(&id)).await;
}

#[tokio::test]
async fn survivors_of_a_background_command_live_until_it_is_cancelled() {
    let executor = Executor::start().await;
    let request = StartRequest {
        background: true,
        ..text(
            "(echo $(exec sh -c 'echo $PPID') > child; until [ -e go ]; do sleep 0.01; done; echo late; exec sleep 1000) & echo early",
        )
    };
    let started = executor.start_command(request).await.expect("Start");
    let outcome = executor.attach(&started.command_id, [0, 0]).await;
    assert_eq!((outcome.stdout_text(), outcome.cause()), ("early\n", End::Exited(0)));
    let id = executor.await_file("child").await;
    assert!(lives(&id));
    std::fs::write(executor.path("go"), "").expect("a file");
    // What a survivor writes is there for a later reader.
    let mut status = executor.status(&started.command_id).await;
    let deadline = Instant::now() + crate::fixture::DEADLINE;
    while status.stdout_bytes < 11 {
        assert!(Instant::now() < deadline, "{status:?}");
        status = executor.status(&started.command_id).await;
    }
    assert_eq!(executor.attach(&started.command_id, [6, 0]).await.stdout_text(), "late\n");
    assert!(lives(&id));
    let end = executor.cancel(&started.command_id).await;
    assert_eq!(end.end, Some(End::Exited(0)), "the end it had already come to");
    assert!(!lives(&id));
}

#[tokio::test]
async fn a_signal_reaches_the_main_process() {
    let executor = Executor::start().await;
    let request = text("trap 'echo got; exit 7' USR1; echo ready > ready; while :; do sleep 0.01; done");
    let command_id = executor.start_command(request).await.expect("Start").command_id;
    executor.await_file("ready").await;
    let signal = |signal| SignalRequest { context: executor.act(), command_id: command_id.clone(), signal };
    let refused = executor.commands().signal(signal(65)).await.expect_err("no such signal");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
    executor.commands().signal(signal(10)).await.expect("Signal");
    let outcome = executor.attach(&command_id, [0, 0]).await;
    assert_eq!((outcome.stdout_text(), outcome.cause()), ("got\n", End::Exited(7)));
    executor.commands().signal(signal(10)).await.expect_err("it has ended");
}

#[tokio::test]
async fn a_killed_runner_ends_everything_and_is_told() {
    let executor = Executor::start().await;
    let request =
        text("trap '' TERM; setsid sleep 1000 & echo $! > child; echo $$ > self; while :; do sleep 1; done");
    let started = executor.start_command(request).await.expect("Start");
    let ids = [executor.await_file("self").await, executor.await_file("child").await];
    Executor::kill(&executor.run);
    let outcome = executor.attach(&started.command_id, [0, 0]).await;
    assert_eq!(outcome.cause(), End::RunnerLost(RunnerLost {}));
    await_condition("nothing of it lives", || !ids.iter().any(|id| lives(id))).await;

    let context = Some(executor.context_of("after"));
    let request = StartRequest { context, ..text("true") };
    let refused = executor.start_command(request).await.expect_err("no runner");
    let detail = mooring_proto::detail_of(&refused).expect("a detail");
    assert_eq!(detail.code(), ErrorCode::RunnerUnavailable);
    assert!(detail.retryable && detail.fields.contains_key("retry_after_millis"));
}

#[tokio::test]
async fn a_killed_server_ends_everything() {
    let executor = Executor::start().await;
    let request =
        text("trap '' TERM; setsid sleep 1000 & echo $! > child; echo $$ > self; while :; do sleep 1; done");
    executor.start_command(request).await.expect("Start");
    let ids = [executor.await_file("self").await, executor.await_file("child").await];
    Executor::kill(&executor.serve);
    await_condition("nothing of it lives", || !ids.iter().any(|id| lives(id))).await;
    await_condition("the running half has ended", || {
        executor.run.lock().expect("one test").try_wait().expect("ours").is_some()
    })
    .await;
}
