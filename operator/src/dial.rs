//! Reaching an executor and binding it: one task for each Session that is being started, none for one that is ready.
//!
//! ```text
//!  plan ─▶ Step::Dial ─▶ Dials::dial ─▶ task: connect, Bind, again after a pause … ─▶ Dial {target, progress}
//!    ▲                                                                                   │ observed, and a nudge
//!    └───────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! What comes of it is in memory alone. Bind is idempotent, so after a restart of the operator it is asked again.

mod attempt;
mod request;
mod variables;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::runtime::reflector::ObjectRef;
use mooring_operator_api::{ExecutorClass, Session, Uid};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::certificate::{Authority, Credential, RENEWED_AFTER, Role};
use crate::session::Cause;
use attempt::Failure;

/// Attempts that are under way at once.
const ATTEMPTS: usize = 64;
/// Between the first attempt and the second; each pause is half as long again.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause while the executor may only be slow to start.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// From then on an executor that cannot be reached is a fact worth telling.
const QUIET: Duration = Duration::from_secs(3);
/// How often the text of one and the same reason may change.
const RETOLD: Duration = Duration::from_secs(15);

/// An executor to bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The pod's name, which its certificate has.
    pub(crate) pod: String,
    /// The pod's UID: another pod is another target.
    pub(crate) pod_uid: Uid,
    /// The epoch to bind it under.
    pub(crate) epoch: i64,
    /// Where it is.
    pub(crate) address: IpAddr,
    /// The revision of the environment on its volume.
    pub(crate) revision: String,
    /// No Bind of this environment was ever acknowledged.
    pub(crate) may_be_new: bool,
    /// The generations of Session and class that limits and variables are taken from.
    pub(crate) generations: (i64, i64),
}

/// What came of dialling, so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dial {
    /// Whom.
    pub(crate) target: Target,
    /// How far it is.
    pub(crate) progress: Progress,
}

/// How far a dial is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It goes on; with the reason why it has not succeeded, once that is worth telling.
    Trying(Option<Cause>),
    /// The executor is bound.
    Bound(Answer),
    /// The executor will not be bound so, however often it is asked.
    Refused(BindRefusal),
}

/// What a bound executor says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Of its process.
    pub(crate) boot_id: String,
    /// Landlock ABI that confines its commands; 0 when nothing does.
    pub(crate) landlock: i32,
}

/// Why an executor will not be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindRefusal {
    /// The volume has seen this epoch under another process.
    StaleEpoch {
        /// The highest it has seen.
        current: i64,
    },
    /// It is bound with other limits or variables.
    OtherArguments,
    /// The volume holds nothing, though it was bound before.
    EmptyWorkspace,
}

/// All dials. Clones are the same.
#[derive(Clone)]
pub(crate) struct Dials {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    authority: Arc<Authority>,
    own: Mutex<Option<(Arc<Credential>, Timestamp)>>,
    live: Mutex<HashMap<Uid, Live>>,
    attempts: Semaphore,
    nudges: mpsc::Sender<ObjectRef<Session>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

struct Live {
    dial: Dial,
    stop: CancellationToken,
}

impl Dials {
    /// No dial yet. Each change of one is told to `nudges`; all of them end with `stop`.
    pub(crate) fn new(
        client: Client,
        authority: Arc<Authority>,
        nudges: mpsc::Sender<ObjectRef<Session>>,
        stop: CancellationToken,
    ) -> Self {
        let shared = Shared {
            client,
            authority,
            own: Mutex::default(),
            live: Mutex::default(),
            attempts: Semaphore::new(ATTEMPTS),
            nudges,
            tasks: TaskTracker::new(),
            stop,
        };
        Self { shared: Arc::new(shared) }
    }

    /// What came of dialling for this Session.
    pub(crate) fn of(&self, session: &Uid) -> Option<Dial> {
        self.live().get(session).map(|live| live.dial.clone())
    }

    /// Dials this target for this Session, instead of any other.
    pub(crate) fn dial(&self, session: &Arc<Session>, class: &Arc<ExecutorClass>, target: Target) {
        let uid = Uid::from(session.metadata.uid.clone().unwrap_or_default());
        let stop = self.shared.stop.child_token();
        let dial = Dial { target: target.clone(), progress: Progress::Trying(None) };
        if let Some(before) = self.live().insert(uid.clone(), Live { dial, stop: stop.clone() }) {
            before.stop.cancel();
        }
        let call =
            Call { dials: self.clone(), session: Arc::clone(session), class: Arc::clone(class), uid, target };
        self.shared.tasks.spawn(async move {
            tokio::select! { () = stop.cancelled() => {}, () = call.until_settled() => {} }
        });
    }

    /// Ends the dial for this Session and forgets what came of it.
    pub(crate) fn hang_up(&self, session: &Uid) {
        if let Some(live) = self.live().remove(session) {
            live.stop.cancel();
        }
    }

    /// Waits until no task is left. `stop` must have been cancelled.
    pub(crate) async fn ended(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Uid, Live>> {
        self.shared.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operator's own certificate, in memory alone, issued anew when it is due.
    fn own_credential(&self, now: Timestamp) -> Option<Arc<Credential>> {
        let mut own = self.shared.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((credential, issued)) = own.as_ref()
            && now.duration_since(*issued).unsigned_abs() < RENEWED_AFTER
        {
            return Some(Arc::clone(credential));
        }
        let credential = Arc::new(self.shared.authority.issue(Role::Operator, now).ok()?);
        *own = Some((Arc::clone(&credential), now));
        Some(credential)
    }
}

/// One task.
struct Call {
    dials: Dials,
    session: Arc<Session>,
    class: Arc<ExecutorClass>,
    uid: Uid,
    target: Target,
}

impl Call {
    async fn until_settled(self) {
        let began = Instant::now();
        let (mut pause, mut told_at) = (FIRST_PAUSE, None::<Instant>);
        loop {
            match self.attempt().await {
                Ok(answer) => return self.tell(Progress::Bound(answer)).await,
                Err(Failure::Refused(refusal)) => return self.tell(Progress::Refused(refusal)).await,
                Err(Failure::Again { cause, after }) => {
                    let is_due =
                        told_at.is_none_or(|at| at.elapsed() > RETOLD) || self.tells_other_than(&cause);
                    // What has a pause of its own is no executor that is slow to start.
                    if is_due && (after.is_some() || began.elapsed() > QUIET) {
                        told_at = Some(Instant::now());
                        self.tell(Progress::Trying(Some(cause))).await;
                    }
                    tokio::time::sleep(after.unwrap_or(pause)).await;
                    pause = (pause * 3 / 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn attempt(&self) -> Result<Answer, Failure> {
        let Ok(_permit) = self.dials.shared.attempts.acquire().await else { return Err(Failure::closed()) };
        let now = Timestamp::now();
        let own = self.dials.own_credential(now).ok_or_else(Failure::closed)?;
        let namespace = self.session.metadata.namespace.as_deref().unwrap_or_default();
        let trust = self.dials.shared.authority.certificate();
        let channel = attempt::connect(&self.target, namespace, trust, &own).await?;
        // Read for an executor that is there, not at every attempt to reach it.
        let secret =
            variables::from_secrets(&self.dials.shared.client, namespace, &self.session.spec).await?;
        let request = request::bind(&self.session, &self.class.spec, &self.target, secret);
        attempt::bind(channel, request).await
    }

    fn tells_other_than(&self, cause: &Cause) -> bool {
        self.dials.live().get(&self.uid).is_some_and(|live| match &live.dial.progress {
            Progress::Trying(Some(told)) => told.reason != cause.reason,
            Progress::Trying(None) | Progress::Bound(_) | Progress::Refused(_) => true,
        })
    }

    /// Unless another dial has taken its place.
    async fn tell(&self, progress: Progress) {
        {
            let mut live = self.dials.live();
            let Some(live) = live.get_mut(&self.uid).filter(|live| live.dial.target == self.target) else {
                return;
            };
            if live.dial.progress == progress {
                return;
            }
            live.dial.progress = progress;
        }
        // Closed only when the operator ends.
        let _ = self.dials.shared.nudges.send(ObjectRef::from_obj(&*self.session)).await;
    }
}
