use expect_test::expect_file;
use mooring_operator_api::executor_class::{LabelValue, NodeSelector, Resources, TolerationOperator};
use mooring_operator_api::session::SessionSpec;

use super::*;

fn session(name: &str) -> Session {
    let mut session = Session::new(name, SessionSpec::of("jane".into()));
    session.metadata.namespace = Some("team-a".to_owned());
    session.metadata.uid = Some("0f3a1c1e-52f5-4d0e-9d3f-6f3a4f0b2c11".to_owned());
    session
}

fn class(change: impl FnOnce(&mut ExecutorClassSpec)) -> ExecutorClass {
    let mut spec = ExecutorClassSpec::of("example.test/environment:1");
    change(&mut spec);
    ExecutorClass::new("default", spec)
}

fn pod(class: &ExecutorClass) -> PodSpec {
    desired_pod(&session("work"), class, 3).spec.expect("a spec")
}

#[test]
fn the_whole_pod_is_as_agreed() {
    let pod = desired_pod(&session("work"), &class(|_| {}), 3);
    let text = serde_json::to_string_pretty(&pod).expect("JSON");
    expect_file!["snapshots/pod.json"].assert_eq(&format!("{text}\n"));
}

/// Pod Security Standards, level `restricted`, every control that a pod can fail.
#[test]
fn a_pod_is_restricted_whatever_its_class_says() {
    let spec = pod(&class(|spec| {
        spec.runtime_class_name = Some("gvisor".into());
        spec.node_selector =
            Some(NodeSelector([("pool".to_owned(), LabelValue("agents".to_owned()))].into()));
        spec.tolerations = vec![executor_class::Toleration {
            key: None,
            operator: TolerationOperator::Exists,
            value: None,
            effect: None,
            toleration_seconds: None,
        }];
    }));
    assert_eq!(
        [spec.host_network, spec.host_pid, spec.host_ipc, spec.share_process_namespace],
        [None, None, None, Some(false)]
    );
    assert_eq!((spec.automount_service_account_token, spec.enable_service_links), (Some(false), Some(false)));
    assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
    let whole = spec.security_context.expect("a security context");
    assert_eq!(
        (whole.run_as_non_root, whole.run_as_user, whole.fs_group),
        (Some(true), Some(65_532), Some(65_532))
    );
    assert_eq!(whole.seccomp_profile, Some(runtime_default()));
    for volume in spec.volumes.into_iter().flatten() {
        let is_allowed =
            volume.persistent_volume_claim.is_some() || volume.empty_dir.is_some() || volume.secret.is_some();
        assert!(is_allowed && volume.host_path.is_none() && volume.projected.is_none(), "{}", volume.name);
    }
    for container in spec.init_containers.into_iter().flatten().chain(spec.containers) {
        let context = container.security_context.expect("a security context");
        assert_eq!(context.allow_privilege_escalation, Some(false));
        assert_eq!((context.privileged, context.read_only_root_filesystem), (Some(false), Some(true)));
        assert_eq!(context.run_as_non_root, Some(true));
        let capabilities = context.capabilities.expect("capabilities");
        assert_eq!((capabilities.add, capabilities.drop), (None, Some(words(&["ALL"]))));
        assert_eq!(context.seccomp_profile, Some(runtime_default()));
        assert_eq!((container.env, container.env_from, container.lifecycle), (None, None, None));
    }
}

#[test]
fn no_container_is_best_effort_and_memory_always_has_a_limit() {
    let resources = |said: Option<Resources>| {
        let spec = pod(&class(|spec| spec.resources = said));
        let runner = spec.init_containers.into_iter().flatten().next().expect("a runner");
        let text = serde_json::to_value(runner.resources.expect("resources")).expect("JSON");
        text.to_string()
    };
    let amounts = |memory: &str| Amounts { memory: Some(Quantity(memory.to_owned())), ..Amounts::default() };
    let cases = [
        (None, r#"{"limits":{"memory":"2Gi"},"requests":{"cpu":"100m","memory":"256Mi"}}"#),
        (
            Some(Resources { requests: Some(amounts("1Gi")), limits: None }),
            r#"{"limits":{"memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}}"#,
        ),
        (
            Some(Resources { requests: None, limits: Some(amounts("64Mi")) }),
            r#"{"limits":{"memory":"64Mi"},"requests":{"cpu":"100m"}}"#,
        ),
    ];
    for (said, expected) in cases {
        assert_eq!(resources(said), expected);
    }
}

#[test]
fn a_name_of_any_length_makes_names_and_labels_that_fit() {
    for length in [1, 63, 64, 253] {
        let pod = desired_pod(&session(&"n".repeat(length)), &class(|_| {}), i64::MAX);
        assert!(pod.name_any().len() <= 63, "{length}");
        for (key, value) in pod.labels() {
            assert!(value.len() <= 63, "{key} of {length}");
        }
    }
}

#[test]
fn a_pod_is_owned_by_its_session_and_by_nobody_else() {
    let pod = desired_pod(&session("work"), &class(|_| {}), 1);
    let owners = pod.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!((owners[0].kind.as_str(), owners[0].controller), ("Session", Some(true)));
    assert_eq!(owners[0].uid, session("work").metadata.uid.unwrap_or_default());
}
