//! What a pod's status says about the executor in it.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus};
use kube::ResourceExt as _;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::{Uid, label};

use crate::names;
use crate::session::pod::{EXECUTOR, RUNNER};

/// One pod of a Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodFacts {
    /// Its name.
    pub(crate) name: String,
    /// Its UID.
    pub(crate) uid: Uid,
    /// The epoch that its name ends with; 0 for a name that is none of ours.
    pub(crate) epoch: i64,
    /// The label of a class that a network policy selects it by; `None` when the labels are no executor's.
    pub(crate) class_label: Option<String>,
    /// A watch shows when it changes. Otherwise its labels are not what they were, and it is to be read again by its name.
    pub(crate) is_watched: bool,
    /// What its class was when it was made: [`crate::class::digest`].
    pub(crate) class_digest: Option<String>,
    /// When it was made.
    pub(crate) created: Timestamp,
    /// Where it is reached, as soon as it has an address.
    pub(crate) address: Option<IpAddr>,
    /// How far it is.
    pub(crate) state: PodState,
    /// Set once somebody has asked for its deletion, with why.
    pub(crate) leaving: Option<Cause>,
    /// No process of it runs any more: the API server says so for good.
    pub(crate) is_over: bool,
    /// The node it is bound to, when that node does not answer.
    pub(crate) silent_node: Option<String>,
    /// Restarts of the container with the commands: how many, and why the last one.
    pub(crate) runner_restart: Option<RunnerRestart>,
}

impl PodFacts {
    /// Whether the executor in it is lost, and why.
    pub(crate) fn loss(&self) -> Option<&Cause> {
        match &self.state {
            PodState::Ended { cause, .. } => Some(cause),
            PodState::Waiting(_) | PodState::Running => self.leaving.as_ref(),
        }
    }
}

/// A reason, and the facts for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// One of the table.
    pub(crate) reason: SessionReason,
    /// The facts.
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn new(reason: SessionReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// How far a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// The executor does not run yet, for this reason.
    Waiting(Cause),
    /// The executor runs.
    Running,
    /// The executor has ended.
    Ended {
        /// Why.
        cause: Cause,
        /// When, as far as the node says.
        at: Option<Timestamp>,
    },
}

impl PodState {
    /// An executor that ended after its pod's deletion had begun, ended by that: its exit code says nothing more.
    fn explained(self, leaving: Option<&Cause>, from: Option<Timestamp>) -> Self {
        match (self, leaving) {
            (Self::Ended { at, .. }, Some(leaving)) if at.is_some() && at >= from => {
                Self::Ended { cause: leaving.clone(), at }
            }
            (state, _) => state,
        }
    }
}

/// Why the container with the commands was started anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunnerRestart {
    /// How many times.
    pub(crate) count: i32,
    /// The last reason.
    pub(crate) cause: Cause,
}

/// Reads a pod. `node_is_silent` says of a node that it does not answer.
pub(crate) fn read(pod: &Pod, node_is_silent: impl Fn(&str) -> bool) -> PodFacts {
    let none = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&none);
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let leaving = pod.metadata.deletion_timestamp.as_ref().map(|_| leaving(status));
    PodFacts {
        name: pod.name_any(),
        uid: Uid::from(pod.uid().unwrap_or_default()),
        epoch: names::of_pod(&pod.name_any()).map_or(0, |(_, epoch)| epoch),
        class_label: selecting_label(pod),
        is_watched: is_executor(pod),
        class_digest: pod.annotations().get(label::CLASS_DIGEST).cloned(),
        created: pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        address: status.pod_ip.as_deref().and_then(|text| text.parse().ok()),
        state: state(status).explained(leaving.as_ref(), deleted_from(pod)),
        leaving,
        is_over: is_over(status),
        silent_node: node.filter(|node| node_is_silent(node)),
        runner_restart: runner_restart(status),
    }
}

/// When the node began to end a pod that is deleted: the API server tells when it is to be over.
fn deleted_from(pod: &Pod) -> Option<Timestamp> {
    let over = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    over.checked_sub(grace).ok()
}

/// By the label that the watch selects by, too. The answer to a write of ours shows a pod without it once more.
fn is_executor(pod: &Pod) -> bool {
    pod.labels().get(label::APP_NAME).is_some_and(|name| name == label::EXECUTOR)
}

fn selecting_label(pod: &Pod) -> Option<String> {
    pod.labels().get(label::CLASS).filter(|_| is_executor(pod)).cloned()
}

/// The kubelet reports a terminal phase only once no container runs; the collector of orphaned pods reports it when the
/// node object is gone.
fn is_over(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"))
}

fn state(status: &PodStatus) -> PodState {
    let executor = container(status.container_statuses.as_ref(), EXECUTOR);
    let terminated = executor.and_then(|it| it.state.as_ref()?.terminated.as_ref());
    if terminated.is_some() || is_over(status) {
        let at = terminated.and_then(|it| it.finished_at.as_ref()).map(|time| time.0);
        return PodState::Ended { cause: ending(status, terminated), at };
    }
    if executor.is_some_and(|it| it.state.as_ref().is_some_and(|state| state.running.is_some())) {
        PodState::Running
    } else {
        PodState::Waiting(waiting(status, executor))
    }
}

fn ending(status: &PodStatus, terminated: Option<&ContainerStateTerminated>) -> Cause {
    if let Some(cause) = disruption(status) {
        return cause;
    }
    if status.reason.as_deref() == Some("Evicted") {
        return Cause::new(SessionReason::Evicted, words(&[status.message.as_deref()]));
    }
    let Some(terminated) = terminated else {
        let facts = words(&[status.reason.as_deref(), status.message.as_deref()]);
        // The kubelet refuses a pod that the scheduler sent: it has never run.
        return Cause::new(SessionReason::PodRejected, facts);
    };
    let exit = format!("exit code {}", terminated.exit_code);
    let facts = words(&[terminated.reason.as_deref(), Some(&exit), terminated.message.as_deref()]);
    match terminated.reason.as_deref() {
        Some("OOMKilled") => Cause::new(SessionReason::ExecutorOutOfMemory, facts),
        _ => Cause::new(SessionReason::ExecutorLost, facts),
    }
}

fn leaving(status: &PodStatus) -> Cause {
    disruption(status).unwrap_or_else(|| Cause::new(SessionReason::PodDeleted, "the pod is being deleted"))
}

/// Why the cluster ends a pod by itself (KEP-3329). A person's own delete sets no such condition.
fn disruption(status: &PodStatus) -> Option<Cause> {
    let target = condition(status, "DisruptionTarget").filter(|it| it.status == "True")?;
    Some(Cause::new(SessionReason::Evicted, words(&[target.reason.as_deref(), target.message.as_deref()])))
}

fn waiting(status: &PodStatus, executor: Option<&ContainerStatus>) -> Cause {
    if let Some(unplaced) = condition(status, "PodScheduled").filter(|it| it.status == "False") {
        let reason = match unplaced.reason.as_deref() {
            Some("Unschedulable") => SessionReason::Unschedulable,
            _ => SessionReason::PodPending,
        };
        return Cause::new(reason, words(&[unplaced.message.as_deref()]));
    }
    let runner = container(status.init_container_statuses.as_ref(), RUNNER);
    [runner, executor].into_iter().flatten().find_map(hindrance).unwrap_or_else(|| stage(status))
}

/// How far a pod is that nothing hinders. KEP-3085 has the second condition: of what comes after it, only a pull takes long.
fn stage(status: &PodStatus) -> Cause {
    let is_true = |type_| condition(status, type_).is_some_and(|it| it.status == "True");
    if !is_true("PodScheduled") {
        Cause::new(SessionReason::PodPending, "the pod is to be scheduled")
    } else if is_true("PodReadyToStartContainers") {
        Cause::new(SessionReason::ImagePulling, "the pod has its volume and network, and waits for its image")
    } else {
        Cause::new(SessionReason::PodPending, "the node provides the pod's volume and network")
    }
}

/// What keeps a container from running. The reasons are the kubelet's (`pkg/kubelet/images/types.go`,
/// `pkg/kubelet/container/sync_result.go`).
fn hindrance(container: &ContainerStatus) -> Option<Cause> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let said = waiting.reason.as_deref()?;
    let reason = match said {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "ErrImageNeverPull"
        | "InvalidImageName"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => SessionReason::ImageUnavailable,
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff" => {
            SessionReason::PodRejected
        }
        _ => return None,
    };
    Some(Cause::new(reason, words(&[Some(said), waiting.message.as_deref()])))
}

fn runner_restart(status: &PodStatus) -> Option<RunnerRestart> {
    let runner = container(status.init_container_statuses.as_ref(), RUNNER)?;
    if runner.restart_count == 0 {
        return None;
    }
    let last = runner.last_state.as_ref().and_then(|it| it.terminated.as_ref());
    let reason = match last.and_then(|it| it.reason.as_deref()) {
        Some("OOMKilled") => SessionReason::RunnerOutOfMemory,
        _ => SessionReason::RunnerExited,
    };
    let count = format!("restart {}", runner.restart_count);
    let exit = last.map(|it| format!("exit code {}", it.exit_code));
    let runs = runner.state.as_ref().is_some_and(|it| it.running.is_some());
    let now = (!runs).then_some("no command can start until it is started again");
    let facts = words(&[Some(&count), last.and_then(|it| it.reason.as_deref()), exit.as_deref(), now]);
    Some(RunnerRestart { count: runner.restart_count, cause: Cause::new(reason, facts) })
}

fn container<'a>(statuses: Option<&'a Vec<ContainerStatus>>, name: &str) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|status| status.name == name)
}

fn condition<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// The parts that say something, with commas.
fn words(parts: &[Option<&str>]) -> String {
    let said: Vec<&str> =
        parts.iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests;
