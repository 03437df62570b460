//! Every limit is a typed end.

use std::time::Duration;

use super::stage::{Play, Stage, hang, say, shell};
use crate::session::{Limits, Mode, Outcome};

async fn ended_with(script: Vec<Play>, limits: Limits) -> (String, Vec<String>) {
    let stage = Stage::new(script).await;
    let session = stage.session(Mode::FullTrust, limits).await;
    let run = stage.post(session, "go").await;
    (stage.ended(session, run).await, stage.fake.ran())
}

#[tokio::test]
async fn turns_are_limited() {
    let limits = Limits { turns: 2, ..Limits::default() };
    let script = vec![shell("a", "print 1"), shell("b", "print 2"), shell("c", "print 3")];
    let (end, ran) = ended_with(script, limits).await;
    assert_eq!((end.as_str(), ran.len()), ("limitReached:turns", 2));
    assert!(Outcome::from_text(&end).is_some());
}

#[tokio::test]
async fn tool_calls_are_limited() {
    let limits = Limits { tool_calls: 1, ..Limits::default() };
    let (end, ran) = ended_with(vec![shell("a", "print 1"), shell("b", "print 2")], limits).await;
    assert_eq!((end.as_str(), ran), ("limitReached:toolCalls", vec!["print 1".to_owned()]));
}

#[tokio::test]
async fn tokens_are_limited() {
    let limits = Limits { tokens: 20, ..Limits::default() };
    let script = vec![shell("a", "print 1"), shell("b", "print 2"), shell("c", "print 3")];
    let (end, ran) = ended_with(script, limits).await;
    assert_eq!((end.as_str(), ran.len()), ("limitReached:tokens", 1));
}

#[tokio::test]
async fn failures_in_a_row_are_limited_and_a_success_starts_the_count_anew() {
    let limits = Limits { failures: 2, ..Limits::default() };
    let broken = || Play::Stream("data: {}\n\n".to_owned());
    let (end, _) = ended_with(vec![broken(), broken(), say("too late")], limits).await;
    assert_eq!(end, "limitReached:failures");
    let script = vec![broken(), shell("a", "print 1"), broken(), say("done")];
    assert_eq!(ended_with(script, limits).await.0, "answered");
}

#[tokio::test]
async fn a_provider_that_refuses_ends_the_run_at_once() {
    assert_eq!(ended_with(Vec::new(), Limits::default()).await.0, "failed model_refused");
}

#[tokio::test]
async fn wall_time_ends_a_turn_that_hangs() {
    let limits = Limits { wall_time: Duration::from_secs(1), ..Limits::default() };
    assert_eq!(ended_with(vec![hang("I")], limits).await.0, "limitReached:wallTime");
}

#[tokio::test]
async fn wall_time_counts_while_the_person_is_asked_and_ends_the_question() {
    let stage = Stage::new([shell("a", "print 1")]).await;
    let limits = Limits { wall_time: Duration::from_hours(1), ..Limits::default() };
    let session = stage.session(Mode::AskFirst, limits).await;
    let run = stage.post(session, "go").await;
    stage.until(session, run, |run| run.state == crate::session::RunState::Waiting).await;
    stage.advance(Duration::from_secs(3601));
    // Any change makes the loop look at the time again.
    stage.store.steer(session, "hello?").await.expect("steer");
    assert_eq!(stage.ended(session, run).await, "limitReached:wallTime");
    assert!(stage.fake.ran().is_empty());
}
