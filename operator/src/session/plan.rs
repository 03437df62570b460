//! What to do next for one Session. Pure: from what is observed and the time to steps; carrying them out and planning again
//! leads on, until there is nothing left to do.
//!
//! ```text
//!  epoch none ──begin──▶ Start ───────────────Bind───────▶ steady ──loss──▶ Replace: clear ──begin──▶ Bind ──▶ steady
//!                          ▲ given up at its deadline         │ suspended
//!                          └─ the spec changed                └──▶ Sleep ──woken──▶ Wake: begin ──▶ Bind ──▶ steady
//!  any ──volume lost──▶ Retire, for good           any ──deleted──▶ pod, Secret, volume by policy, finalizer
//! ```
//!
//! What is branched on: the spec, the facts, and the operation record. Conditions are for readers.

mod begin;
mod draft;
mod end;
mod sleep;
mod start;
mod steady;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use mooring_operator_api::condition::SessionReason;
use mooring_operator_api::session::{
    EnvironmentKind, EnvironmentRef, OperationType, Profile, SessionStatus, Source,
};
use mooring_operator_api::{Session, Uid, label};

use super::claim::Access;
use super::observed::pod::Cause;
use super::observed::{Observed, deleted_at};
use crate::dial::Target;
use draft::Draft;

/// The revision of every environment of kind `none`.
const NONE_REVISION: &str = "0";

/// One thing to do. Each is safe to repeat.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Put our finalizer on the Session.
    AddFinalizer,
    /// Take it off: nothing of the Session is left.
    RemoveFinalizer,
    /// Write the status.
    WriteStatus(Box<SessionStatus>),
    /// Make the claim, with a revision that is drawn for it.
    CreateClaim(Access),
    /// Delete the claim with this UID.
    DeleteClaim(Uid),
    /// Mark the claim with this UID as outliving the Session.
    RetainClaim(Uid),
    /// Bring the class's network policy about.
    ApplyPolicy,
    /// Make the Secret of an epoch's pod.
    CreateSecret(i64),
    /// Give the Secret of an epoch's pod a new certificate.
    RenewSecret(i64),
    /// Delete the Secret of an epoch's pod.
    DeleteSecret(i64),
    /// Make the pod of an epoch.
    CreatePod(i64),
    /// Delete a pod, and first the Secret of its name.
    DeletePod {
        /// Its name.
        name: String,
        /// Its UID: another pod of that name stays.
        uid: Uid,
    },
    /// Reach the executor of a pod and bind it; what comes of it is observed.
    Dial(Target),
    /// Forget what came of it.
    HangUp,
}

impl Step {
    /// What it does, for the log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::AddFinalizer => "add finalizer",
            Self::RemoveFinalizer => "remove finalizer",
            Self::WriteStatus(_) => "write status",
            Self::CreateClaim(_) => "create claim",
            Self::DeleteClaim(_) => "delete claim",
            Self::RetainClaim(_) => "retain claim",
            Self::ApplyPolicy => "apply policy",
            Self::CreateSecret(_) => "create secret",
            Self::RenewSecret(_) => "renew secret",
            Self::DeleteSecret(_) => "delete secret",
            Self::CreatePod(_) => "create pod",
            Self::DeletePod { .. } => "delete pod",
            Self::Dial(_) => "dial",
            Self::HangUp => "hang up",
        }
    }
}

/// Something that people should see at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Something is not as it should be.
    pub(crate) is_warning: bool,
    /// What happened, one word.
    pub(crate) reason: &'static str,
    /// The facts.
    pub(crate) note: String,
}

/// What to do, all of it at once; then to observe and plan again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// In no order.
    pub(crate) steps: Vec<Step>,
    /// To be told once the steps are done.
    pub(crate) notices: Vec<Notice>,
    /// When to plan again although nothing has changed.
    pub(crate) until: Option<Timestamp>,
}

/// Plans the next steps.
pub(crate) fn plan(seen: &Observed, now: Timestamp) -> Plan {
    let mut draft = Draft::new(seen, now);
    let session = &seen.session;
    if deleted_at(session).is_some() {
        if has_finalizer(session) {
            end::delete(&mut draft);
        }
    } else if is_without_files(session) {
        without_files(&mut draft, session);
    } else if let Some(kind) = unsupported_source(session) {
        let message = format!("workspaces from a {kind} source are not supported yet");
        draft.ready(&Cause::new(SessionReason::SourceUnsupported, message));
    } else if !has_finalizer(session) {
        // Nothing is made that would be left behind.
        draft.step(Step::AddFinalizer);
    } else {
        live(&mut draft);
    }
    draft.finish()
}

fn live(draft: &mut Draft<'_>) {
    let operation = draft.before.operation.clone();
    match operation {
        Some(operation) if operation.type_ == OperationType::Retire => end::stay_retired(draft),
        _ if draft.seen.session.spec.suspended => sleep::sleep(draft),
        Some(operation) => match operation.type_ {
            OperationType::Start | OperationType::Replace | OperationType::Wake => {
                start::go_on(draft, &operation);
            }
            // Woken before it was asleep: first what it had is cleared away.
            OperationType::Sleep => begin::clear(draft, &begin::Next::wake(draft)),
            OperationType::Retire => end::stay_retired(draft),
        },
        None if draft.before.executor.is_some() => steady::keep(draft),
        None => begin::begin(draft),
    }
}

fn is_without_files(session: &Session) -> bool {
    session.spec.profile == Some(Profile::NoFs)
}

fn without_files(draft: &mut Draft<'_>, session: &Session) {
    draft.status.environment = Some(EnvironmentRef {
        kind: EnvironmentKind::None,
        id: session.uid().unwrap_or_default(),
        revision: NONE_REVISION.to_owned(),
    });
    draft.ready(&Cause::new(SessionReason::NoFiles, "a session without files and commands"));
}

fn unsupported_source(session: &Session) -> Option<&'static str> {
    match session.spec.workspace.as_ref()?.source.as_ref()? {
        Source::Empty(_) => None,
        Source::Git(_) => Some("git"),
        Source::Claim(_) => Some("claim"),
    }
}

fn has_finalizer(session: &Session) -> bool {
    session.finalizers().iter().any(|it| it == label::FINALIZER)
}

/// The exact identity of a Session's environment over a volume of this revision.
pub(crate) fn environment(session: &Session, revision: &str) -> EnvironmentRef {
    let (namespace, uid) = (session.namespace().unwrap_or_default(), session.uid().unwrap_or_default());
    EnvironmentRef {
        kind: EnvironmentKind::Kubernetes,
        id: format!("{namespace}/{}/{uid}", session.name_any()),
        revision: revision.to_owned(),
    }
}

fn time(at: Timestamp) -> Time {
    Time(at)
}

#[cfg(test)]
mod tests;
