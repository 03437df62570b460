//! A new epoch: it begins once nothing of the one before runs any more, and is recorded before anything is made for it.

use jiff::{SignedDuration, Timestamp};
use mooring_operator_api::condition::{ConditionType, SessionReason};
use mooring_operator_api::session::{MAX_EPOCH, Operation, OperationStep, OperationType};

use super::super::observed::SecretFacts;
use super::super::observed::pod::{Cause, PodFacts, PodState};
use super::draft::Draft;
use super::{Step, start, time};

/// The longest pause between two attempts to start an executor.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// An executor that ended sooner than this after its pod was made is not replaced at once.
const SHORTEST_LIFE: SignedDuration = SignedDuration::from_secs(5);

/// How often a pod that no watch shows is read again until it has ended.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(2);

/// The operation that the next epoch belongs to.
pub(super) struct Next {
    type_: OperationType,
    started_at: Timestamp,
    /// The next epoch is above this one, whatever the status says.
    above: i64,
}

impl Next {
    /// Goes on with an operation whose pod did not come to anything.
    pub(super) fn again(operation: &Operation) -> Self {
        Self { type_: operation.type_, started_at: operation.started_at.0, above: 0 }
    }

    /// The volume has seen this epoch: the next one is above it, however far behind the status is.
    pub(super) fn above(self, epoch: i64) -> Self {
        Self { above: epoch, ..self }
    }

    /// The one before is lost; since when, if others were lost shortly before it.
    pub(super) fn replace(since: Timestamp) -> Self {
        Self { type_: OperationType::Replace, started_at: since, above: 0 }
    }

    /// The Session is wanted awake.
    pub(super) fn wake(draft: &Draft<'_>) -> Self {
        let type_ = if draft.epoch() == 0 { OperationType::Start } else { OperationType::Wake };
        Self { type_, started_at: draft.now, above: 0 }
    }
}

/// From nothing: the first epoch, or the first after sleep.
pub(super) fn begin(draft: &mut Draft<'_>) {
    let next = Next::wake(draft);
    clear(draft, &next);
}

/// Records that the executor is lost for this cause, and begins to clear away what is left of it.
pub(super) fn lose(draft: &mut Draft<'_>, cause: &Cause, next: &Next) {
    draft.ready(cause);
    clear(draft, next);
}

/// Removes what is left of the present epoch, then begins the next one.
pub(super) fn clear(draft: &mut Draft<'_>, next: &Next) {
    let seen = draft.seen;
    draft.status.executor = None;
    draft.drop_condition(ConditionType::RunnerRestarted);
    if draft.standing(ConditionType::Suspended).is_some() {
        draft.condition(&Cause::new(SessionReason::Awake, "wanted awake"));
    }
    if seen.dial.is_some() {
        draft.step(Step::HangUp);
    }
    // One whose executor has ended is over in a moment, and then still says when that was.
    let live: Vec<&PodFacts> = seen.pods.iter().filter(|pod| !pod.is_over).collect();
    for pod in live.iter().filter(|pod| !matches!(pod.state, PodState::Ended { .. })) {
        draft.delete_pod(pod);
    }
    if let Some(PodState::Ended { cause, .. }) = live.last().map(|pod| &pod.state)
        && cause.reason == SessionReason::Evicted
        && draft.stands_for(&[SessionReason::ExecutorLost])
    {
        // The node shows the end of the process first, and why it ended it a moment later.
        draft.ready(cause);
    }
    if live.iter().any(|pod| !pod.is_watched) {
        draft.wait_until(draft.now + UNWATCHED);
    }
    if let Some(node) = live.iter().find_map(|pod| pod.silent_node.as_deref()) {
        draft.ready(&unreachable(node));
    }
    let has_no_secret = match seen.secret {
        SecretFacts::Absent | SecretFacts::Foreign => true,
        // Read in the next round: this one records that it is needed.
        SecretFacts::Unread => draft.epoch() == 0,
        SecretFacts::Fresh | SecretFacts::Stale => {
            draft.step(Step::DeleteSecret(draft.epoch()));
            false
        }
    };
    let resumes_at = resumes_at(draft, next);
    if !live.is_empty() || !has_no_secret || resumes_at > draft.now {
        record(draft, next, highest(draft, next).max(1), OperationStep::DeletePod);
        if live.is_empty() && resumes_at > draft.now {
            draft.wait_until(resumes_at);
        }
        return;
    }
    for pod in &seen.pods {
        draft.delete_pod(pod);
    }
    let highest = highest(draft, next);
    if highest >= MAX_EPOCH {
        let message = "the volume or a pod claims the highest epoch there is; no executor can follow it";
        return draft.ready(&Cause::new(SessionReason::WorkspaceMismatch, message));
    }
    let operation = record(draft, next, highest + 1, OperationStep::Claim);
    start::prepare(draft, &operation);
}

/// The highest epoch that there was, as far as status, pods and volume say.
fn highest(draft: &Draft<'_>, next: &Next) -> i64 {
    let seen = draft.seen.pods.iter().map(|pod| pod.epoch).fold(draft.epoch().max(next.above), i64::max);
    seen.min(MAX_EPOCH)
}

/// When the next epoch may begin: the more attempts of this operation failed, the later. Recomputed from what is observed, so
/// that a restart forgets nothing.
fn resumes_at(draft: &Draft<'_>, next: &Next) -> Timestamp {
    let last = draft.seen.pods.iter().max_by_key(|pod| pod.epoch);
    let Some(PodFacts { state: PodState::Ended { at, .. }, created, .. }) = last else { return draft.now };
    let ended = at.unwrap_or(*created);
    // An attempt that failed after so long is followed by a pause of the same length: the pauses double.
    let spent = ended.duration_since(next.started_at).clamp(SignedDuration::ZERO, LONGEST_PAUSE);
    (ended + spent).max(*created + SHORTEST_LIFE)
}

fn record(draft: &mut Draft<'_>, next: &Next, epoch: i64, step: OperationStep) -> Operation {
    let Next { type_, started_at, above: _ } = next;
    let word = match type_ {
        OperationType::Start => "start",
        OperationType::Replace => "replace",
        OperationType::Wake => "wake",
        OperationType::Sleep => "sleep",
        OperationType::Retire => "retire",
    };
    let coming = if step == OperationStep::DeletePod { epoch + 1 } else { epoch };
    let operation = Operation {
        id: format!("{word}-{coming}"),
        type_: *type_,
        step,
        started_at: time(*started_at),
        generation: draft.seen.session.metadata.generation.unwrap_or(0),
    };
    draft.status.epoch = Some(epoch);
    draft.status.operation = Some(operation.clone());
    operation
}

/// Nobody knows whether the executor still runs there.
pub(super) fn unreachable(node: &str) -> Cause {
    let message = format!(
        "node {node} does not answer; the volume is given to no other pod while its own may still run"
    );
    Cause::new(SessionReason::NodeUnreachable, message)
}
