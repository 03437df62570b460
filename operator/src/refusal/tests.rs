use kube::core::response::{StatusCause, StatusDetails};

use super::*;
use crate::session::Cause;

fn status(code: u16, message: &str) -> Status {
    Status { code, message: message.to_owned(), ..Status::failure(message, "") }
}

fn told(step: Refusable, status: &Status) -> String {
    cause(step, status)
        .map_or_else(|| "nothing".to_owned(), |Cause { reason, .. }| reason.as_str().to_owned())
}

#[test]
fn an_answer_of_the_api_server_becomes_a_reason() {
    let quota = r#"pods "ses-1-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"#;
    let security =
        r#"pods "ses-1-1" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true"#;
    for (step, code, message, expected) in [
        (Refusable::Pod, 403, quota, "QuotaExceeded"),
        (Refusable::Claim, 403, quota, "QuotaExceeded"),
        (Refusable::Pod, 403, security, "PodRejected"),
        (Refusable::Pod, 422, "Pod is invalid", "PodRejected"),
        (Refusable::Claim, 422, "PersistentVolumeClaim is invalid", "ClaimRejected"),
        (Refusable::Claim, 403, "forbidden: maximum storage usage is 1Gi", "ClaimRejected"),
        (Refusable::Pod, 500, "etcdserver: request timed out", "nothing"),
        (Refusable::Pod, 404, "namespaces \"x\" not found", "nothing"),
    ] {
        assert_eq!(told(step, &status(code, message)), expected, "{message}");
    }
}

#[test]
fn a_namespace_that_ends_is_no_reason_for_a_person() {
    let causes = vec![StatusCause {
        reason: "NamespaceTerminating".to_owned(),
        message: String::new(),
        field: String::new(),
    }];
    let details = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes,
        retry_after_seconds: 0,
    };
    let status = Status { details: Some(details), ..status(403, "it is being terminated") };
    assert_eq!(told(Refusable::Pod, &status), "nothing");
}

#[test]
fn a_long_answer_is_cut() {
    let cause = cause(Refusable::Pod, &status(422, &"é".repeat(5000))).expect("a reason");
    assert_eq!(cause.message.chars().count(), LONGEST_SAID);
}

fn now() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().expect("a time")
}

fn refuse(pauses: &Pauses) -> Refused {
    let cause = Cause::new(SessionReason::QuotaExceeded, "full");
    pauses.refuse(&"u".into(), (Refusable::Pod, cause), (1, 1), now())
}

#[test]
fn pauses_double_up_to_a_minute() {
    let pauses = Pauses::default();
    let spans: Vec<String> =
        (0..10).map(|_| format!("{:#}", refuse(&pauses).until.duration_since(now()))).collect();
    assert_eq!(spans, ["250ms", "500ms", "1s", "2s", "4s", "8s", "16s", "32s", "1m", "1m"]);
}

#[test]
fn failures_within_one_pause_are_one() {
    let pauses = Pauses::default();
    let fail = |after: i64| pauses.fail(&"u".into(), now() + SignedDuration::from_millis(after)).as_millis();
    assert_eq!([fail(0), fail(0), fail(100), fail(249)], [250, 250, 150, 1]);
    assert_eq!([fail(250), fail(700), fail(750)], [500, 50, 1000]);
    pauses.progress(&"u".into());
    assert_eq!(fail(800), 250, "something else was done meanwhile");
}

#[test]
fn a_refusal_is_remembered_until_its_time_or_until_the_question_is_another_one() {
    let pauses = Pauses::default();
    let refused = refuse(&pauses);
    let seen = |generations, after: i64| {
        pauses.refused(&"u".into(), generations, now() + SignedDuration::from_millis(after))
    };
    assert_eq!(seen((1, 1), 100), Some(refused));
    assert_eq!(seen((1, 1), 250), None, "its time has come");
    assert_eq!(seen((2, 1), 100), None, "another spec");
    assert_eq!(seen((1, 2), 100), None, "another class");
    assert_eq!(pauses.refused(&"v".into(), (1, 1), now()), None, "another session");
    pauses.clear(&"u".into());
    assert_eq!(seen((1, 1), 100), None, "done");
}
