use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::session::{
    Answer, Approval, ApprovalState, Counts, Creator, EnvironmentRef, Event, Item, Limits, Mode, NewApproval,
    NewSession, OperationId, Origin, Outcome, Profile, RunState, SessionId, SessionPatch, SessionState,
    ToolCall, Usage,
};

const LEASE: Duration = Duration::from_secs(30);

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
struct Time(Arc<AtomicI64>);

impl Time {
    fn clock(&self) -> Clock {
        let millis = Arc::clone(&self.0);
        Arc::new(move || Timestamp::from_millisecond(millis.load(Ordering::SeqCst)).expect("in range"))
    }

    fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_millis()).expect("in range"), Ordering::SeqCst);
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    time: Time,
    store: Store,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let time = Time::default();
        let store = open(folder.path(), &time).await;
        Self { folder, time, store }
    }

    async fn session(&self) -> SessionId {
        let id = SessionId::new();
        let new = NewSession {
            id,
            profile: Profile::NoFs,
            mode: Mode::Auto,
            model: None,
            limits: Limits::default(),
            environment: EnvironmentRef::none(id),
            creator: Creator::Person,
        };
        self.store.create_session(&new).await.expect("create").id
    }

    async fn lease(&self, session: SessionId) -> Lease {
        self.store.acquire_lease(session, "test", LEASE).await.expect("lease")
    }

    async fn events(&self, session: SessionId) -> Vec<String> {
        self.store
            .events(session, 0, 100)
            .await
            .expect("events")
            .into_iter()
            .map(|event| event.kind)
            .collect()
    }
}

async fn open(folder: &Path, time: &Time) -> Store {
    Store::open(&folder.join("mooring.db"), time.clock()).await.expect("open")
}

fn question(run: crate::session::RunId, expires_at: Timestamp) -> NewApproval {
    NewApproval {
        run,
        call: "call-1".to_owned(),
        tool: "Shell".to_owned(),
        arguments: "{\"command\":\"git push\"}".to_owned(),
        digest: "d".repeat(64),
        question: json!({ "reason": "it leaves this machine" }),
        expires_at,
    }
}

/// A session with a run at work and a question in it.
async fn asked(fixture: &Fixture) -> (SessionId, Lease, Approval) {
    let session = fixture.session().await;
    let run = fixture.store.post_message(session, &Origin::Owner, "push it").await.expect("post").run;
    let lease = fixture.lease(session).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.start_run(run).await.expect("start");
    let expires_at = write.now() + Duration::from_mins(1);
    let approval = write.create_approval(&question(run, expires_at)).await.expect("ask");
    write.set_waiting(run, true).await.expect("wait");
    write.commit().await.expect("commit");
    (session, lease, fixture.store.approval(approval).await.expect("approval"))
}

#[tokio::test]
async fn an_empty_file_becomes_the_whole_schema_and_opens_again() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let before = fixture.store.session(session).await.expect("session");
    fixture.store.close().await;
    let again = open(fixture.folder.path(), &fixture.time).await;
    assert_eq!(again.session(session).await.expect("session"), before);
    assert_eq!(again.sessions(10).await.expect("list"), vec![before]);
}

#[tokio::test]
async fn a_holder_that_lost_its_lease_stores_nothing() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let late = fixture.lease(session).await;
    let held = fixture.store.acquire_lease(session, "other", LEASE).await;
    assert!(matches!(held, Err(StoreError::LeaseHeld { .. })));
    fixture.time.pass(LEASE);
    fixture.store.renew_lease(&late, LEASE).await.expect("nobody took it");
    fixture.time.pass(LEASE);
    let fresh = fixture.store.acquire_lease(session, "other", LEASE).await.expect("expired");
    assert_eq!((late.epoch(), fresh.epoch()), (1, 2));
    assert!(matches!(fixture.store.write(&late).await, Err(StoreError::LeaseLost)));
    assert!(matches!(fixture.store.renew_lease(&late, LEASE).await, Err(StoreError::LeaseLost)));
    assert!(matches!(fixture.store.release_lease(&late).await, Err(StoreError::LeaseLost)));
    let mut write = fixture.store.write(&fresh).await.expect("write");
    write.append_event(&Event::SessionCreated {}).await.expect("append");
    write.commit().await.expect("commit");
}

#[tokio::test]
async fn a_dropped_write_leaves_nothing_behind() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let lease = fixture.lease(session).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.append_event(&Event::SessionCreated {}).await.expect("append");
    drop(write);
    assert_eq!(fixture.events(session).await, ["session.created"]);
    assert_eq!(fixture.store.last_event(session).await.expect("last"), 1);
}

#[tokio::test]
async fn leases_of_a_dead_process_are_freed_and_their_epochs_stay() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let dead = fixture.lease(session).await;
    fixture.store.free_leases().await.expect("free");
    let fresh = fixture.lease(session).await;
    assert!(fresh.epoch() > dead.epoch());
    assert!(matches!(fixture.store.write(&dead).await, Err(StoreError::LeaseLost)));
}

#[tokio::test]
async fn a_conversation_reads_back_exactly() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let run =
        fixture.store.post_message(session, &Origin::Owner, "fix it\n\u{202e}").await.expect("post").run;
    let lease = fixture.lease(session).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.start_run(run).await.expect("start");
    let words = write.take_words(run).await.expect("words");
    assert_eq!(words.len(), 1);
    let call =
        ToolCall { id: "c".to_owned(), name: "Read".to_owned(), arguments: "{\"path\": \"a\"}".to_owned() };
    let items = [
        Item::Assistant { text: String::new(), calls: vec![call] },
        Item::ToolResult { call: "c".to_owned(), text: "\u{0}\u{fffd}".to_owned(), is_error: true },
        Item::Note { text: "the executor was lost".to_owned() },
    ];
    for item in &items {
        write.append_item(run, item).await.expect("append");
    }
    write.commit().await.expect("commit");
    let words = Item::Words { message: 1, origin: Origin::Owner, text: "fix it\n\u{202e}".to_owned() };
    let stored = fixture.store.conversation(session).await.expect("conversation");
    let read: Vec<Item> = stored.into_iter().map(|stored| stored.item).collect();
    assert_eq!(read, [vec![words], items.to_vec()].concat());
}

#[tokio::test]
async fn runs_go_one_after_the_other_and_words_reach_the_model_once() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let first = fixture.store.post_message(session, &Origin::Owner, "one").await.expect("post").run;
    let second = fixture.store.post_message(session, &Origin::Owner, "two").await.expect("post").run;
    let steered = fixture.store.steer(session, "and this").await.expect("steer");
    assert_eq!((steered.run, steered.steers), (first, true));
    assert_eq!(fixture.store.next_run(session).await.expect("next").expect("run").id, first);
    let lease = fixture.lease(session).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.start_run(first).await.expect("start");
    let texts =
        |words: Vec<crate::session::Message>| words.into_iter().map(|word| word.text).collect::<Vec<_>>();
    assert_eq!(texts(write.take_words(first).await.expect("words")), ["one", "and this"]);
    assert!(write.take_words(first).await.expect("words").is_empty());
    write
        .set_counts(first, Counts { turns: 1, tool_calls: 2, tokens: 3, failures: 4 })
        .await
        .expect("counts");
    let usage = Usage { input_tokens: 5, output_tokens: 6, requests: 1 };
    write.add_usage(first, usage).await.expect("usage");
    write.end_run(first, &RunState::Finished(Outcome::Answered)).await.expect("end");
    assert!(matches!(write.end_run(first, &RunState::Interrupted).await, Err(StoreError::RunEnded)));
    write.commit().await.expect("commit");
    let run = fixture.store.run(session, first).await.expect("run");
    assert_eq!(run.state, RunState::Finished(Outcome::Answered));
    assert_eq!(run.counts, Counts { turns: 1, tool_calls: 2, tokens: 3, failures: 4 });
    assert_eq!(fixture.store.session(session).await.expect("session").usage, usage);
    assert_eq!(fixture.store.next_run(session).await.expect("next").expect("run").id, second);
    assert_eq!(fixture.store.sessions_with_open_runs().await.expect("open"), [session]);
}

#[tokio::test]
async fn an_interrupt_ends_what_waits_and_asks_what_works() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    assert!(matches!(fixture.store.interrupt(session).await, Err(StoreError::NoOpenRun)));
    let first = fixture.store.post_message(session, &Origin::Owner, "one").await.expect("post").run;
    let second = fixture.store.post_message(session, &Origin::Owner, "two").await.expect("post").run;
    let lease = fixture.lease(session).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.start_run(first).await.expect("start");
    write.commit().await.expect("commit");
    assert_eq!(fixture.store.interrupt(session).await.expect("interrupt"), [first, second]);
    let run = fixture.store.run(session, first).await.expect("run");
    assert_eq!((run.state, run.interrupt_requested), (RunState::Running, true));
    assert_eq!(fixture.store.run(session, second).await.expect("run").state, RunState::Interrupted);
}

#[tokio::test]
async fn a_suspended_session_takes_no_words() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let asleep = SessionPatch { suspended: Some(true), ..SessionPatch::default() };
    assert!(fixture.store.patch_session(session, asleep).await.expect("patch").suspended);
    let posted = fixture.store.post_message(session, &Origin::Owner, "hello").await;
    assert!(matches!(posted, Err(StoreError::Suspended)));
}

#[tokio::test]
async fn a_session_takes_only_so_many_runs() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    for _ in 0..32 {
        fixture.store.post_message(session, &Origin::Owner, "again").await.expect("post");
    }
    let one_more = fixture.store.post_message(session, &Origin::Owner, "again").await;
    assert!(matches!(one_more, Err(StoreError::TooManyRuns { limit: 32 })));
}

#[tokio::test]
async fn a_permission_is_given_once_and_used_once_for_its_own_call() {
    let fixture = Fixture::new().await;
    let (session, lease, approval) = asked(&fixture).await;
    assert_eq!(fixture.store.session(session).await.expect("session").state, SessionState::Waiting);
    let mut write = fixture.store.write(&lease).await.expect("write");
    let early = write.consume_approval(approval.id, &approval.digest).await;
    assert!(matches!(early, Err(StoreError::NotAllowed { state: ApprovalState::Pending })));
    drop(write);
    let decided = fixture.store.decide(approval.id, Answer::Allow, "owner").await.expect("decide");
    assert_eq!(decided.state, ApprovalState::Allowed);
    let replay = fixture.store.decide(approval.id, Answer::Deny, "owner").await;
    assert!(matches!(replay, Err(StoreError::NotPending { state: ApprovalState::Allowed })));
    let mut write = fixture.store.write(&lease).await.expect("write");
    let other = write.consume_approval(approval.id, &"e".repeat(64)).await;
    assert!(matches!(other, Err(StoreError::OtherCall)));
    write.consume_approval(approval.id, &approval.digest).await.expect("consume");
    let twice = write.consume_approval(approval.id, &approval.digest).await;
    assert!(matches!(twice, Err(StoreError::NotAllowed { state: ApprovalState::Consumed })));
}

#[tokio::test]
async fn a_permission_means_nothing_in_another_session() {
    let fixture = Fixture::new().await;
    let (_, _, approval) = asked(&fixture).await;
    fixture.store.decide(approval.id, Answer::Allow, "owner").await.expect("decide");
    let other = fixture.session().await;
    let lease = fixture.lease(other).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    let used = write.consume_approval(approval.id, &approval.digest).await;
    assert!(matches!(used, Err(StoreError::NoSuchApproval)));
}

#[tokio::test]
async fn an_answer_that_comes_too_late_changes_nothing() {
    let fixture = Fixture::new().await;
    let (session, _, approval) = asked(&fixture).await;
    fixture.time.pass(Duration::from_mins(1));
    let late = fixture.store.decide(approval.id, Answer::Allow, "owner").await;
    assert!(matches!(late, Err(StoreError::NotPending { state: ApprovalState::Expired })));
    assert_eq!(fixture.store.expire_due_approvals().await.expect("expire"), [session]);
    assert!(fixture.store.expire_due_approvals().await.expect("expire").is_empty());
    assert_eq!(fixture.events(session).await.last().map(String::as_str), Some("approval.resolved"));
    let pending =
        fixture.store.approvals(Some(session), Some(ApprovalState::Pending), 10).await.expect("list");
    assert_eq!(pending, []);
}

#[tokio::test]
async fn the_end_of_a_run_ends_its_questions() {
    let fixture = Fixture::new().await;
    let (_, lease, approval) = asked(&fixture).await;
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.end_run(approval.run, &RunState::Interrupted).await.expect("end");
    write.commit().await.expect("commit");
    let late = fixture.store.decide(approval.id, Answer::Allow, "owner").await;
    assert!(matches!(late, Err(StoreError::NotPending { state: ApprovalState::Expired })));
}

#[tokio::test]
async fn an_operation_is_stored_once_and_ends_once() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let run = fixture.store.post_message(session, &Origin::Owner, "go").await.expect("post").run;
    let lease = fixture.lease(session).await;
    let operation = OperationId::new();
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.record_operation(operation, run, "c", "boot").await.expect("record");
    let twice = write.record_operation(operation, run, "c", "boot").await;
    assert!(matches!(twice, Err(StoreError::OperationExists)));
    write.commit().await.expect("commit");
    let open = fixture.store.unfinished_operations(session).await.expect("open");
    assert_eq!(open.iter().map(|found| found.id).collect::<Vec<_>>(), [operation]);
    let mut write = fixture.store.write(&lease).await.expect("write");
    write.finish_operation(operation, OperationState::Finished).await.expect("finish");
    let twice = write.finish_operation(operation, OperationState::Lost).await;
    assert!(matches!(twice, Err(StoreError::NoSuchOperation)));
    write.commit().await.expect("commit");
    assert_eq!(fixture.store.unfinished_operations(session).await.expect("open"), []);
}

#[tokio::test]
async fn a_deleted_session_leaves_no_text_and_no_lease() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let lease = fixture.lease(session).await;
    fixture.store.post_message(session, &Origin::Owner, "a-very-secret-sentence").await.expect("post");
    fixture.store.delete_session(session).await.expect("delete");
    assert!(matches!(fixture.store.session(session).await, Err(StoreError::NoSuchSession)));
    assert!(matches!(fixture.store.write(&lease).await, Err(StoreError::LeaseLost)));
    assert!(matches!(fixture.store.delete_session(session).await, Err(StoreError::NoSuchSession)));
    fixture.store.close().await;
    for entry in std::fs::read_dir(fixture.folder.path()).expect("list") {
        let path = entry.expect("entry").path();
        let bytes = std::fs::read(&path).expect("read");
        let found = bytes.windows(22).any(|window| window == b"a-very-secret-sentence");
        assert!(!found, "the words are still in {}", path.display());
    }
}

#[tokio::test]
async fn a_snapshot_without_a_reference_has_no_environment() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    sqlx::query(
        "UPDATE sessions SET environment_kind = NULL, environment_id = NULL, environment_revision = NULL WHERE id = $1",
    )
    .bind(session.to_string())
    .execute(&fixture.store.writer)
    .await
    .expect("update");
    assert_eq!(fixture.store.session(session).await.expect("session").environment, None);
}

#[tokio::test]
async fn the_same_folder_keeps_its_revision_and_another_gets_its_own() {
    let fixture = Fixture::new().await;
    let first = fixture.store.bind_local("/w", 1, u64::MAX).await.expect("bind");
    assert_eq!(fixture.store.bind_local("/w", 1, u64::MAX).await.expect("bind"), first);
    let moved = fixture.store.bind_local("/w", 1, 2).await.expect("bind");
    assert_ne!(moved.revision, first.revision);
    let binding = fixture.store.local_binding("/w").await.expect("binding").expect("bound");
    assert_eq!((binding.revision, binding.filesystem, binding.inode), (moved.revision, 1, 2));
    assert_eq!(fixture.store.local_binding("/other").await.expect("binding"), None);
}

#[tokio::test]
async fn a_taint_stays() {
    let fixture = Fixture::new().await;
    let session = fixture.session().await;
    let lease = fixture.lease(session).await;
    for _ in 0..2 {
        let mut write = fixture.store.write(&lease).await.expect("write");
        write.add_taint("workspace").await.expect("taint");
        write.commit().await.expect("commit");
    }
    let taints = fixture.store.session(session).await.expect("session").taints;
    assert_eq!(taints.into_iter().collect::<Vec<_>>(), ["workspace"]);
}

#[tokio::test]
async fn a_watcher_is_woken_by_a_commit_about_its_session() {
    let fixture = Fixture::new().await;
    let (session, other) = (fixture.session().await, fixture.session().await);
    let mut changes = fixture.store.watch(session);
    fixture.store.post_message(other, &Origin::Owner, "elsewhere").await.expect("post");
    assert!(tokio::time::timeout(Duration::ZERO, changes.changed()).await.is_err());
    fixture.store.post_message(session, &Origin::Owner, "here").await.expect("post");
    tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.expect("woken");
}
