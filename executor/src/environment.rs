//! What Bind made: one environment with an exact identity, and the way every call enters it.

mod binding;
mod fence;
mod identity;
mod lease;
mod site;
mod state;
mod variables;
mod workspace;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mooring_proto::v1::{self, RequestContext, actor};
use tokio::sync::{Mutex, OnceCell};
use tokio_util::task::TaskTracker;
use tonic::Status;

pub use binding::{BindError, Bound, Limits};
pub use identity::{BootId, Epoch, Identity};
pub use lease::LeaseError;
pub use site::{Site, Volume};
pub(crate) use variables::check_variables;
pub use variables::{Variable, Variables};
pub use workspace::{Workspace, WorkspaceId};

use crate::operation::{ArgumentsDigest, OperationId};
use crate::telemetry::Tally;

/// The executor's one environment, empty until it is bound.
#[derive(Debug)]
pub struct Environment {
    boot_id: BootId,
    site: Site,
    bound: OnceCell<Arc<Bound>>,
    binding: Mutex<()>,
    draining: AtomicBool,
    tasks: TaskTracker,
    /// Calls that were meant for another environment.
    misdirected: Tally,
}

/// What a call wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Looks only. Never fences, is never fenced, needs no operation id, and goes on while the executor drains.
    Read,
    /// Changes something: needs an operation id and, from a harness, a lease that is not overtaken.
    Effect,
}

/// On whose behalf a call is made, as the read ledger tells actors apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ActorKey {
    /// The harness, for this session. Whoever holds the lease next goes on with what was read under it.
    Session(Arc<str>),
    /// A person, by Kubernetes user name.
    Person(Arc<str>),
}

/// A call that was let in.
#[derive(Clone, Debug)]
pub struct Call {
    /// The environment it entered.
    pub bound: Arc<Bound>,
    /// The workspace it works in.
    pub workspace: Arc<Workspace>,
    /// On whose behalf.
    pub actor: ActorKey,
    /// Always there after [`Access::Effect`], never after [`Access::Read`].
    pub operation_id: Option<OperationId>,
}

/// Why a call was not let in.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// A part of the context is absent, too long or malformed.
    #[error("context: {0}")]
    Malformed(&'static str),
    /// Nothing was bound yet, or another environment is meant.
    #[error("no such environment here")]
    WrongEnvironment,
    /// The environment was bound again since.
    #[error("stale epoch: have {have}, current is {current}")]
    StaleEpoch {
        /// As the caller has it.
        have: u64,
        /// As it is bound.
        current: u64,
    },
    /// No workspace of that id.
    #[error("no such workspace")]
    UnknownWorkspace,
    /// The executor is shutting down.
    #[error("the executor is shutting down")]
    Draining,
    /// The lease is overtaken, or cannot be kept.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl Environment {
    /// An unbound environment of the process `boot_id`, to be kept at `site`.
    pub fn new(boot_id: BootId, site: Site) -> Arc<Self> {
        Arc::new(Self {
            boot_id,
            site,
            bound: OnceCell::new(),
            binding: Mutex::const_new(()),
            draining: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            misdirected: Tally::default(),
        })
    }

    /// Of this process.
    pub fn boot_id(&self) -> &BootId {
        &self.boot_id
    }

    /// What was bound, if anything was.
    pub fn bound(&self) -> Option<&Arc<Bound>> {
        self.bound.get()
    }

    /// Refuses effects from now on. What already runs is left alone.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether effects are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Where the work of operations runs.
    pub fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Lets a call in, or says why not.
    ///
    /// Kind, id and revision are compared exactly, then the epoch. A harness's effect under a higher lease epoch than
    /// any before is let in only after that epoch is on disk. Cancellation is safe.
    ///
    /// # Errors
    /// [`EnterError::WrongEnvironment`] before Bind and for any other environment, known or not;
    /// [`EnterError::StaleEpoch`], [`EnterError::UnknownWorkspace`], [`EnterError::Malformed`]; for effects alone
    /// [`EnterError::Draining`] and [`EnterError::Lease`].
    pub async fn enter(&self, context: Option<&RequestContext>, access: Access) -> Result<Call, EnterError> {
        let context = context.ok_or(EnterError::Malformed("absent"))?;
        let bound = self.bound().filter(|bound| bound.identity.is(context.environment.as_ref()));
        let bound = bound.ok_or_else(|| self.misdirected())?;
        if context.epoch != bound.epoch.get() {
            return Err(EnterError::StaleEpoch { have: context.epoch, current: bound.epoch.get() });
        }
        let workspace = bound.workspace(&context.workspace_id)?;
        let (actor, lease_epoch) = parse_actor(context.actor.as_ref())?;
        let operation_id = match access {
            Access::Read => None,
            Access::Effect => {
                if self.is_draining() {
                    return Err(EnterError::Draining);
                }
                let id = OperationId::parse(&context.operation_id)
                    .ok_or(EnterError::Malformed("operation_id has 1..=128 of [A-Za-z0-9_-]"))?;
                if let (ActorKey::Session(session), Some(lease_epoch)) = (&actor, lease_epoch) {
                    bound.leases.admit(session, lease_epoch).await?;
                }
                Some(id)
            }
        };
        Ok(Call { bound: Arc::clone(bound), workspace, actor, operation_id })
    }

    fn misdirected(&self) -> EnterError {
        if let Some(count) = self.misdirected.note() {
            tracing::warn!(count, "calls for an environment that is not here were refused");
        }
        EnterError::WrongEnvironment
    }
}

impl Call {
    /// Does `work` once under the call's operation id; see [`Operations::run`](crate::operation::Operations::run).
    ///
    /// # Errors
    /// Those of `Operations::run`; `internal` when the call entered for [`Access::Read`].
    pub async fn once<T, F>(&self, arguments: ArgumentsDigest, work: F) -> Result<T, Status>
    where
        T: prost::Message + Default,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let id = self.operation_id.clone().ok_or_else(|| {
            mooring_proto::refusal(v1::ErrorCode::Internal, "an effect was entered as a read", [])
        })?;
        self.workspace.operations.run(id, arguments, work).await
    }
}

fn parse_actor(actor: Option<&v1::Actor>) -> Result<(ActorKey, Option<u64>), EnterError> {
    const ABSENT: EnterError = EnterError::Malformed("actor is absent");
    let is_name = |name: &str| (1..=253).contains(&name.len());
    match actor.and_then(|actor| actor.actor.as_ref()).ok_or(ABSENT)? {
        actor::Actor::Lease(lease) => {
            if !is_name(&lease.session_id) {
                return Err(EnterError::Malformed("session_id has 1..=253 bytes"));
            }
            if lease.lease_epoch == 0 || i64::try_from(lease.lease_epoch).is_err() {
                return Err(EnterError::Malformed("lease_epoch is 1..=2^63-1"));
            }
            Ok((ActorKey::Session(lease.session_id.as_str().into()), Some(lease.lease_epoch)))
        }
        actor::Actor::Person(person) if is_name(&person.name) => {
            Ok((ActorKey::Person(person.name.as_str().into()), None))
        }
        actor::Actor::Person(_) => Err(EnterError::Malformed("a person's name has 1..=253 bytes")),
    }
}
