//! Questions to the person: bound to one exact call, durable, used once.

use std::time::Duration;

use super::stage::{Stage, calls, say, shell};
use crate::session::{Answer, Approval, ApprovalState, Limits, Mode, RunId, RunState, SessionId};

/// For a question, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The question that the run waits with. A run that was just answered may still look as if it waited, without any.
async fn asked_in(stage: &Stage, session: SessionId, run: RunId) -> Approval {
    let pending = async || stage.store.approvals(Some(session), Some(ApprovalState::Pending), 10).await;
    let asked = async {
        loop {
            stage.until(session, run, |run| run.state == RunState::Waiting).await;
            let found = pending().await.expect("approvals");
            if !found.is_empty() {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, asked).await.expect("a question");
    assert_eq!(found.len(), 1);
    found.into_iter().next().expect("one")
}

#[tokio::test]
async fn nothing_runs_before_the_person_allows_exactly_that_call() {
    let stage = Stage::new([shell("a", "print x"), say("done")]).await;
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    let approval = asked_in(&stage, session, run).await;
    assert!(stage.fake.ran().is_empty());
    assert_eq!((approval.tool.as_str(), approval.arguments.as_str()), ("Shell", r#"{"command":"print x"}"#));
    assert_eq!(approval.question["subject"], "print x");
    stage.store.decide(approval.id, Answer::Allow, "person").await.expect("decided");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["print x"]);
    let used = stage.store.approval(approval.id).await.expect("approval");
    assert_eq!(used.state, ApprovalState::Consumed);
}

#[tokio::test]
async fn a_call_that_the_person_denies_is_not_executed_and_the_same_one_is_asked_about_again() {
    let stage = Stage::new([shell("a", "print x"), shell("b", "print x"), say("done")]).await;
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    let first = asked_in(&stage, session, run).await;
    stage.store.decide(first.id, Answer::Deny, "person").await.expect("decided");
    stage.asked(2).await;
    let second = asked_in(&stage, session, run).await;
    assert_ne!(first.id, second.id);
    assert_ne!(first.digest, second.digest);
    stage.store.decide(second.id, Answer::Deny, "person").await.expect("decided");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert!(stage.fake.ran().is_empty());
    assert!(stage.told(session).await[0].starts_with("a: The person said no to this Shell call."));
}

#[tokio::test]
async fn a_question_that_nobody_answers_expires_and_a_late_answer_is_refused() {
    let mut stage = Stage::new([shell("a", "print x"), say("done")]).await;
    stage.renew(|settings| settings.approval_expiry = Duration::from_millis(200));
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    assert_eq!(stage.ended(session, run).await, "answered");
    let approval = stage.store.approvals(Some(session), None, 10).await.expect("approvals").remove(0);
    assert_eq!(approval.state, ApprovalState::Expired);
    assert!(stage.store.decide(approval.id, Answer::Allow, "person").await.is_err());
    assert!(stage.fake.ran().is_empty());
    assert!(stage.told(session).await[0].starts_with("a: Nobody answered"));
}

#[tokio::test]
async fn a_question_survives_a_restart_and_is_answered_afterwards() {
    let mut stage = Stage::new([shell("a", "print x"), say("done")]).await;
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    let approval = asked_in(&stage, session, run).await;
    stage.restart(false).await;
    assert_eq!(stage.runs.resume_all().await.expect("resumed"), 1);
    let again = asked_in(&stage, session, run).await;
    assert_eq!(again.id, approval.id);
    stage.store.decide(approval.id, Answer::Allow, "person").await.expect("decided");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["print x"]);
    assert_eq!(stage.asked(2).await.len(), 2, "the turn that asked was not asked again");
}

#[tokio::test]
async fn an_answer_that_came_while_nothing_ran_is_used_once_at_the_start() {
    let mut stage = Stage::new([shell("a", "print x"), say("done")]).await;
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    let approval = asked_in(&stage, session, run).await;
    stage.restart(false).await;
    stage.store.decide(approval.id, Answer::Allow, "person").await.expect("decided");
    stage.runs.resume_all().await.expect("resumed");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!(stage.fake.ran(), ["print x"]);
}

#[tokio::test]
async fn a_mode_lowered_while_the_person_is_asked_wins_over_the_answer() {
    let stage = Stage::new([shell("a", "print x"), say("done")]).await;
    let session = stage.session(Mode::AskFirst, Limits::default()).await;
    let run = stage.post(session, "go").await;
    let approval = asked_in(&stage, session, run).await;
    let patch = crate::session::SessionPatch { mode: Some(Mode::ReadOnly), ..Default::default() };
    stage.store.patch_session(session, patch).await.expect("patched");
    stage.store.decide(approval.id, Answer::Allow, "person").await.expect("decided");
    assert_eq!(stage.ended(session, run).await, "answered");
    assert!(stage.fake.ran().is_empty());
}

#[tokio::test]
async fn reads_need_no_question_and_a_read_only_session_is_told_no() {
    let stage = Stage::new([
        calls(&[("a", "Read", r#"{"path":"x"}"#), ("b", "Shell", r#"{"command":"print x"}"#)]),
        say("done"),
    ])
    .await;
    stage.fake.put("x", "text");
    let session = stage.session(Mode::ReadOnly, Limits::default()).await;
    let run = stage.post(session, "go").await;
    assert_eq!(stage.ended(session, run).await, "answered");
    assert_eq!((stage.fake.reads(), stage.fake.ran().len()), (1, 0));
    assert!(
        stage.told(session).await[1]
            .starts_with("b: Shell was denied and not executed: this session is read-only")
    );
}
