//! Commands.

use std::io::Write as _;
use std::process::Stdio;

use mooring_proto::v1::ErrorCode;
use mooring_proto::v1::command_end::End;
use mooring_proto::v1::{Cancelled, TimedOut};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Play, SESSION, World, await_condition, finish};

const EXEC: [&str; 5] = ["session", "exec", SESSION, "--", "true"];

async fn world(plays: &[&[Play]]) -> World {
    let world = World::open().await;
    world.gateway.state().plays = plays.iter().map(|play| play.to_vec()).collect();
    world
}

fn stdout(offset: u64, text: &str) -> Play {
    Play::Stdout(offset, text.as_bytes().to_vec())
}

#[tokio::test]
async fn the_program_ends_as_its_command_does() {
    for (end, code) in [(End::Exited(0), 0), (End::Exited(3), 3), (End::Signalled(15), 143)] {
        let err = Play::Stderr(0, b"err".to_vec());
        let world = world(&[&[stdout(0, "out\n"), err, Play::End(end)]]).await;
        let ran = world.run(EXEC).await;
        assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (code, "out\n", "err"));
    }
}

#[tokio::test]
async fn the_command_and_what_it_is_given_arrive_as_they_were_written() {
    let world = world(&[&[Play::End(End::Exited(0))], &[Play::End(End::Exited(0))]]).await;
    let words =
        ["session", "exec", SESSION, "--cwd", "a", "-e", "A=b=c", "--timeout", "10m", "--", "go", "--x"];
    assert_eq!(world.run(words).await.code, 0);
    let started = world.gateway.state().started.values().next().expect("a start").clone();
    assert_eq!((started.cwd.as_str(), started.timeout_millis, started.stdin), ("a", 600_000, false));
    assert_eq!((&started.env[0].name[..], &started.env[0].value[..]), (&b"A"[..], &b"b=c"[..]));
    assert!(format!("{:?}", started.program).contains("--x"));
    let context = started.context.expect("a context");
    assert_eq!((context.epoch, context.actor, context.environment), (7, None, None));
    let ran = world.run(["session", "exec", SESSION, "-e", "=x", "--", "a"]).await;
    ran.check_failed(&["error: --env is NAME=VALUE"]);
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke() {
    let world = world(&[
        &[stdout(0, "abc"), Play::Stderr(0, b"x".to_vec()), Play::Break],
        &[stdout(3, "def")],
        &[stdout(5, "fg"), Play::End(End::Exited(4))],
    ])
    .await;
    let ran = world.run(EXEC).await;
    assert_eq!((ran.code, ran.text().as_str()), (4, "abcdefg"));
    let state = world.gateway.state();
    assert_eq!(state.offsets, [[0, 0], [3, 1], [6, 1]]);
    assert_eq!(state.started.len(), 1);
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_asked_for_again_as_the_same() {
    let world = world(&[&[Play::End(End::Exited(0))]]).await;
    world.gateway.state().lost_answers = 2;
    let ran = world.run(EXEC).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let state = world.gateway.state();
    assert_eq!(state.calls.iter().filter(|call| **call == "start").count(), 3);
    assert_eq!(state.started.len(), 1);
}

#[tokio::test]
async fn a_start_is_never_repeated_on_another_executor() {
    let world = world(&[]).await;
    world.gateway.state().lost_answers = 1;
    world.gateway.state().replaces_executor = true;
    let ran = world.run(EXEC).await;
    ran.check_failed(&["executor lost"]);
    assert_eq!(world.gateway.state().started.len(), 1);
}

#[tokio::test]
async fn without_knowing_the_epoch_a_start_is_not_repeated_at_all() {
    let world = world(&[&[Play::End(End::Exited(0))]]).await;
    world.api().epoch = None;
    world.gateway.state().lost_answers = 1;
    let ran = world.run(EXEC).await;
    ran.check_failed(&["the connection to the gateway broke"]);
    assert_eq!(world.gateway.state().calls, ["start"]);
}

#[tokio::test]
async fn an_epoch_that_was_old_already_is_read_again() {
    let world = world(&[&[Play::End(End::Exited(0))]]).await;
    world.api().epoch = Some(6);
    let run = world.run(EXEC);
    let mend = async {
        await_condition("a start is refused", || !world.gateway.state().calls.is_empty()).await;
        world.api().epoch = Some(7);
    };
    let (ran, ()) = tokio::join!(run, mend);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn a_command_that_its_executor_has_never_heard_of_is_lost() {
    for code in [ErrorCode::NotFound, ErrorCode::StaleEpoch, ErrorCode::WrongEnvironment] {
        let world = world(&[&[stdout(0, "a"), Play::Break], &[Play::Refuse(code)]]).await;
        let ran = world.run(EXEC).await;
        ran.check_failed(&["error: executor lost: whether the command did its work is not known"]);
        assert_eq!(ran.text(), "a");
    }
}

#[tokio::test]
async fn a_limit_that_passed_is_told_and_is_no_code_of_the_command() {
    let end = End::TimedOut(TimedOut { timeout_millis: 120_000 });
    let world = world(&[&[Play::End(end)]]).await;
    world.run(EXEC).await.check_failed(&["error: the command was ended after 120 s", "hint: give it longer"]);
}

#[tokio::test]
async fn the_first_signal_to_end_cancels_and_the_command_s_end_is_awaited() {
    let cancelled = Play::End(End::Cancelled(Cancelled {}));
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131), (Signal::TERM, 143)] {
        let world = world(&[&[stdout(0, "a"), Play::AwaitCancel, stdout(1, "b"), cancelled.clone()]]).await;
        let program = world.command(EXEC).spawn().expect("the program");
        await_condition("it is attached", || !world.gateway.state().offsets.is_empty()).await;
        let pid = Pid::from_raw(program.id().expect("it runs").cast_signed()).expect("a pid");
        kill_process(pid, signal).expect("a signal");
        let ran = finish(program).await;
        assert_eq!((ran.code, ran.text().as_str()), (code, "ab"), "{ran:?}");
    }
}

#[tokio::test]
async fn a_command_that_takes_no_notice_keeps_its_own_code() {
    let world = world(&[&[Play::AwaitCancel, Play::End(End::Exited(5))]]).await;
    let program = world.command(EXEC).spawn().expect("the program");
    await_condition("it is attached", || !world.gateway.state().offsets.is_empty()).await;
    let pid = Pid::from_raw(program.id().expect("it runs").cast_signed()).expect("a pid");
    kill_process(pid, Signal::INT).expect("a signal");
    assert_eq!(finish(program).await.code, 5);
}

#[tokio::test]
async fn the_second_interrupt_leaves() {
    let world = world(&[&[Play::AwaitCancel, Play::AwaitCancel]]).await;
    let program = world.command(EXEC).spawn().expect("the program");
    await_condition("it is attached", || !world.gateway.state().offsets.is_empty()).await;
    let pid = Pid::from_raw(program.id().expect("it runs").cast_signed()).expect("a pid");
    kill_process(pid, Signal::INT).expect("a signal");
    await_condition("it cancels", || world.gateway.state().calls.contains(&"cancel")).await;
    kill_process(pid, Signal::INT).expect("a signal");
    let ran = finish(program).await;
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.stderr.contains("it may still run"), "{ran:?}");
}

#[tokio::test]
async fn standard_input_arrives_whole_and_is_closed() {
    let world = world(&[&[Play::AwaitInput, Play::End(End::Exited(0))]]).await;
    let content: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut input = tempfile::tempfile().expect("a file");
    input.write_all(&content).expect("content");
    std::io::Seek::rewind(&mut input).expect("a file");
    let mut command = world.command(["session", "exec", SESSION, "-i", "--", "cat"]);
    let ran = finish(command.stdin(Stdio::from(input)).spawn().expect("the program")).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(world.gateway.state().input == (content, true), "it arrives as it was");
}

#[tokio::test]
async fn a_command_that_ends_does_not_wait_for_standard_input() {
    let world = world(&[&[Play::End(End::Exited(6))]]).await;
    let mut command = world.command(["session", "exec", SESSION, "-i", "--", "true"]);
    let mut program = command.stdin(Stdio::piped()).spawn().expect("the program");
    let held = program.stdin.take();
    assert_eq!(finish(program).await.code, 6);
    drop(held);
}

#[tokio::test]
async fn a_command_whose_output_nobody_reads_is_cancelled() {
    let flood: Vec<Play> = (0..64).map(|n| Play::Stdout(n * 65_536, vec![b'y'; 65_536])).collect();
    let world = world(&[&[&flood[..], &[Play::AwaitCancel]].concat()]).await;
    let mut program = world.command(EXEC).spawn().expect("the program");
    drop(program.stdout.take());
    assert_eq!(finish(program).await.code, 141);
    assert!(world.gateway.state().calls.contains(&"cancel"));
}

#[tokio::test]
async fn a_token_that_expires_meanwhile_is_exchanged_anew() {
    let world = world(&[
        &[stdout(0, "a"), Play::Refuse(ErrorCode::Unauthenticated)],
        &[stdout(1, "b"), Play::End(End::Exited(0))],
    ])
    .await;
    let ran = world.run(EXEC).await;
    assert_eq!((ran.code, ran.text().as_str()), (0, "ab"), "{ran:?}");
    assert_eq!(world.api().n_exchanges, 2);
}

#[tokio::test]
async fn output_is_passed_on_byte_for_byte() {
    let bytes: Vec<u8> = (0..=255).collect();
    let world = world(&[&[Play::Stdout(0, bytes.clone()), Play::End(End::Exited(0))]]).await;
    assert_eq!(world.run(EXEC).await.stdout, bytes);
}
