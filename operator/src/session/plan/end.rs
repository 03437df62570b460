//! The ends of a Session: retired for good, and deleted.

use jiff::{SignedDuration, Timestamp};
use mooring_operator_api::condition::{ConditionType, SessionReason};
use mooring_operator_api::session::{Operation, OperationStep, OperationType, Retain};

use super::super::observed::pod::Cause;
use super::super::observed::{ClaimFacts, OurClaim, SecretFacts, deleted_at};
use super::draft::Draft;
use super::{Step, time};

/// How long a deletion waits for pods beyond what their nodes are given to end them.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The volume, or what was on it, is gone: never replaced by an empty one.
pub(super) fn lose_workspace(draft: &mut Draft<'_>, message: &str) {
    draft.status.operation = Some(Operation {
        id: format!("retire-{}", draft.epoch()),
        type_: OperationType::Retire,
        step: OperationStep::DeletePod,
        started_at: time(draft.now),
        generation: draft.seen.session.metadata.generation.unwrap_or(0),
    });
    draft.status.executor = None;
    draft.condition(&Cause::new(SessionReason::WorkspaceLost, message));
    draft.ready(&Cause::new(SessionReason::Ended, message));
}

/// Retired: nothing runs, nothing is made. What is left of the volume goes with the Session.
pub(super) fn stay_retired(draft: &mut Draft<'_>) {
    draft.status.executor = None;
    draft.drop_condition(ConditionType::RunnerRestarted);
    if draft.seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    for pod in &draft.seen.pods {
        draft.delete_pod(pod);
    }
    delete_secret(draft);
}

/// Asks for the deletion of the Secret of the present epoch, if there is one of ours.
pub(super) fn delete_secret(draft: &mut Draft<'_>) {
    match draft.seen.secret {
        SecretFacts::Fresh | SecretFacts::Stale => draft.step(Step::DeleteSecret(draft.epoch())),
        SecretFacts::Absent | SecretFacts::Foreign | SecretFacts::Unread => {}
    }
}

/// Deleted by somebody: the pod goes, then the volume by policy, then the finalizer.
pub(super) fn delete(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    if seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    for pod in &seen.pods {
        draft.delete_pod(pod);
    }
    delete_secret(draft);
    let deadline = deleted_at(&seen.session).map_or(draft.now, deadline);
    let live = seen.pods.iter().find(|pod| !pod.is_over);
    if let Some(pod) = live {
        let is_answering = draft.now < deadline;
        draft.status.executor = None;
        draft.ready(&Cause::new(SessionReason::Deleted, "being deleted"));
        if is_answering {
            draft.condition(&Cause::new(SessionReason::Draining, format!("pod {} is ending", pod.name)));
            return draft.wait_until(deadline);
        }
        let message = format!("pod {} has not ended; the cluster removes it once its node answers", pod.name);
        if draft
            .standing(ConditionType::Terminating)
            .is_none_or(|it| it.reason != SessionReason::DrainUnanswered.as_str())
        {
            return draft.condition(&Cause::new(SessionReason::DrainUnanswered, message));
        }
    }
    if release_claim(draft) && !draft.has_steps() {
        // Written no more: the object goes.
        draft.status = draft.before.clone();
        draft.step(Step::RemoveFinalizer);
    }
}

fn deadline(deleted_at: Timestamp) -> Timestamp {
    deleted_at + PATIENCE
}

/// Whether the claim is as it should be after the Session; otherwise what makes it so is in the draft.
fn release_claim(draft: &mut Draft<'_>) -> bool {
    let ClaimFacts::Ours(OurClaim { uid, is_leaving, is_retained, .. }) = &draft.seen.claim else {
        return true;
    };
    match retain(draft) {
        Retain::Delete if !is_leaving => draft.step(Step::DeleteClaim(uid.clone())),
        Retain::Retain if !is_retained && !is_leaving => {
            draft.step(Step::RetainClaim(uid.clone()));
            draft.notice(false, "VolumeRetained", "the volume claim stays, as storage.retain says");
        }
        Retain::Delete | Retain::Retain => return true,
    }
    false
}

fn retain(draft: &Draft<'_>) -> Retain {
    let workspace = draft.seen.session.spec.workspace.as_ref();
    workspace.and_then(|it| it.storage.as_ref()?.retain).unwrap_or_default()
}
