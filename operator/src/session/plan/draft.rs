//! A plan in the making: the status as it will be, and the steps so far.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use mooring_operator_api::condition::{ConditionType, SessionReason, set};
use mooring_operator_api::session::SessionStatus;

use super::super::observed::Observed;
use super::super::observed::pod::{Cause, PodFacts};
use super::{Notice, Plan, Step, time};

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub(super) seen: &'a Observed,
    pub(super) now: Timestamp,
    /// The status as it is.
    pub(super) before: SessionStatus,
    /// The status as it will be.
    pub(super) status: SessionStatus,
    steps: Vec<Step>,
    notices: Vec<Notice>,
    until: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(seen: &'a Observed, now: Timestamp) -> Self {
        let before = seen.session.status.clone().unwrap_or_default();
        let status = before.clone();
        Self { seen, now, before, status, steps: Vec::new(), notices: Vec::new(), until: None }
    }

    /// The present epoch; 0 before the first.
    pub(super) fn epoch(&self) -> i64 {
        self.before.epoch.unwrap_or(0)
    }

    pub(super) fn step(&mut self, step: Step) {
        if !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    pub(super) fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Takes out the steps that were refused a moment ago.
    pub(super) fn drop_steps(&mut self, is_dropped: impl Fn(&Step) -> bool) {
        self.steps.retain(|step| !is_dropped(step));
    }

    /// Asks for the deletion of a pod unless somebody has.
    pub(super) fn delete_pod(&mut self, pod: &PodFacts) {
        if pod.leaving.is_none() {
            self.step(Step::DeletePod { name: pod.name.clone(), uid: pod.uid.clone() });
        }
    }

    pub(super) fn notice(&mut self, is_warning: bool, reason: &'static str, note: impl Into<String>) {
        self.notices.push(Notice { is_warning, reason, note: note.into() });
    }

    /// Sets the condition that the cause's reason belongs to.
    pub(super) fn condition(&mut self, cause: &Cause) {
        let generation = self.seen.session.metadata.generation;
        let condition = cause.reason.row().condition(&cause.message, generation, time(self.now));
        set(&mut self.status.conditions, condition);
    }

    /// Sets the condition `Ready`.
    pub(super) fn ready(&mut self, cause: &Cause) {
        debug_assert_eq!(cause.reason.row().condition, ConditionType::Ready);
        self.condition(cause);
    }

    pub(super) fn drop_condition(&mut self, type_: ConditionType) {
        self.status.conditions.retain(|condition| condition.type_ != type_.as_str());
    }

    /// A condition, as far as the plan has come.
    pub(super) fn standing(&self, type_: ConditionType) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_.as_str())
    }

    /// Whether the condition `Ready` stands for one of these reasons.
    pub(super) fn stands_for(&self, reasons: &[SessionReason]) -> bool {
        self.standing(ConditionType::Ready)
            .is_some_and(|ready| reasons.iter().any(|reason| reason.as_str() == ready.reason))
    }

    pub(super) fn wait_until(&mut self, at: Timestamp) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    pub(super) fn finish(mut self) -> Plan {
        if self.status != self.before {
            self.tell();
            self.steps.push(Step::WriteStatus(Box::new(self.status)));
        }
        Plan { steps: self.steps, notices: self.notices, until: self.until }
    }

    /// Events follow from conditions whose reason has changed; progress is no event.
    fn tell(&mut self) {
        let mut told = Vec::new();
        for condition in &self.status.conditions {
            let before = self.before.conditions.iter().find(|it| it.type_ == condition.type_);
            let is_new =
                before.is_none_or(|it| it.reason != condition.reason || it.status != condition.status);
            let Some(row) = SessionReason::ROWS.iter().find(|row| row.reason == condition.reason) else {
                continue;
            };
            if is_new && !is_quiet(row.reason) {
                let is_warning = !is_normal(row.reason);
                told.push(Notice { is_warning, reason: row.reason, note: condition.message.clone() });
            }
        }
        self.notices.append(&mut told);
    }
}

/// Progress: read from the condition while it lasts.
pub(super) const PROGRESS: &[SessionReason] = &[
    SessionReason::VolumePending,
    SessionReason::PodPending,
    SessionReason::ImagePulling,
    SessionReason::Binding,
    SessionReason::Seeding,
];

/// The executor is lost, and why.
pub(super) const LOSSES: &[SessionReason] = &[
    SessionReason::ExecutorLost,
    SessionReason::ExecutorOutOfMemory,
    SessionReason::PodDeleted,
    SessionReason::PodAltered,
    SessionReason::Evicted,
];

fn is_quiet(reason: &str) -> bool {
    let beside = [
        SessionReason::Awake,
        SessionReason::InUse,
        SessionReason::FallingAsleep,
        SessionReason::Requested,
        SessionReason::Ended,
        SessionReason::Deleted,
        SessionReason::Removing,
        SessionReason::NoFiles,
    ];
    PROGRESS.iter().chain(&beside).any(|quiet| quiet.as_str() == reason)
}

fn is_normal(reason: &str) -> bool {
    [
        SessionReason::Bound,
        SessionReason::Asleep,
        SessionReason::Idle,
        SessionReason::Expired,
        SessionReason::Draining,
    ]
    .iter()
    .any(|normal| normal.as_str() == reason)
}
