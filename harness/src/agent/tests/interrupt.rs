//! Interrupting, steering, suspending, deleting.

use super::stage::{Stage, calls, hang, say, shell, shown};
use crate::session::{Event, Limits, Mode, SessionPatch};

#[tokio::test]
async fn an_interrupt_ends_the_models_stream() {
    let stage = Stage::new([hang("I will"), say("again")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.event(session, |event| matches!(event, Event::MessageDelta { .. })).await;
    stage.store.interrupt(session).await.expect("interrupt");
    assert_eq!(stage.ended(session, run).await, "interrupted");
    let next = stage.post(session, "once more").await;
    assert_eq!(stage.ended(session, next).await, "answered");
    let request = shown(&stage.asked(2).await[1]);
    assert!(request.iter().any(|text| text.contains("the person interrupted the run")), "{request:?}");
}

#[tokio::test]
async fn an_interrupt_ends_the_running_command_and_answers_every_call() {
    let stage = Stage::new([
        calls(&[("a", "Shell", r#"{"command":"hang"}"#), ("b", "Shell", r#"{"command":"print x"}"#)]),
        say("again"),
    ])
    .await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.store.interrupt(session).await.expect("interrupt");
    stage.runs.interrupt(session);
    assert_eq!(stage.ended(session, run).await, "interrupted");
    assert_eq!(stage.fake.ran(), ["hang", "cancel 00000000000000000000000000000001"]);
    let told = stage.told(session).await;
    assert!(
        told[0].starts_with("a: Cancelled;") && told[1].starts_with("b: Not executed: the person"),
        "{told:?}"
    );
    let next = stage.post(session, "once more").await;
    assert_eq!(stage.ended(session, next).await, "answered");
}

#[tokio::test]
async fn the_owners_words_enter_before_the_next_turn() {
    let stage = Stage::new([shell("a", "hang"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.store.steer(session, "and stop after that").await.expect("steer");
    stage.fake.release();
    assert_eq!(stage.ended(session, run).await, "answered");
    let request = shown(&stage.asked(2).await[1]);
    assert_eq!(request.last().map(String::as_str), Some("user and stop after that"));
}

#[tokio::test]
async fn words_that_come_with_the_last_answer_are_not_lost() {
    let stage = Stage::new([hang(""), say("to the second")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.asked(1).await;
    stage.store.steer(session, "more").await.expect("steer");
    stage.store.interrupt(session).await.expect("interrupt");
    assert_eq!(stage.ended(session, run).await, "interrupted");
    let next = stage.post(session, "third").await;
    assert_eq!(stage.ended(session, next).await, "answered");
}

#[tokio::test]
async fn a_suspended_session_goes_on_where_it_was_once_it_is_awake() {
    let stage = Stage::new([shell("a", "hang"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    let patch = |suspended| SessionPatch { suspended: Some(suspended), ..Default::default() };
    stage.store.patch_session(session, patch(true)).await.expect("patched");
    stage.fake.release();
    stage.event(session, |event| matches!(event, Event::ToolResult { .. })).await;
    stage.store.patch_session(session, patch(false)).await.expect("patched");
    stage.runs.wake(session);
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["hang"]);
}

#[tokio::test]
async fn deleting_a_session_ends_its_command() {
    let stage = Stage::new([shell("a", "hang")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.store.delete_session(session).await.expect("deleted");
    stage.fake.until_ran("cancel 00000000000000000000000000000001").await;
}

#[tokio::test]
async fn deleting_a_session_ends_its_background_command_and_no_other() {
    let job = |id| calls(&[(id, "Shell", r#"{"command":"hang","background":true}"#)]);
    let stage = Stage::new([job("a"), say("kept"), job("b"), say("going")]).await;
    for _ in 0..2 {
        let session = stage.session(Mode::FullTrust, Limits::default()).await;
        let run = stage.post(session, "go").await;
        assert_eq!(stage.ended(session, run).await, "answered");
        if stage.fake.ran().len() == 2 {
            let departed = stage.store.delete_session(session).await.expect("deleted");
            stage.runs.end_left_behind(departed);
        }
    }
    stage.fake.until_ran("cancel 00000000000000000000000000000002").await;
    stage.runs.shutdown().await;
    assert_eq!(stage.fake.ran(), ["hang", "hang", "cancel 00000000000000000000000000000002"]);
}
