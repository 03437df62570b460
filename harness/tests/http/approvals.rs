//! Questions and answers over HTTP.

use std::time::Duration;

use mooring_harness::session::{NewApproval, Origin, SessionId};
use mooring_harness::store::{Lease, Store};

use crate::wire::Server;

/// A question in a session, put there as the loop would; the lease keeps the real loop away.
async fn asked(server: &Server) -> (Store, Lease, String) {
    let session: SessionId = server.session(r#"{"profile":"no-fs"}"#).await.parse().expect("id");
    let store = server.store().await;
    let lease = store.acquire_lease(session, "test", Duration::from_mins(10)).await.expect("lease");
    let run = store.post_message(session, &Origin::Owner, "push it").await.expect("post").run;
    let mut write = store.write(&lease).await.expect("write");
    write.start_run(run).await.expect("start");
    let new = NewApproval {
        run,
        call: "call-1".to_owned(),
        tool: "Shell".to_owned(),
        arguments: r#"{"command":"git push"}"#.to_owned(),
        digest: "0".repeat(64),
        question: serde_json::json!({ "reason": "it leaves this machine" }),
        expires_at: write.now() + Duration::from_mins(10),
    };
    let approval = write.create_approval(&new).await.expect("ask");
    write.set_waiting(run, true).await.expect("wait");
    write.commit().await.expect("commit");
    (store, lease, approval.to_string())
}

#[tokio::test]
async fn a_person_answers_a_question_once() {
    let server = Server::start().await;
    let (store, lease, approval) = asked(&server).await;
    let pending = server.ask("GET", "/v1/approvals?state=pending", "").await;
    assert_eq!(pending.body["approvals"][0]["id"], approval.as_str());
    assert_eq!(pending.body["approvals"][0]["arguments"], r#"{"command":"git push"}"#);
    let path = format!("/v1/approvals/{approval}/decision");
    for (body, status, code) in [
        ("{}", 400, "invalid_field"),
        (r#"{"answer":"yes"}"#, 400, "invalid_field"),
        (r#"{"answer":"ALLOW"}"#, 400, "invalid_field"),
        (r#"{"answer":"allow","keepRule":"x"}"#, 400, "invalid_field"),
        (r#"{"answer":"allow","rule":{}}"#, 400, "unknown_field"),
        (r#"{"answer":"allow","keepRule":true}"#, 409, "no_offer"),
    ] {
        let reply = server.ask("POST", &path, body).await;
        assert_eq!((reply.status, reply.code()), (status, code), "{body}");
    }
    let still = server.ask("GET", &format!("/v1/approvals/{approval}"), "").await;
    assert_eq!(still.body["state"], "pending");
    let decided = server.ask("POST", &path, r#"{"answer":"allow","keepRule":false}"#).await;
    assert_eq!((decided.status, &decided.body["state"]), (200, &"allowed".into()));
    assert_eq!(decided.body["decidedBy"], "owner");
    let replay = server.ask("POST", &path, r#"{"answer":"allow"}"#).await;
    assert_eq!((replay.status, replay.code()), (409, "approval_not_pending"));
    let mut write = store.write(&lease).await.expect("write");
    write.consume_approval(approval.parse().expect("id"), &"0".repeat(64)).await.expect("consume");
    write.commit().await.expect("commit");
    let used = server.ask("GET", &format!("/v1/approvals/{approval}"), "").await;
    assert_eq!(used.body["state"], "consumed");
    server.harness.stop().await;
}

#[tokio::test]
async fn a_process_of_the_same_user_cannot_answer_a_question() {
    let server = Server::start().await;
    let (_store, _lease, approval) = asked(&server).await;
    let path = format!("/v1/approvals/{approval}/decision");
    let reply = server.send("POST", &path, &[("Host", "localhost")], r#"{"answer":"allow"}"#).await;
    assert_eq!((reply.status, reply.code()), (401, "unauthenticated"));
    let still = server.ask("GET", &format!("/v1/approvals/{approval}"), "").await;
    assert_eq!(still.body["state"], "pending");
    server.harness.stop().await;
}
