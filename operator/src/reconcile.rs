//! What every reconcile may end with, and when it is tried again then.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use kube::runtime::controller::Action;
use mooring_operator_api::Uid;

use crate::refusal::Pauses;
use crate::telemetry::story;
use crate::write::WriteError;

/// A refusal of the moment is tried again this soon.
const AT_ONCE: Duration = Duration::from_millis(5);

/// Why a reconcile did not come to its end. What is done is done; the rest follows from what is observed then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// A write failed.
    #[error("cannot carry out a step")]
    Write(#[from] WriteError),
    /// Something that is not watched could not be read.
    #[error("cannot read {what}")]
    Read {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// The code is wrong; where is on standard error.
    #[error("a fault of the operator itself")]
    Panicked,
}

impl ReconcileError {
    /// That `what` could not be read.
    pub(crate) fn read(what: &'static str, source: kube::Error) -> Self {
        Self::Read { what, source: Box::new(source) }
    }
}

/// Carries out one reconcile. A panic in it would be a fault of ours: it ends this one and no other.
///
/// # Errors
/// What the reconcile ends with, or [`ReconcileError::Panicked`].
pub(crate) async fn alone(
    reconcile: impl Future<Output = Result<Action, ReconcileError>>,
) -> Result<Action, ReconcileError> {
    AssertUnwindSafe(reconcile).catch_unwind().await.unwrap_or(Err(ReconcileError::Panicked))
}

/// When to try again after an error, which is logged with its causes.
pub(crate) fn again(kind: &'static str, object: &Uid, error: &ReconcileError, pauses: &Pauses) -> Action {
    let pause = match error {
        ReconcileError::Write(WriteError::Conflict) => AT_ONCE,
        ReconcileError::Write(WriteError::Throttled(pause)) => *pause,
        ReconcileError::Write(_) | ReconcileError::Read { .. } | ReconcileError::Panicked => {
            pauses.fail(object, Timestamp::now()).unsigned_abs()
        }
    };
    tracing::warn!(kind, uid = object.as_str(), error = story(error), ?pause, "reconcile failed");
    Action::requeue(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_one_reconcile() {
        let panicking = async { panic!("a fault") };
        assert!(matches!(alone(panicking).await, Err(ReconcileError::Panicked)));
        let good = async { Ok(Action::await_change()) };
        assert_eq!(alone(good).await.expect("no error"), Action::await_change());
    }

    #[test]
    fn the_pause_follows_the_error() {
        let (pauses, uid) = (Pauses::default(), Uid::from("a"));
        let pause = |error: WriteError| again("Session", &uid, &error.into(), &pauses);
        assert_eq!(pause(WriteError::Conflict), Action::requeue(AT_ONCE));
        let asked = Duration::from_secs(7);
        assert_eq!(pause(WriteError::Throttled(asked)), Action::requeue(asked));
        assert_eq!(pause(WriteError::NoClass), Action::requeue(Duration::from_millis(250)));
    }
}
