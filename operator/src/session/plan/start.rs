//! From an epoch that is recorded to an executor that is bound under it.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::session::{
    EnvironmentKind, Executor, Operation, OperationStep, OperationType, VolumeClaim,
};
use mooring_operator_api::{ExecutorClass, ObjectName, Uid};
use mooring_proto::certificate::EXECUTOR_PORT;

use super::super::claim::Revision;
use super::super::observed::pod::{Cause, PodFacts, PodState};
use super::super::observed::{ClaimFacts, OurClaim, PolicyFacts, SecretFacts, StorageFacts, class_name};
use super::begin::{self, Next};
use super::draft::{Draft, LOSSES, PROGRESS};
use super::{Step, end, environment};
use crate::dial::{Answer, BindRefusal, Dial, Progress, Target};
use crate::names;

/// A start that is over sooner shows no progress: each would cost a write.
const QUIET: SignedDuration = SignedDuration::from_secs(1);
/// How often an object that has a name of ours and is not watched is looked at again.
const FOREIGN: SignedDuration = SignedDuration::from_secs(30);

/// Goes on with an operation that starts an executor.
pub(super) fn go_on(draft: &mut Draft<'_>, operation: &Operation) {
    if let Some(deadline) = deadline(draft, operation) {
        if draft.now >= deadline {
            return give_up(draft, operation);
        }
        draft.wait_until(deadline);
    }
    if operation.step == OperationStep::DeletePod {
        return begin::clear(draft, &Next::again(operation));
    }
    prepare(draft, operation);
    if let Some(refused) = &draft.seen.refused {
        draft.ready(&refused.cause);
        draft.drop_steps(|step| refused.step.is(step));
        draft.wait_until(refused.until);
    }
}

/// Only what a person asked for has a deadline; a lost executor is replaced for as long as it takes.
fn deadline(draft: &Draft<'_>, operation: &Operation) -> Option<Timestamp> {
    let lifecycle = draft.seen.session.spec.lifecycle.clone().unwrap_or_default();
    let patience = SignedDuration::try_from(lifecycle.start_deadline.to_duration()).ok()?;
    match operation.type_ {
        OperationType::Start | OperationType::Wake => operation.started_at.0.checked_add(patience).ok(),
        OperationType::Replace | OperationType::Sleep | OperationType::Retire => None,
    }
}

/// Past the deadline: nothing runs and nothing is tried, until the spec is another one.
fn give_up(draft: &mut Draft<'_>, operation: &Operation) {
    if Some(operation.generation) != draft.seen.session.metadata.generation {
        let next = Next::wake(draft);
        return begin::clear(draft, &next);
    }
    if !draft.stands_for(&[SessionReason::StartDeadlineExceeded]) {
        let last = draft.standing(mooring_operator_api::condition::ConditionType::Ready);
        let last = last.map_or_else(String::new, |ready| format!("{}: {}", ready.reason, ready.message));
        draft.ready(&Cause::new(SessionReason::StartDeadlineExceeded, last));
    }
    if draft.seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    for pod in &draft.seen.pods {
        draft.delete_pod(pod);
    }
    end::delete_secret(draft);
}

/// What the pod needs, all at once; then the pod; then the executor in it.
pub(super) fn prepare(draft: &mut Draft<'_>, operation: &Operation) {
    let seen = draft.seen;
    let Some(class) = seen.class.clone() else {
        let name = class_name(&seen.session);
        let message = if seen.is_class_leaving {
            format!("ExecutorClass {name} is being deleted")
        } else {
            format!("there is no ExecutorClass {name} in this namespace")
        };
        return draft.ready(&Cause::new(SessionReason::ClassNotFound, message));
    };
    let epoch = draft.status.epoch.unwrap_or(1);
    let Some(claim) = claim(draft) else { return };
    let is_recorded = draft.before.epoch == Some(epoch)
        && draft.before.operation.as_ref().is_some_and(|it| it.step != OperationStep::DeletePod);
    let has_policy = seen.policy == PolicyFacts::Current;
    if !has_policy {
        draft.step(Step::ApplyPolicy);
    }
    let own = names::pod(&Uid::from(seen.session.metadata.uid.clone().unwrap_or_default()), epoch);
    if let Some(pod) = seen.pods.iter().find(|pod| is_recorded && pod.name == own) {
        return follow(draft, operation, pod, &claim, &class);
    }
    let mut is_alone = true;
    for pod in &seen.pods {
        draft.delete_pod(pod);
        is_alone &= pod.is_over;
    }
    // A key is made only for an epoch that stands in the status: what sleeps or ends looks for that one alone.
    if is_recorded {
        if draft.seen.secret == SecretFacts::Foreign {
            let message = format!("Secret {own} is not this session's");
            draft.wait_until(draft.now + FOREIGN);
            return draft.ready(&Cause::new(SessionReason::NameConflict, message));
        }
        if secret(draft, epoch) && has_policy && is_alone && !claim.is_planned {
            draft.step(Step::CreatePod(epoch));
        }
    }
    progress(draft, operation, &Cause::new(SessionReason::PodPending, "the pod is being made"));
}

/// A claim that can be used, or will be.
struct Usable {
    revision: Option<Revision>,
    uid: Option<Uid>,
    is_bound: bool,
    /// It is made in this very round.
    is_planned: bool,
}

/// The claim, or `None` when there can be no pod: the reason is in the draft.
fn claim(draft: &mut Draft<'_>) -> Option<Usable> {
    let environment = draft.before.environment.clone().filter(|it| it.kind == EnvironmentKind::Kubernetes);
    let recorded = draft.before.claim.clone();
    let claim = match &draft.seen.claim {
        ClaimFacts::Foreign => {
            let message = "the volume claim with this session's name for it is not this session's";
            draft.ready(&Cause::new(SessionReason::NameConflict, message));
            return None;
        }
        ClaimFacts::Absent if environment.is_some() => {
            end::lose_workspace(draft, "the volume claim is gone");
            return None;
        }
        ClaimFacts::Absent => return new_claim(draft),
        ClaimFacts::Ours(claim) => claim,
    };
    if let Some(environment) = environment {
        if recorded.is_some_and(|it| it.uid != claim.uid) {
            end::lose_workspace(draft, "the volume claim was replaced by another one");
            return None;
        }
        if claim.is_lost {
            end::lose_workspace(draft, "the claim has lost its volume");
            return None;
        }
        if claim.revision.as_ref().map(Revision::as_str) != Some(environment.revision.as_str()) {
            let message =
                "the revision in the claim's annotation is not the one of this session's environment";
            draft.ready(&Cause::new(SessionReason::WorkspaceMismatch, message));
            return None;
        }
    } else if claim.revision.is_none() {
        let message = "the claim has no revision in its annotation";
        draft.ready(&Cause::new(SessionReason::WorkspaceMismatch, message));
        return None;
    }
    usable(draft, claim)
}

fn usable(draft: &mut Draft<'_>, claim: &OurClaim) -> Option<Usable> {
    if claim.is_leaving || claim.is_lost {
        let message =
            if claim.is_lost { "the claim has lost its volume" } else { "the volume claim is being deleted" };
        draft.ready(&Cause::new(SessionReason::VolumePending, message));
        return None;
    }
    Some(Usable {
        revision: claim.revision.clone(),
        uid: Some(claim.uid.clone()),
        is_bound: claim.is_bound,
        is_planned: false,
    })
}

fn new_claim(draft: &mut Draft<'_>) -> Option<Usable> {
    let message = match &draft.seen.storage {
        StorageFacts::Known(access) => {
            draft.step(Step::CreateClaim(*access));
            return Some(Usable { revision: None, uid: None, is_bound: false, is_planned: true });
        }
        StorageFacts::Missing(name) => format!("there is no StorageClass {name}"),
        StorageFacts::NoDefault => "no StorageClass is named, and the cluster has no default one".to_owned(),
    };
    draft.ready(&Cause::new(SessionReason::StorageClassNotFound, message));
    None
}

/// Whether the Secret can be used; otherwise what makes it so is in the draft.
fn secret(draft: &mut Draft<'_>, epoch: i64) -> bool {
    match draft.seen.secret {
        SecretFacts::Fresh => true,
        SecretFacts::Absent | SecretFacts::Unread | SecretFacts::Foreign => {
            draft.step(Step::CreateSecret(epoch));
            false
        }
        SecretFacts::Stale => {
            draft.step(Step::RenewSecret(epoch));
            false
        }
    }
}

/// The pod of this epoch is there.
fn follow(
    draft: &mut Draft<'_>,
    operation: &Operation,
    pod: &PodFacts,
    claim: &Usable,
    class: &ExecutorClass,
) {
    for other in draft.seen.pods.iter().filter(|other| other.uid != pod.uid) {
        draft.delete_pod(other);
    }
    if let Some(cause) = pod.loss() {
        return begin::lose(draft, cause, &Next::again(operation));
    }
    if let Some(node) = &pod.silent_node {
        return draft.ready(&begin::unreachable(node));
    }
    if pod.class_label.as_deref() != Some(names::label(&class.name_any()).as_str()) {
        return begin::lose(draft, &altered(&pod.name), &Next::again(operation));
    }
    if pod.class_digest.as_deref() != Some(crate::class::digest(class).as_str()) {
        // Whatever holds it up may just have been mended.
        let cause = Cause::new(SessionReason::PodPending, "the class has changed; the pod is made anew");
        return begin::lose(draft, &cause, &Next::again(operation));
    }
    let (Some(address), Some(revision)) = (pod.address, &claim.revision) else {
        return wait(draft, operation, pod, claim);
    };
    let target = Target {
        pod: pod.name.clone(),
        pod_uid: pod.uid.clone(),
        epoch: draft.status.epoch.unwrap_or(1),
        address,
        revision: revision.as_str().to_owned(),
        may_be_new: draft.before.environment.is_none(),
        generations: [&draft.seen.session.metadata, &class.metadata]
            .map(|it| it.generation.unwrap_or(0))
            .into(),
    };
    match &draft.seen.dial {
        Some(Dial { target: dialled, progress }) if *dialled == target => match progress {
            // What the node says of a container that does not run is why it cannot be reached.
            Progress::Trying(Some(cause)) if pod.state == PodState::Running => {
                self::progress(draft, operation, cause);
            }
            Progress::Trying(_) => wait(draft, operation, pod, claim),
            Progress::Bound(answer) => bound(draft, operation, &target, answer, claim, class),
            Progress::Refused(refusal) => refused(draft, operation, refusal),
        },
        Some(_) | None => {
            draft.step(Step::Dial(target));
            wait(draft, operation, pod, claim);
        }
    }
}

fn wait(draft: &mut Draft<'_>, operation: &Operation, pod: &PodFacts, claim: &Usable) {
    let cause = match &pod.state {
        PodState::Waiting(cause) if cause.reason == SessionReason::PodPending && !claim.is_bound => {
            Cause::new(SessionReason::VolumePending, "the cluster has not provided the volume yet")
        }
        PodState::Waiting(cause) | PodState::Ended { cause, .. } => cause.clone(),
        PodState::Running => Cause::new(SessionReason::Binding, "the executor is being reached"),
    };
    progress(draft, operation, &cause);
}

/// Tells how far the start is, unless that is worth less than what is told already, or not worth a write yet.
fn progress(draft: &mut Draft<'_>, operation: &Operation, cause: &Cause) {
    if PROGRESS.contains(&cause.reason) {
        if operation.type_ == OperationType::Replace && draft.stands_for(LOSSES) {
            return;
        }
        let shown_from = operation.started_at.0 + QUIET;
        if draft.stands_for(PROGRESS) && draft.now < shown_from {
            return draft.wait_until(shown_from);
        }
    }
    draft.ready(cause);
}

fn bound(
    draft: &mut Draft<'_>,
    operation: &Operation,
    target: &Target,
    answer: &Answer,
    claim: &Usable,
    class: &ExecutorClass,
) {
    let minimum = class.spec.minimum_landlock;
    if answer.landlock < minimum {
        let message = format!("Landlock ABI {} on its node, the class demands {minimum}", answer.landlock);
        return draft.ready(&Cause::new(SessionReason::LandlockTooOld, message));
    }
    let seen = draft.seen;
    draft.status.environment = Some(environment(&seen.session, &target.revision));
    draft.status.claim = claim.uid.clone().map(|uid| VolumeClaim {
        name: ObjectName::from(names::claim(&Uid::from(
            seen.session.metadata.uid.clone().unwrap_or_default(),
        ))),
        uid,
    });
    draft.status.executor = Some(Executor {
        pod: ObjectName::from(target.pod.as_str()),
        pod_uid: target.pod_uid.clone(),
        class: Some(ObjectName::from(class.name_any())),
        address: std::net::SocketAddr::new(target.address, EXECUTOR_PORT).to_string(),
        boot_id: answer.boot_id.clone(),
        landlock: answer.landlock,
        recovering_since: match operation.type_ {
            OperationType::Replace => Some(operation.started_at.clone()),
            OperationType::Start | OperationType::Wake | OperationType::Sleep | OperationType::Retire => None,
        },
    });
    draft.status.operation = None;
    draft.ready(&ready(target.epoch, &target.pod));
}

/// The pod's network policy does not hold any more.
pub(super) fn altered(pod: &str) -> Cause {
    Cause::new(SessionReason::PodAltered, format!("the labels of pod {pod} are not what they were made"))
}

/// An executor is bound.
pub(super) fn ready(epoch: i64, pod: &str) -> Cause {
    Cause::new(SessionReason::Bound, format!("epoch {epoch} on pod {pod}"))
}

fn refused(draft: &mut Draft<'_>, operation: &Operation, refusal: &BindRefusal) {
    match refusal {
        BindRefusal::StaleEpoch { current } => {
            let cause =
                Cause::new(SessionReason::BindRefused, format!("the volume has seen epoch {current}"));
            begin::lose(draft, &cause, &Next::again(operation).above(*current));
        }
        BindRefusal::OtherArguments => {
            let message = "the executor was bound with other arguments before";
            begin::lose(draft, &Cause::new(SessionReason::BindRefused, message), &Next::again(operation));
        }
        BindRefusal::EmptyWorkspace => {
            end::lose_workspace(draft, "the volume holds nothing of this environment");
        }
    }
}
