use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// A pod with this status, as the kubelet writes it, and what is read from it.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a case is written where it is checked")]
fn check(status: Value, expected: Expect) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "ses-1f6685236f58fb8260b3-3",
            "uid": "u",
            "annotations": {"mooring.dev/epoch": "3"},
            "creationTimestamp": "2026-11-30T12:00:00Z",
            "deletionTimestamp": status.get("deleted"),
            "deletionGracePeriodSeconds": status.get("grace"),
        },
        "spec": {"containers": [], "nodeName": "node-1"},
        "status": status,
    }))
    .expect("a pod");
    let facts = read(&pod, |_| false);
    assert_eq!((facts.epoch, facts.name.as_str()), (3, "ses-1f6685236f58fb8260b3-3"));
    let told = |cause: &Cause| format!("{}: {}", cause.reason.as_str(), cause.message);
    let mut text = match &facts.state {
        PodState::Waiting(cause) => format!("waiting, {}", told(cause)),
        PodState::Running => "running".to_owned(),
        PodState::Ended { cause, at } => {
            format!("ended{}, {}", at.map_or(String::new(), |at| format!(" {at}")), told(cause))
        }
    };
    if let Some(cause) = &facts.leaving {
        let _ = write!(text, "; leaving, {}", told(cause));
    }
    if facts.is_over {
        text += "; over";
    }
    if let Some(address) = facts.address {
        let _ = write!(text, "; at {address}");
    }
    if let Some(RunnerRestart { count, cause }) = &facts.runner_restart {
        let _ = write!(text, "; runner {count}, {}", told(cause));
    }
    expected.assert_eq(&text);
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [container("executor", &json!({"waiting": {"reason": reason, "message": message}}))]})
}

fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn ended(reason: &str, code: i32, message: &str) -> Value {
    json!({"terminated": {"reason": reason, "exitCode": code, "message": message, "finishedAt": "2026-11-30T12:01:00Z"}})
}

#[test]
fn a_new_pod_waits() {
    check(json!({}), expect!["waiting, PodPending: the pod is to be scheduled"]);
    let placed = |ready: &str| {
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
        json!({"conditions": [condition("PodScheduled", "True"), condition("PodReadyToStartContainers", ready)]})
    };
    check(placed("False"), expect!["waiting, PodPending: the node provides the pod's volume and network"]);
    check(
        placed("True"),
        expect!["waiting, ImagePulling: the pod has its volume and network, and waits for its image"],
    );
    check(waiting("PodInitializing", ""), expect!["waiting, PodPending: the pod is to be scheduled"]);
}

#[test]
fn what_keeps_a_pod_from_running_is_named() {
    let unplaced = |reason: &str| json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": reason, "message": "0/1 nodes are available"}]});
    check(unplaced("Unschedulable"), expect!["waiting, Unschedulable: 0/1 nodes are available"]);
    check(unplaced("SchedulerError"), expect!["waiting, PodPending: 0/1 nodes are available"]);
    for reason in ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"] {
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {}, "status": waiting(reason, "")})).expect("a pod");
        let expected = PodState::Waiting(Cause::new(SessionReason::ImageUnavailable, reason));
        assert_eq!(read(&pod, |_| false).state, expected);
    }
    check(
        waiting("CreateContainerConfigError", "secret not found"),
        expect!["waiting, PodRejected: CreateContainerConfigError, secret not found"],
    );
}

#[test]
fn the_image_of_the_first_container_counts_too() {
    let state = json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}});
    check(
        json!({"phase": "Pending", "initContainerStatuses": [container("runner", &state)]}),
        expect!["waiting, ImageUnavailable: ErrImagePull, not found"],
    );
}

#[test]
fn an_executor_runs_when_its_container_does() {
    let state = json!({"running": {"startedAt": "2026-11-30T12:00:01Z"}});
    check(
        json!({"phase": "Running", "podIP": "198.18.0.7", "containerStatuses": [container("executor", &state)]}),
        expect!["running; at 198.18.0.7"],
    );
}

#[test]
fn an_end_has_its_true_reason() {
    let of = |phase: &str, state: &Value| json!({"phase": phase, "containerStatuses": [container("executor", state)]});
    check(
        of("Running", &ended("Error", 1, "cannot listen")),
        expect!["ended 2026-11-30T12:01:00Z, ExecutorLost: Error, exit code 1, cannot listen"],
    );
    check(
        of("Failed", &ended("OOMKilled", 137, "")),
        expect!["ended 2026-11-30T12:01:00Z, ExecutorOutOfMemory: OOMKilled, exit code 137; over"],
    );
    check(
        of("Succeeded", &ended("Completed", 0, "")),
        expect!["ended 2026-11-30T12:01:00Z, ExecutorLost: Completed, exit code 0; over"],
    );
    check(
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
        expect!["ended, Evicted: The node was low on resource: memory.; over"],
    );
    check(
        json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no device"}),
        expect!["ended, PodRejected: UnexpectedAdmissionError, no device; over"],
    );
}

#[test]
fn who_asked_for_a_deletion_is_told_apart() {
    check(
        json!({"phase": "Running", "deleted": "2026-11-30T12:02:00Z"}),
        expect![
            "waiting, PodPending: the pod is to be scheduled; leaving, PodDeleted: the pod is being deleted"
        ],
    );
    let disruption = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}]);
    check(
        json!({"phase": "Running", "deleted": "2026-11-30T12:02:00Z", "conditions": disruption}),
        expect![
            "waiting, PodPending: the pod is to be scheduled; leaving, Evicted: EvictionByEvictionAPI, Eviction API: evicting"
        ],
    );
}

/// The pod is to be over at 12:01:20, twenty seconds after the delete; its executor ended at 12:01:00.
#[test]
fn an_executor_that_ended_by_a_deletion_was_deleted() {
    let pod = |grace: u32| {
        let executor = container("executor", &ended("Completed", 0, ""));
        json!({"phase": "Running", "deleted": "2026-11-30T12:01:20Z", "grace": grace, "containerStatuses": [executor]})
    };
    check(
        pod(20),
        expect![
            "ended 2026-11-30T12:01:00Z, PodDeleted: the pod is being deleted; leaving, PodDeleted: the pod is being deleted"
        ],
    );
    check(
        pod(19),
        expect![
            "ended 2026-11-30T12:01:00Z, ExecutorLost: Completed, exit code 0; leaving, PodDeleted: the pod is being deleted"
        ],
    );
}

#[test]
fn a_restarted_runner_is_seen_with_its_reason() {
    let runner = |last: Value| {
        let mut runner = container("runner", &json!({"running": {}}));
        runner["restartCount"] = json!(2);
        runner["lastState"] = last;
        json!({"phase": "Running", "initContainerStatuses": [runner]})
    };
    check(
        runner(ended("OOMKilled", 137, "")),
        expect![
            "waiting, PodPending: the pod is to be scheduled; runner 2, RunnerOutOfMemory: restart 2, OOMKilled, exit code 137"
        ],
    );
    check(
        runner(ended("Error", 1, "")),
        expect![
            "waiting, PodPending: the pod is to be scheduled; runner 2, RunnerExited: restart 2, Error, exit code 1"
        ],
    );
}

#[test]
fn a_node_that_is_silent_is_named() {
    let pod: Pod =
        serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [], "nodeName": "node-1"}}))
            .expect("a pod");
    assert_eq!(read(&pod, |node| node == "node-1").silent_node.as_deref(), Some("node-1"));
    assert_eq!(read(&pod, |_| false).silent_node, None);
}
