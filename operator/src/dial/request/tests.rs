use mooring_operator_api::duration::WholeSeconds;
use mooring_operator_api::executor_class::ClassLimits;
use mooring_operator_api::session::SessionSpec;
use mooring_operator_api::variable::{PlainVariable, Variable, VariableName};

use super::*;

fn session() -> Session {
    let mut session = Session::new("fix-it", SessionSpec::of("jane".into()));
    session.metadata.namespace = Some("team-a".to_owned());
    session.metadata.uid = Some("0f3a".to_owned());
    session
}

fn target() -> Target {
    Target {
        pod: "ses-1-3".to_owned(),
        pod_uid: "p".into(),
        epoch: 3,
        address: [192, 0, 2, 1].into(),
        revision: "0".repeat(32),
        may_be_new: true,
        generations: (1, 1),
    }
}

#[test]
fn an_executor_is_bound_to_exactly_this_environment_and_epoch() {
    let class =
        ExecutorClassSpec { shell: Shell::Bash, ..ExecutorClassSpec::of("example.test/environment:1") };
    let request = bind(&session(), &class, &target(), Values::default());
    let environment = request.environment.clone().expect("an environment");
    assert_eq!(environment.id, "team-a/fix-it/0f3a");
    assert_eq!((environment.kind(), environment.revision), (v1::EnvironmentKind::Kubernetes, "0".repeat(32)));
    assert_eq!((request.epoch, request.may_be_new, request.shell()), (3, true, v1::Shell::Bash));
    assert_eq!(
        (request.protocol, request.limits, request.local),
        (Some(PROTOCOL), Some(v1::Limits::default()), None)
    );
}

#[test]
fn limits_are_the_class_s() {
    let limits = ClassLimits {
        max_timeout: Some(WholeSeconds::from_minutes(5)),
        processes: Some(64),
        live_commands: None,
        background_commands: Some(2),
        output_bytes: Some(65_536),
    };
    let class =
        ExecutorClassSpec { limits: Some(limits), ..ExecutorClassSpec::of("example.test/environment:1") };
    let expected = v1::Limits {
        max_timeout_millis: 300_000,
        processes: 64,
        live_commands: 0,
        background_commands: 2,
        output_bytes: 65_536,
    };
    assert_eq!(super::limits(&class), expected);
}

#[test]
fn a_session_s_variable_replaces_its_class_s() {
    let mut class = ExecutorClassSpec::of("example.test/environment:1");
    let plain =
        |name: &str, value: &str| PlainVariable { name: VariableName(name.into()), value: value.into() };
    class.variables = vec![plain("B", "class"), plain("A", "class")];
    let mut session = session();
    session.spec.variables =
        vec![Variable { name: VariableName("B".into()), value: Some("session".into()), secret: None }];
    let request = bind(&session, &class, &target(), Values::default());
    let shown: Vec<_> = request
        .variables
        .iter()
        .map(|it| format!("{}={}", String::from_utf8_lossy(&it.name), String::from_utf8_lossy(&it.value)))
        .collect();
    assert_eq!(shown, ["A=class", "B=session"]);
}
