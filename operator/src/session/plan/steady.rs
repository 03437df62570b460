//! An executor is bound: nothing to do while it lives. Nothing is written and nobody is called.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use mooring_operator_api::condition::{ConditionType, SessionReason};

use super::super::observed::SecretFacts;
use super::super::observed::pod::Cause;
use super::begin::{self, Next};
use super::draft::Draft;
use super::{Step, start};
use crate::certificate::RENEWED_AFTER;
use crate::names;

/// An executor that was bound for longer than this has recovered from the loss before it.
const RECOVERED: SignedDuration = SignedDuration::from_mins(1);

/// Keeps a bound executor, or notices that it is lost.
pub(super) fn keep(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    let Some(executor) = draft.before.executor.clone() else { return };
    if seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    let since = losing_since(draft, executor.recovering_since.as_ref().map(|since| since.0));
    let Some(pod) = seen.pods.iter().find(|pod| pod.uid == executor.pod_uid) else {
        let cause = Cause::new(SessionReason::PodDeleted, format!("pod {} is gone", executor.pod));
        return begin::lose(draft, &cause, &Next::replace(since));
    };
    if let Some(cause) = pod.loss() {
        return begin::lose(draft, cause, &Next::replace(since));
    }
    let selected_by = executor.class.as_ref().map(|class| names::label(class.as_str()));
    if selected_by.is_some_and(|label| pod.class_label.as_deref() != Some(label.as_str())) {
        return begin::lose(draft, &start::altered(&pod.name), &Next::replace(since));
    }
    match &pod.runner_restart {
        Some(restart) => draft.condition(&restart.cause),
        None => draft.drop_condition(ConditionType::RunnerRestarted),
    }
    match &pod.silent_node {
        Some(node) => draft.ready(&begin::unreachable(node)),
        None => draft.ready(&start::ready(pod.epoch, &pod.name)),
    }
    let renewed_at = pod.created + SignedDuration::try_from(RENEWED_AFTER).unwrap_or(SignedDuration::MAX);
    if draft.now < renewed_at {
        draft.wait_until(renewed_at);
    } else if seen.secret == SecretFacts::Stale {
        draft.step(Step::RenewSecret(draft.epoch()));
    } else if seen.secret == SecretFacts::Absent {
        draft.step(Step::CreateSecret(draft.epoch()));
    } else {
        // It was renewed since; looked at again when that one may be due.
        draft.wait_until(draft.now + SignedDuration::from_hours(24));
    }
}

/// Since when executors of this Session are lost one after the other, if this one is lost now.
fn losing_since(draft: &Draft<'_>, recovering_since: Option<Timestamp>) -> Timestamp {
    let bound_at = draft.standing(ConditionType::Ready).map(|ready| ready.last_transition_time.0);
    let is_short = bound_at.is_some_and(|at| draft.now.duration_since(at) < RECOVERED);
    recovering_since.filter(|_| is_short).unwrap_or(draft.now)
}
