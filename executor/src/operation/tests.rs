use std::sync::atomic::{AtomicUsize, Ordering};

use mooring_proto::ErrorCodeExt as _;
use mooring_proto::v1::{StartResponse, WriteInputResponse};
use tokio::sync::oneshot;

use super::*;

fn operations(finished: usize, finished_bytes: usize, running: usize) -> Arc<Operations> {
    Operations::with_bounds(TaskTracker::new(), Bounds { finished, finished_bytes, running })
}

fn id(text: &str) -> OperationId {
    OperationId::parse(text).expect("an id")
}

fn digest(text: &str) -> ArgumentsDigest {
    ArgumentsDigest::builder("Test").bytes(text.as_bytes()).finish()
}

fn started(command_id: &str) -> StartResponse {
    StartResponse { command_id: command_id.to_owned(), ..StartResponse::default() }
}

fn code(status: &Status) -> ErrorCode {
    detail_of(status).expect("a detail").code()
}

/// Counts how often it is done.
async fn do_once(
    operations: &Arc<Operations>,
    name: &str,
    count: &Arc<AtomicUsize>,
) -> Result<String, Status> {
    let (count, command_id) = (Arc::clone(count), name.to_owned());
    let work = async move {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(started(&command_id))
    };
    operations.run(id(name), digest(name), work).await.map(|done| done.command_id)
}

#[test]
fn an_id_has_1_to_128_of_its_characters() {
    for good in ["a", "A-Z_09", &"x".repeat(128)] {
        assert!(OperationId::parse(good).is_some(), "{good}");
    }
    for bad in ["", "a b", "ä", "a/b", "a\0", &"x".repeat(129)] {
        assert!(OperationId::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn pieces_are_framed_so_that_their_bounds_count() {
    let split =
        |a: &str, b: &str| ArgumentsDigest::builder("Test").bytes(a.as_bytes()).bytes(b.as_bytes()).finish();
    assert_ne!(split("ab", "c"), split("a", "bc"));
    assert_ne!(
        ArgumentsDigest::of("Signal", &WriteInputResponse {}),
        ArgumentsDigest::of("Cancel", &WriteInputResponse {})
    );
}

#[tokio::test]
async fn a_repeat_gets_the_first_result_and_does_nothing() {
    let (operations, count) = (operations(10, 1 << 20, 4), Arc::default());
    for _ in 0..3 {
        assert_eq!(do_once(&operations, "a", &count).await.expect("done"), "a");
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn other_arguments_under_one_id_conflict_while_it_runs_and_after() {
    let operations = operations(10, 1 << 20, 4);
    let (open, opened) = oneshot::channel::<()>();
    let first = operations.run(id("a"), digest("one"), async move {
        let _ = opened.await;
        Ok(started("one"))
    });
    let mut first = Box::pin(first);
    assert!(futures::poll!(&mut first).is_pending());
    let other = || operations.run(id("a"), digest("two"), async { Ok(started("two")) });
    assert_eq!(code(&other().await.expect_err("running")), ErrorCode::OperationConflict);
    open.send(()).expect("waits");
    assert_eq!(first.await.expect("done").command_id, "one");
    assert_eq!(code(&other().await.expect_err("finished")), ErrorCode::OperationConflict);
}

#[tokio::test]
async fn a_concurrent_repeat_waits_even_when_the_first_caller_is_gone() {
    let operations = operations(10, 1 << 20, 4);
    let (open, opened) = oneshot::channel::<()>();
    let first = operations.run(id("a"), digest("a"), async move {
        let _ = opened.await;
        Ok(started("first"))
    });
    let mut first = Box::pin(first);
    assert!(futures::poll!(&mut first).is_pending());
    let second = operations.run(id("a"), digest("a"), async { Ok(started("second")) });
    let mut second = Box::pin(second);
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    open.send(()).expect("the work goes on");
    assert_eq!(second.await.expect("done").command_id, "first");
}

#[tokio::test]
async fn a_refusal_is_kept_unless_it_says_try_again() {
    let operations = operations(10, 1 << 20, 4);
    let refuse = |code: ErrorCode| {
        operations.run::<StartResponse, _>(id(&code.name()), digest("x"), async move {
            Err(refusal(code, "no", [("fact", "1".to_owned())]))
        })
    };
    let again =
        |code: ErrorCode| operations.run(id(&code.name()), digest("x"), async { Ok(started("again")) });
    for final_code in [ErrorCode::NotFound, ErrorCode::Internal, ErrorCode::NoSpace] {
        let first = refuse(final_code).await.expect_err("refused");
        let repeat = again(final_code).await.expect_err("still refused");
        assert_eq!((first.code(), first.details()), (repeat.code(), repeat.details()));
    }
    for passing in [ErrorCode::Busy, ErrorCode::Draining, ErrorCode::RunnerUnavailable] {
        assert_eq!(code(&refuse(passing).await.expect_err("refused")), passing);
        assert_eq!(again(passing).await.expect("done").command_id, "again");
    }
}

#[tokio::test]
async fn a_panic_is_internal_and_is_not_tried_again() {
    let (operations, count) = (operations(10, 1 << 20, 4), Arc::default());
    let work = async { panic!("a secret") };
    let failed = operations.run::<StartResponse, _>(id("a"), digest("a"), work).await;
    let failed = failed.expect_err("panicked");
    assert_eq!(code(&failed), ErrorCode::Internal);
    assert!(!format!("{failed:?}").contains("secret"));
    let again = do_once(&operations, "a", &count).await.expect_err("kept");
    assert_eq!((code(&again), count.load(Ordering::Relaxed)), (ErrorCode::Internal, 0));
}

#[tokio::test]
async fn an_evicted_id_is_forgotten_and_never_done_again() {
    let (operations, count) = (operations(2, 1 << 20, 4), Arc::default());
    for name in ["a", "b", "c"] {
        do_once(&operations, name, &count).await.expect("done");
    }
    let forgotten = do_once(&operations, "a", &count).await.expect_err("evicted");
    assert_eq!(code(&forgotten), ErrorCode::OperationForgotten);
    assert_eq!(do_once(&operations, "b", &count).await.expect("kept"), "b");
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn results_are_bounded_by_bytes_too() {
    let operations = operations(100, 10_000, 4);
    for number in 0..10 {
        let name = format!("big-{number}");
        let work = async { Ok(started(&"x".repeat(4000))) };
        operations.run(id(&name), digest(&name), work).await.expect("done");
    }
    let table = operations.table();
    assert_eq!(table.finished.len(), 2);
    assert!(table.finished_bytes <= 10_000);
    assert_eq!(table.entries.len(), 2);
}

#[tokio::test]
async fn more_than_may_run_are_busy() {
    let (operations, count) = (operations(10, 1 << 20, 1), Arc::default());
    let mut first =
        Box::pin(operations.run(id("a"), digest("a"), std::future::pending::<Result<StartResponse, _>>()));
    assert!(futures::poll!(&mut first).is_pending());
    let busy = do_once(&operations, "b", &count).await.expect_err("busy");
    assert_eq!(code(&busy), ErrorCode::Busy);
}
