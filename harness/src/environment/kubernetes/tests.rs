use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::runtime::watcher::Event;
use mooring_operator_api::session::{Executor, SessionSpec};
use mooring_operator_api::{ObjectName, Uid, UserName};

use super::*;

const REVISION: &str = "0123456789abcdef0123456789abcdef";

fn condition(kind: &str, is_true: bool, reason: &str) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: "a message".to_owned(),
        last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        observed_generation: None,
    }
}

/// Ana's Session `first`, Ready.
fn session(change: impl FnOnce(&mut SessionStatus)) -> Session {
    let mut session = Session::new("first", SessionSpec::of(UserName::from("ana")));
    session.metadata.namespace = Some("agents".to_owned());
    session.metadata.uid = Some("u-1".to_owned());
    let mut status = SessionStatus {
        environment: Some(api::EnvironmentRef {
            kind: api::EnvironmentKind::Kubernetes,
            id: "agents/first/u-1".to_owned(),
            revision: REVISION.to_owned(),
        }),
        epoch: Some(3),
        executor: Some(Executor {
            pod: ObjectName::from("mooring-u-1-3"),
            pod_uid: Uid::from("p-1"),
            class: None,
            // Reserved for documentation (RFC 5737): no test reaches it.
            address: "192.0.2.1:7443".to_owned(),
            boot_id: String::new(),
            landlock: 6,
            recovering_since: None,
        }),
        conditions: vec![condition(READY, true, "Bound")],
        ..SessionStatus::default()
    };
    change(&mut status);
    session.status = Some(status);
    session
}

fn resolver(sessions: impl IntoIterator<Item = Session>) -> KubernetesResolver {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for session in sessions {
        writer.apply_watcher_event(&Event::InitApply(session));
    }
    writer.apply_watcher_event(&Event::InitDone);
    KubernetesResolver::of(store, Links::new("/does/not/exist".into()))
}

fn reference() -> EnvironmentRef {
    known(session(|_| {}).status.expect("a status").environment.as_ref().expect("an environment"))
}

async fn code(session: Session, reference: &EnvironmentRef) -> String {
    match resolver([session]).resolve(reference).await {
        Ok(_) => "found".to_owned(),
        Err(ResolveError::NotReady { source: Some(source) }) => {
            let told = story(&source);
            format!("not ready: {told}")
        }
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn a_session_is_its_owner_s_alone() {
    let resolver = resolver([session(|_| {})]);
    let find = |text: &str, user: &str| {
        let name = SessionName::parse(text).expect("a name");
        resolver.find(&name, &Caller { user: UserName::from(user) })
    };
    assert!(find("agents/first", "ana").is_ok());
    for (name, user) in [("agents/first", "bo"), ("agents/second", "ana"), ("other/first", "ana")] {
        assert!(matches!(find(name, user), Err(ResolveError::Unknown)), "{name} {user}");
    }
}

#[tokio::test]
async fn a_reference_is_compared_exactly() {
    let with = |change: fn(&mut EnvironmentRef)| {
        let mut reference = reference();
        change(&mut reference);
        reference
    };
    for (reference, expected) in [
        (with(|it| it.kind = EnvironmentKind::Local), "no_resolver"),
        (with(|it| it.kind = EnvironmentKind::None), "no_resolver"),
        (with(|it| it.id = "agents/first".to_owned()), "environment_unknown"),
        (with(|it| it.id = "agents/first/u-2".to_owned()), "environment_unknown"),
        (with(|it| it.id = "agents/second/u-1".to_owned()), "environment_unknown"),
        (with(|it| it.id = "agents/first/u-1/".to_owned()), "environment_unknown"),
        (with(|it| it.revision = REVISION.replace('0', "1")), "environment_mismatch"),
        (with(|it| it.revision = REVISION.to_uppercase()), "environment_mismatch"),
    ] {
        assert_eq!(code(session(|_| {}), &reference).await, expected, "{reference:?}");
    }
}

#[tokio::test]
async fn an_environment_without_an_executor_is_not_ready_for_the_operator_s_reason() {
    let pending = |status: &mut SessionStatus| {
        status.executor = None;
        status.conditions = vec![condition(READY, false, "PodPending")];
    };
    assert_eq!(code(session(pending), &reference()).await, "not ready: PodPending: a message");
    let new = |status: &mut SessionStatus| *status = SessionStatus::default();
    let told = code(session(new), &reference()).await;
    assert_eq!(told, "not ready: Pending: the operator has not looked at the Session yet");
    let lost = |status: &mut SessionStatus| {
        status.executor = None;
        status.conditions =
            vec![condition(READY, false, "Retired"), condition(RETIRED, true, "WorkspaceLost")];
    };
    assert_eq!(code(session(lost), &reference()).await, "empty_workspace");
}

#[tokio::test]
async fn an_executor_that_cannot_be_reached_is_told_as_the_operator_tells_it() {
    let told = code(session(|_| {}), &reference()).await;
    assert!(
        told.starts_with("not ready: the harness has no certificate for executors yet: tls.crt"),
        "{told}"
    );
    let silent = |status: &mut SessionStatus| {
        status.conditions = vec![condition(READY, false, "NodeUnreachable")];
    };
    assert_eq!(code(session(silent), &reference()).await, "not ready: NodeUnreachable: a message");
}

#[test]
fn a_name_has_a_namespace() {
    let long = format!("n/{}", "a".repeat(254));
    for bad in ["", "/", "a", "a/", "/a", "A/b", "a/b/c", "a/ b", "a/b\n", &long] {
        assert_eq!(SessionName::parse(bad), None, "{bad}");
    }
    let name = SessionName::parse("agents/first.1").expect("a name");
    assert_eq!((name.namespace.as_str(), name.name.as_str()), ("agents", "first.1"));
}
