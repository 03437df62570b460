//! Wanted asleep: no pod and no Secret, the volume stays.

use mooring_operator_api::condition::{ConditionType, SessionReason};
use mooring_operator_api::session::{Operation, OperationStep, OperationType};

use super::super::observed::SecretFacts;
use super::super::observed::pod::Cause;
use super::draft::Draft;
use super::{Step, begin, end, time};

/// Falls asleep, or stays so.
pub(super) fn sleep(draft: &mut Draft<'_>) {
    let seen = draft.seen;
    draft.status.executor = None;
    draft.drop_condition(ConditionType::RunnerRestarted);
    if seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    let is_asleep = draft.before.operation.is_none() && draft.before.executor.is_none();
    for pod in &seen.pods {
        draft.delete_pod(pod);
    }
    let live = seen.pods.iter().find(|pod| !pod.is_over);
    end::delete_secret(draft);
    let has_secret = match seen.secret {
        SecretFacts::Fresh | SecretFacts::Stale => true,
        SecretFacts::Unread => !is_asleep && draft.epoch() > 0,
        SecretFacts::Absent | SecretFacts::Foreign => false,
    };
    if live.is_none() && !has_secret {
        draft.status.operation = None;
        draft.condition(&Cause::new(SessionReason::Requested, "suspended by its spec"));
        return draft.ready(&Cause::new(SessionReason::Asleep, "suspended; the volume stays"));
    }
    if draft.before.operation.as_ref().is_none_or(|it| it.type_ != OperationType::Sleep) {
        draft.status.operation = Some(Operation {
            id: format!("sleep-{}", draft.epoch()),
            type_: OperationType::Sleep,
            step: OperationStep::DeletePod,
            started_at: time(draft.now),
            generation: seen.session.metadata.generation.unwrap_or(0),
        });
    }
    draft.condition(&Cause::new(
        SessionReason::FallingAsleep,
        "its commands are being ended and its pod goes",
    ));
    match live.and_then(|pod| pod.silent_node.as_deref()) {
        Some(node) => draft.ready(&begin::unreachable(node)),
        None => draft.ready(&Cause::new(SessionReason::Asleep, "suspended; the volume stays")),
    }
}
