//! The loop is cut at each stage and goes on: nothing is done twice, nothing is told that is not known.

use super::stage::{Stage, calls, hang, say, shell, shown};
use crate::session::{Event, Item, Limits, Mode, OperationId, ToolCall};
use crate::store::OperationState;

#[tokio::test]
async fn a_turn_cut_in_the_middle_is_asked_again_and_its_half_is_not_kept() {
    let mut stage = Stage::new([hang("half"), say("whole")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.event(session, |event| matches!(event, Event::MessageDelta { .. })).await;
    stage.restart(false).await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert!(stage.kinds(session).await.contains(&"run.resumed".to_owned()));
    let items = stage.store.conversation(session).await.expect("items");
    let answers: Vec<_> = items.into_iter().filter(|it| matches!(it.item, Item::Assistant { .. })).collect();
    assert!(
        matches!(&answers[..], [one] if matches!(&one.item, Item::Assistant { text, .. } if text == "whole"))
    );
}

#[tokio::test]
async fn a_command_cut_while_it_runs_is_found_again_by_its_operation_in_the_same_executor() {
    let mut stage = Stage::new([shell("a", "hang"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.restart(true).await;
    stage.runs.resume_all().await.expect("resumed");
    stage.fake.release();
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["hang"]);
    assert!(stage.told(session).await[0].starts_with("a: Exit code 0"));
}

#[tokio::test]
async fn a_command_whose_executor_died_with_the_harness_is_told_as_lost_and_never_run_again() {
    let mut stage = Stage::new([shell("a", "hang"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.restart(false).await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!((stage.fake.ran(), stage.fake.boots()), (vec!["hang".to_owned()], 1));
    let told = stage.told(session).await;
    assert!(
        told[0].starts_with("a: executor_lost:") && told[1].contains("counts as unread again"),
        "{told:?}"
    );
    let operations = stage.store.operations(session, run).await.expect("operations");
    assert!(matches!(&operations[..], [one] if one.state == OperationState::Lost));
}

#[tokio::test]
async fn an_executor_killed_in_the_middle_of_a_command_is_replaced_and_the_command_is_not_repeated() {
    let stage = Stage::new([shell("a", "hang"), shell("b", "print x"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.fake.until_ran("hang").await;
    stage.fake.kill();
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!((stage.fake.ran(), stage.fake.boots()), (vec!["hang".to_owned(), "print x".to_owned()], 2));
    let told = stage.told(session).await;
    assert!(told[0].starts_with("a: executor_lost:"), "{told:?}");
    assert!(told[1].starts_with("note: The process that held this environment has ended"), "{told:?}");
    assert!(told[2].starts_with("b: Exit code 0"), "{told:?}");
}

/// Stores what a harness has stored that died right before it sent the operation of call `a`.
async fn died_before_sending(
    stage: &Stage,
    boot_id: &str,
) -> (crate::session::SessionId, crate::session::RunId) {
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let message =
        stage.store.post_message(session, &crate::session::Origin::Owner, "go").await.expect("message");
    let lease =
        stage.store.acquire_lease(session, "dead", std::time::Duration::from_mins(1)).await.expect("lease");
    let mut write = stage.store.write(&lease).await.expect("write");
    write.start_run(message.run).await.expect("start");
    write.take_words(message.run).await.expect("words");
    let call = ToolCall {
        id: "a".to_owned(),
        name: "Shell".to_owned(),
        arguments: r#"{"command":"print x"}"#.to_owned(),
    };
    write
        .append_item(message.run, &Item::Assistant { text: String::new(), calls: vec![call] })
        .await
        .expect("item");
    write.record_operation(OperationId::new(), message.run, "a", boot_id).await.expect("operation");
    write.commit().await.expect("commit");
    stage.store.release_lease(&lease).await.expect("released");
    (session, message.run)
}

#[tokio::test]
async fn an_operation_stored_and_not_sent_is_carried_out_once_by_the_executor_it_was_meant_for() {
    let stage = Stage::new([say("done")]).await;
    let bound = stage.resolver.bind_local(None).await.expect("bound");
    let id = crate::session::SessionId::new();
    let Ok(crate::environment::Environment::Local(local)) = stage.resolver.resolve(id, Some(&bound)).await
    else {
        panic!("not local");
    };
    let executor = local.executor().await.expect("executor");
    let (session, run) = died_before_sending(&stage, executor.boot_id()).await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["print x"]);
}

#[tokio::test]
async fn an_operation_meant_for_another_executor_is_told_as_lost() {
    let stage = Stage::new([say("done")]).await;
    let (session, run) = died_before_sending(&stage, "another").await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert!(stage.fake.ran().is_empty());
    assert!(stage.told(session).await[0].starts_with("a: executor_lost:"));
}

#[tokio::test]
async fn a_result_that_is_stored_is_never_fetched_again() {
    let mut stage = Stage::new([shell("a", "print x"), hang(""), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.asked(2).await;
    stage.restart(false).await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["print x"]);
    let request = shown(&stage.asked(3).await[2]);
    assert!(request.iter().any(|text| text.starts_with("tool Exit code 0")), "{request:?}");
}

#[tokio::test]
async fn what_was_read_before_a_restart_must_be_read_again_before_it_is_written() {
    let write = ("b", "Write", r#"{"path":"x","content":"new"}"#);
    let mut stage = Stage::new([
        calls(&[("a", "Read", r#"{"path":"x"}"#)]),
        hang(""),
        calls(&[write]),
        calls(&[("c", "Read", r#"{"path":"x"}"#), ("d", write.1, write.2)]),
        say("done"),
    ])
    .await;
    stage.fake.put("x", "old");
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    stage.asked(2).await;
    stage.restart(false).await;
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    let told = stage.told(session).await;
    assert!(told[1].starts_with("note: The process that held"), "{told:?}");
    assert!(told[2].starts_with("b: Write was refused (unread):"), "{told:?}");
    assert_eq!(stage.fake.file("x").as_deref(), Some("new"));
    assert_eq!(stage.fake.ran(), ["write x"]);
}

#[tokio::test]
async fn waking_a_session_again_and_again_works_on_it_once() {
    let stage = Stage::new([shell("a", "print x"), say("done")]).await;
    let session = stage.session(Mode::FullTrust, Limits::default()).await;
    let run = stage.post(session, "go").await;
    for _ in 0..50 {
        stage.runs.wake(session);
    }
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!((stage.fake.ran().len(), stage.asked(2).await.len()), (1, 2));
}
