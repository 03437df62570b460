//! Output: exact, bounded, and never waiting for a reader.

use std::time::{Duration, Instant};

use mooring_proto::v1::{AttachRequest, ErrorCode, StartRequest, StatusRequest, command_end::End};

use crate::fixture::{Executor, code_of, text};

const KEPT: u64 = 8 << 20;

#[tokio::test]
async fn bytes_arrive_exactly_whatever_they_are() {
    let executor = Executor::start().await;
    let script = "head -c 300000 /dev/urandom > bytes; printf '\\000\\377\\303\\050\\033]52;c;eA==\\007' >> bytes; cat bytes; cat bytes >&2";
    let outcome = executor.run(text(script)).await;
    let written = std::fs::read(executor.path("bytes")).expect("bytes");
    assert_eq!(written.len(), 300_016);
    assert!(outcome.stdout == written && outcome.stderr == written);
}

#[tokio::test]
async fn a_flood_stays_in_bounds_and_the_timer_fires() {
    let executor = Executor::start().await;
    let asked = Instant::now();
    let request = StartRequest { timeout_millis: 2000, ..text("yes & yes >&2") };
    let started = executor.start_command(request).await.expect("Start");
    let live = executor.attach(&started.command_id, [0, 0]).await;
    assert!(matches!(live.cause(), End::TimedOut(_)), "{:?}", live.end);
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());

    let late = executor.attach(&started.command_id, [0, 0]).await;
    let end = late.end.expect("an end");
    for (bytes, dropped, kept) in [
        (end.stdout_bytes, end.stdout_dropped_bytes, late.stdout),
        (end.stderr_bytes, end.stderr_dropped_bytes, late.stderr),
    ] {
        assert!(bytes > KEPT, "{bytes}");
        assert_eq!((dropped, kept.len() as u64), (bytes - KEPT, KEPT));
        assert!(kept.chunks(2).all(|line| line == b"y\n" || line == b"\ny"));
    }
    assert_eq!(late.gaps.len(), 2);
    assert!(late.gaps.iter().all(|gap| gap.from == KEPT / 2));
    assert!(executor.peak_kib() < 96 * 1024, "{} KiB", executor.peak_kib());
}

#[tokio::test]
async fn a_reader_that_never_reads_delays_nobody() {
    let executor = Executor::start().await;
    let started =
        executor.start_command(text("head -c 67108864 /dev/zero; echo end >&2")).await.expect("Start");
    let request = AttachRequest {
        context: executor.look(),
        command_id: started.command_id.clone(),
        ..AttachRequest::default()
    };
    let _dead = executor.commands().attach(request).await.expect("Attach").into_inner();
    let outcome = executor.attach(&started.command_id, [0, 0]).await;
    assert_eq!(outcome.cause(), End::Exited(0));
    assert_eq!(outcome.stderr, b"end\n");
    assert_eq!(outcome.end.expect("an end").stdout_bytes, 64 << 20);
    assert_eq!(executor.run(text("echo still here")).await.stdout_text(), "still here\n");
}

#[tokio::test]
async fn a_second_reader_goes_on_where_the_first_one_stopped() {
    let executor = Executor::start().await;
    let request = text("echo one; until [ -e go ]; do sleep 0.01; done; echo two");
    let command_id = executor.start_command(request).await.expect("Start").command_id;
    let mut first = AttachRequest {
        context: executor.look(),
        command_id: command_id.clone(),
        no_follow: true,
        ..AttachRequest::default()
    };
    let mut seen = 0;
    let deadline = Instant::now() + crate::fixture::DEADLINE;
    while seen < 4 {
        assert!(Instant::now() < deadline);
        first.stdout_offset = seen;
        let outcome = executor.read(first.clone()).await;
        assert_eq!(outcome.end, None);
        seen += outcome.stdout.len() as u64;
    }
    std::fs::write(executor.path("go"), "").expect("a file");
    let rest = executor.attach(&command_id, [seen, 0]).await;
    assert_eq!((rest.stdout_text(), rest.cause()), ("two\n", End::Exited(0)));
    // An offset past the end is no error: nothing more comes but the end.
    let past = executor.attach(&command_id, [1000, 1000]).await;
    assert_eq!((past.stdout.len(), past.cause()), (0, End::Exited(0)));
}

#[tokio::test]
async fn a_command_nobody_started_is_not_found() {
    let executor = Executor::start().await;
    for command_id in ["", "0123456789abcdef0123456789abcdef", "../x"] {
        let request = StatusRequest { context: executor.look(), command_id: command_id.to_owned() };
        let refused = executor.commands().status(request).await.expect_err("no such command");
        assert_eq!(code_of(&refused), ErrorCode::NotFound);
    }
}
