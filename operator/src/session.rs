//! Sessions: observe, plan, act, until there is nothing left to do.

mod act;
mod claim;
mod observed;
mod plan;
mod pod;
mod secret;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt as _};
use mooring_operator_api::session::{EnvironmentKind, SessionStatus};
use mooring_operator_api::{Session, Uid};
use tracing::Instrument as _;

use crate::certificate::{RENEWED_AFTER, Role, is_fresh};
use crate::context::Context;
use crate::names;
use crate::reconcile::{ReconcileError, again};
use crate::refusal::{Generations, Refused};
use crate::write::WriteError;

pub(crate) use observed::class_name;
pub(crate) use observed::is_ready as node_is_ready;
pub(crate) use observed::pod::Cause;
pub(crate) use plan::{Notice, Step, environment};
pub(crate) use pod::trial_pod;

use observed::{ClaimFacts, Observed, SecretFacts};

/// Rounds of one reconcile: a start needs four, everything else fewer. More means that we and somebody else disagree.
const ROUNDS: usize = 16;
/// After [`ROUNDS`], others have their turn first.
const TURN: Duration = Duration::from_secs(1);

/// Brings one Session as far as it goes now. Level-based: everything is recomputed from what is observed.
///
/// Cancellation is safe between any two writes: the next reconcile goes on from what there is.
///
/// # Errors
/// See [`ReconcileError`].
pub(crate) async fn reconcile(session: Arc<Session>, ctx: Arc<Context>) -> Result<Action, ReconcileError> {
    let name = ObjectRef::from_obj(&*session);
    let span = tracing::info_span!(
        "session",
        namespace = name.namespace.as_deref().unwrap_or_default(),
        name = name.name,
        generation = session.metadata.generation,
    );
    Reconcile { ctx, name, secret: None }.run().instrument(span).await
}

/// When to try again after an error.
#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
pub(crate) fn error_policy(session: Arc<Session>, error: &ReconcileError, ctx: Arc<Context>) -> Action {
    again("Session", &Uid::from(session.uid().unwrap_or_default()), error, &ctx.pauses)
}

struct Reconcile {
    ctx: Arc<Context>,
    name: ObjectRef<Session>,
    /// The Secret of this epoch, once it was read or written in this reconcile.
    secret: Option<(i64, SecretFacts)>,
}

impl Reconcile {
    async fn run(mut self) -> Result<Action, ReconcileError> {
        if !self.ctx.caches.are_complete() {
            // Everything is reconciled once they are.
            return Ok(Action::await_change());
        }
        for _ in 0..ROUNDS {
            let now = Timestamp::now();
            let Some(mut seen) = Observed::read(&self.ctx.caches, &self.name, &self.ctx.namespace) else {
                return Ok(Action::await_change());
            };
            let uid = Uid::from(seen.session.uid().unwrap_or_default());
            let generations = generations(&seen);
            self.look_closer(&mut seen, now).await?;
            seen.dial = self.ctx.dials.of(&uid);
            seen.refused = self.ctx.pauses.refused(&uid, generations, now);
            let plan = plan::plan(&seen, now);
            if plan.steps.is_empty() {
                if seen.refused.is_none() {
                    self.ctx.pauses.clear(&uid);
                }
                return Ok(plan.until.map_or_else(Action::await_change, |at| requeue(at, now)));
            }
            let outcome = act::act(&self.ctx, &seen, &plan.steps, now).await;
            self.secret = outcome.secret.or(self.secret.take());
            if matches!(outcome.error, None | Some(WriteError::Refused { .. })) {
                for notice in plan.notices {
                    self.ctx.events.publish(&*seen.session, notice);
                }
            }
            match outcome.error {
                None => self.ctx.pauses.progress(&uid),
                Some(WriteError::Refused { step, cause }) => {
                    let Refused { cause, .. } = self.ctx.pauses.refuse(&uid, (step, cause), generations, now);
                    tracing::info!(reason = cause.reason.as_str(), message = cause.message, "refused");
                }
                // The next round sees the version that was read.
                Some(WriteError::Conflict) => act::refresh(&self.ctx, &self.name).await?,
                Some(error) => return Err(error.into()),
            }
        }
        Ok(Action::requeue(TURN))
    }

    /// Reads what is not watched, where the plan depends on it.
    async fn look_closer(&mut self, seen: &mut Observed, now: Timestamp) -> Result<(), ReconcileError> {
        let status = seen.session.status.clone().unwrap_or_default();
        if needs_secret(seen, &status, now) {
            seen.secret = self.read_secret(seen, status.epoch.unwrap_or(0), now).await?;
        }
        self.look_for_pod(seen, &status).await?;
        let was_bound = status.environment.is_some_and(|it| it.kind == EnvironmentKind::Kubernetes);
        if was_bound && seen.claim == ClaimFacts::Absent && observed::deleted_at(&seen.session).is_none() {
            // What follows from its absence cannot be taken back, so it is not believed from a cache.
            let namespace = seen.session.namespace().unwrap_or_default();
            let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.ctx.client.clone(), &namespace);
            let name = names::claim(&Uid::from(seen.session.uid().unwrap_or_default()));
            let read =
                claims.get_opt(&name).await.map_err(|source| ReconcileError::read("the claim", source))?;
            if let Some(claim) = read {
                seen.claim =
                    observed::claim_facts(&claim, &Uid::from(seen.session.uid().unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// A pod whose labels somebody changed is shown by no watch, and may run on.
    async fn look_for_pod(&self, seen: &mut Observed, status: &SessionStatus) -> Result<(), ReconcileError> {
        let Some(epoch) = status.epoch else { return Ok(()) };
        if !may_be_hidden(seen, status, epoch) {
            return Ok(());
        }
        let (namespace, uid) =
            (seen.session.namespace().unwrap_or_default(), seen.session.uid().unwrap_or_default());
        let pods: Api<Pod> = Api::namespaced(self.ctx.client.clone(), &namespace);
        let name = names::pod(&Uid::from(uid.as_str()), epoch);
        let read = pods.get_opt(&name).await.map_err(|source| ReconcileError::read("the pod", source))?;
        seen.pods.retain(|pod| pod.epoch != epoch);
        if let Some(pod) = read.filter(|pod| crate::labels::is_of(&pod.metadata, &uid)) {
            seen.pods.push(observed::pod::read(&pod, |node| observed::is_silent(&self.ctx.caches, node)));
        }
        Ok(())
    }

    async fn read_secret(
        &mut self,
        seen: &Observed,
        epoch: i64,
        now: Timestamp,
    ) -> Result<SecretFacts, ReconcileError> {
        if let Some((known, facts)) = &self.secret
            && *known == epoch
        {
            return Ok(facts.clone());
        }
        let namespace = seen.session.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.ctx.client.clone(), &namespace);
        let name = names::pod(&Uid::from(seen.session.uid().unwrap_or_default()), epoch);
        let read =
            secrets.get_opt(&name).await.map_err(|source| ReconcileError::read("the Secret", source))?;
        let facts = read.map_or(SecretFacts::Absent, |secret| {
            secret_facts(&secret, &seen.session, &self.ctx.authority, now)
        });
        self.secret = Some((epoch, facts.clone()));
        Ok(facts)
    }
}

/// What a Secret under the name of a Session's pod is.
fn secret_facts(
    secret: &Secret,
    session: &Session,
    authority: &crate::certificate::Authority,
    now: Timestamp,
) -> SecretFacts {
    let (name, namespace) = (secret.name_any(), session.namespace().unwrap_or_default());
    let uid = session.uid().unwrap_or_default();
    if !crate::labels::is_of(&secret.metadata, &uid) {
        SecretFacts::Foreign
    } else if is_fresh(secret, authority, Role::Executor { pod: &name, namespace: &namespace }, now) {
        SecretFacts::Fresh
    } else {
        SecretFacts::Stale
    }
}

/// Whether a pod of the present epoch that is not seen would be a loss, or hold up the next one.
fn may_be_hidden(seen: &Observed, status: &SessionStatus, epoch: i64) -> bool {
    let is_clearing = status
        .operation
        .as_ref()
        .is_some_and(|it| it.step == mooring_operator_api::session::OperationStep::DeletePod);
    // What a write of ours has shown of such a pod is not what became of it.
    let is_seen = seen.pods.iter().any(|pod| pod.epoch == epoch && pod.is_watched);
    (status.executor.is_some() || is_clearing) && !is_seen
}

/// While an executor is bound, nothing depends on its Secret until the certificate is due for renewal.
fn needs_secret(seen: &Observed, status: &SessionStatus, now: Timestamp) -> bool {
    let Some(epoch) = status.epoch else { return false };
    if observed::deleted_at(&seen.session).is_some() || seen.session.spec.suspended {
        return true;
    }
    let pod = seen.pods.iter().find(|pod| pod.epoch == epoch);
    match (&status.operation, pod) {
        (Some(operation), Some(pod)) => {
            operation.step == mooring_operator_api::session::OperationStep::DeletePod || pod.loss().is_some()
        }
        (None, Some(pod)) if status.executor.is_some() => {
            now.duration_since(pod.created)
                >= SignedDuration::try_from(RENEWED_AFTER).unwrap_or(SignedDuration::MAX)
        }
        (Some(_) | None, None) | (None, Some(_)) => true,
    }
}

fn generations(seen: &Observed) -> Generations {
    let class = seen.class.as_ref().and_then(|class| class.metadata.generation);
    (seen.session.metadata.generation.unwrap_or(0), class.unwrap_or(0))
}

fn requeue(at: Timestamp, now: Timestamp) -> Action {
    Action::requeue(at.duration_since(now).max(SignedDuration::ZERO).unsigned_abs())
}
