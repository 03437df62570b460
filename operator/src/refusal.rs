//! What the API server answers to a write that it does not carry out, in the words of conditions; and how long to wait
//! before it is tried again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::core::Status;
use mooring_operator_api::Uid;
use mooring_operator_api::condition::SessionReason;

use crate::session::{Cause, Step};

/// The first pause after a refusal or a failure, doubled each time.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(250);
/// The longest one.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);
/// An answer of the API server says at least this much of itself.
const LONGEST_SAID: usize = 600;

/// Which kind of step was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusable {
    /// Making the claim.
    Claim,
    /// Making the Secret.
    Secret,
    /// Making the pod.
    Pod,
}

impl Refusable {
    /// Whether a step is of this kind.
    pub(crate) fn is(self, step: &Step) -> bool {
        match step {
            Step::CreateClaim(_) => self == Self::Claim,
            Step::CreateSecret(_) => self == Self::Secret,
            Step::CreatePod(_) => self == Self::Pod,
            Step::AddFinalizer
            | Step::RemoveFinalizer
            | Step::WriteStatus(_)
            | Step::DeleteClaim(_)
            | Step::RetainClaim(_)
            | Step::ApplyPolicy
            | Step::RenewSecret(_)
            | Step::DeleteSecret(_)
            | Step::DeletePod { .. }
            | Step::Dial(_)
            | Step::HangUp => false,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Claim => "volume claim",
            Self::Secret => "Secret",
            Self::Pod => "pod",
        }
    }
}

/// A refused step, as a plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What was refused.
    pub(crate) step: Refusable,
    /// Why.
    pub(crate) cause: Cause,
    /// It is not tried again before.
    pub(crate) until: Timestamp,
}

/// Why the API server will not make an object, where that is for a person to mend. `None`: a fault of the moment.
pub(crate) fn cause(step: Refusable, status: &Status) -> Option<Cause> {
    let said = || {
        let mut said: String = status.message.chars().take(LONGEST_SAID).collect();
        if said.is_empty() {
            said.clone_from(&status.reason);
        }
        said
    };
    let is_terminating = status
        .details
        .as_ref()
        .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    match status.code {
        // The Session is deleted with its namespace in a moment.
        403 if is_terminating => None,
        403 if status.message.contains("exceeded quota") => {
            Some(Cause::new(SessionReason::QuotaExceeded, said()))
        }
        403 | 422 | 400 => Some(Cause::new(rejected(step), said())),
        _ => None,
    }
}

fn rejected(step: Refusable) -> SessionReason {
    match step {
        Refusable::Claim => SessionReason::ClaimRejected,
        Refusable::Secret | Refusable::Pod => SessionReason::PodRejected,
    }
}

/// Somebody else's object has the name.
pub(crate) fn conflict(step: Refusable, name: &str) -> Cause {
    let message = format!("{} {name} is not this session's", step.noun());
    Cause::new(SessionReason::NameConflict, message)
}

/// What a refusal was about: another generation is another question.
pub(crate) type Generations = (i64, i64);

/// Pauses by Session, in memory: after a restart everything is tried once.
#[derive(Default)]
pub(crate) struct Pauses {
    of: Mutex<HashMap<Uid, Pause>>,
}

#[derive(Default)]
struct Pause {
    /// How often in a row something was refused.
    refusals: u32,
    /// How often in a row something failed.
    failures: u32,
    failing_until: Option<Timestamp>,
    refused: Option<(Refused, Generations)>,
}

impl Pauses {
    /// What was refused a moment ago and is not to be tried again yet.
    pub(crate) fn refused(&self, session: &Uid, generations: Generations, now: Timestamp) -> Option<Refused> {
        let of = self.lock();
        let (refused, about) = of.get(session)?.refused.as_ref()?;
        (*about == generations && now < refused.until).then(|| refused.clone())
    }

    /// Notes a refusal, and says when to try again.
    pub(crate) fn refuse(
        &self,
        session: &Uid,
        (step, cause): (Refusable, Cause),
        generations: Generations,
        now: Timestamp,
    ) -> Refused {
        let mut of = self.lock();
        let pause = of.entry(session.clone()).or_default();
        let refused = Refused { step, cause, until: now + next(&mut pause.refusals) };
        pause.refused = Some((refused.clone(), generations));
        refused
    }

    /// Notes a failure, and says how long to wait. One that comes before the wait for the last is over is no further one:
    /// while the API server is away, every change of a watch leads to one, and the pause is to follow how long it was away.
    pub(crate) fn fail(&self, session: &Uid, now: Timestamp) -> SignedDuration {
        let mut of = self.lock();
        let pause = of.entry(session.clone()).or_default();
        let until = match pause.failing_until {
            Some(until) if now < until => until,
            Some(_) | None => now + next(&mut pause.failures),
        };
        pause.failing_until = Some(until);
        until.duration_since(now)
    }

    /// Something was carried out: what fails now has another cause, or comes after it.
    pub(crate) fn progress(&self, session: &Uid) {
        if let Some(pause) = self.lock().get_mut(session) {
            pause.failures = 0;
            pause.failing_until = None;
        }
    }

    /// Everything that was planned is done, or the Session is gone.
    pub(crate) fn clear(&self, session: &Uid) {
        self.lock().remove(session);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Pause>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause after so many in a row, and one more.
fn next(times: &mut u32) -> SignedDuration {
    let pause = FIRST_PAUSE.checked_mul(1_i32 << (*times).min(16)).unwrap_or(LONGEST_PAUSE);
    *times = times.saturating_add(1);
    pause.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
