//! Carrying out steps. Only here is anything written.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use mooring_operator_api::session::SessionStatus;
use mooring_operator_api::{ExecutorClass, Session, Uid, label};
use serde_json::json;

use super::claim::{Access, RETAINED, Revision, desired_claim};
use super::observed::{ClaimFacts, Observed, SecretFacts, claim_facts};
use super::plan::Step;
use super::pod::desired_pod;
use super::secret::desired_secret;
use super::secret_facts;
use crate::cache::{Cache, Object};
use crate::class::policy::desired_policy;
use crate::context::Context;
use crate::reconcile::ReconcileError;
use crate::refusal::{self, Refusable};
use crate::write::{self, WriteError};
use crate::{FIELD_MANAGER, labels, names};

/// What came of a round.
pub(super) struct Outcome {
    /// The Secret, where the round wrote it.
    pub(super) secret: Option<(i64, SecretFacts)>,
    /// The first error, worst first.
    pub(super) error: Option<WriteError>,
}

/// Carries out the steps of one round, all at once.
pub(super) async fn act(ctx: &Context, seen: &Observed, steps: &[Step], now: Timestamp) -> Outcome {
    let hand = Hand { ctx, seen, namespace: seen.session.namespace().unwrap_or_default(), now };
    let results = join_all(steps.iter().map(|step| hand.carry_out(step))).await;
    let mut outcome = Outcome { secret: None, error: None };
    for (step, result) in steps.iter().zip(results) {
        match result {
            Ok(secret) => {
                tracing::debug!(step = step.name(), "done");
                outcome.secret = secret.or(outcome.secret);
            }
            // A refusal is told, so anything else comes first: it would be lost behind it.
            Err(error) => {
                let is_worse = !matches!(error, WriteError::Refused { .. });
                if outcome.error.is_none() || is_worse {
                    outcome.error = Some(error);
                }
            }
        }
    }
    outcome
}

/// Reads the Session past the caches, after a conflict.
pub(super) async fn refresh(ctx: &Context, name: &ObjectRef<Session>) -> Result<(), ReconcileError> {
    let sessions: Api<Session> =
        Api::namespaced(ctx.client.clone(), name.namespace.as_deref().unwrap_or_default());
    if let Some(session) =
        sessions.get_opt(&name.name).await.map_err(|source| ReconcileError::read("the Session", source))?
    {
        ctx.caches.sessions.wrote(session);
    }
    Ok(())
}

type Written = Result<Option<(i64, SecretFacts)>, WriteError>;

/// Writes for one Session.
struct Hand<'a> {
    ctx: &'a Context,
    seen: &'a Observed,
    namespace: String,
    now: Timestamp,
}

impl Hand<'_> {
    async fn carry_out(&self, step: &Step) -> Written {
        match step {
            Step::AddFinalizer => self.set_finalizer(true).await?,
            Step::RemoveFinalizer => return self.finish().await,
            Step::WriteStatus(status) => self.write_status(status).await?,
            Step::CreateClaim(access) => self.create_claim(*access).await?,
            Step::DeleteClaim(uid) => self.delete_claim(uid).await?,
            Step::RetainClaim(uid) => self.retain_claim(uid).await?,
            Step::ApplyPolicy => self.apply_policy().await?,
            Step::CreateSecret(epoch) => return self.create_secret(*epoch).await,
            Step::RenewSecret(epoch) => return self.renew_secret(*epoch).await,
            Step::DeleteSecret(epoch) => {
                self.delete_secret(&names::pod(&self.uid(), *epoch)).await?;
                return Ok(Some((*epoch, SecretFacts::Absent)));
            }
            Step::CreatePod(epoch) => self.create_pod(*epoch).await?,
            Step::DeletePod { name, uid } => {
                self.delete_secret(name).await?;
                self.delete(&self.ctx.caches.pods, name, uid).await?;
            }
            Step::Dial(target) => {
                self.ctx.dials.dial(&self.seen.session, self.class()?, target.clone());
            }
            Step::HangUp => self.ctx.dials.hang_up(&self.uid()),
        }
        Ok(None)
    }

    fn uid(&self) -> Uid {
        Uid::from(self.seen.session.uid().unwrap_or_default())
    }

    fn class(&self) -> Result<&Arc<ExecutorClass>, WriteError> {
        self.seen.class.as_ref().ok_or(WriteError::NoClass)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.ctx.client.clone(), &self.namespace)
    }

    async fn set_finalizer(&self, wanted: bool) -> Result<(), WriteError> {
        match write::finalizer(&self.ctx.client, &*self.seen.session, label::FINALIZER, wanted).await {
            Ok(session) => self.ctx.caches.sessions.wrote(session),
            Err(kube::Error::Api(status)) if status.is_not_found() => self.forget(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The last step of a deletion: only if the claim is what it should be, read past the caches.
    async fn finish(&self) -> Written {
        let api = self.api::<PersistentVolumeClaim>();
        if let Some(claim) = api.get_opt(&names::claim(&self.uid())).await? {
            let facts = claim_facts(&claim, &self.uid());
            if facts != ClaimFacts::Foreign && facts != self.seen.claim {
                self.ctx.caches.claims.wrote(claim);
                return Err(WriteError::Conflict);
            }
        }
        self.set_finalizer(false).await?;
        if self.seen.session.finalizers().iter().all(|it| it == label::FINALIZER) {
            self.forget();
        }
        Ok(None)
    }

    /// The Session is gone.
    fn forget(&self) {
        self.ctx.dials.hang_up(&self.uid());
        self.ctx.pauses.clear(&self.uid());
        self.ctx.caches.sessions.deleted(ObjectRef::from_obj(&*self.seen.session), self.uid().as_str());
    }

    /// Over the version that was planned from: an epoch is never set back.
    async fn write_status(&self, status: &SessionStatus) -> Result<(), WriteError> {
        // The last activity is the harness's.
        let ours = SessionStatus { last_activity: None, ..status.clone() };
        match write::status(&self.ctx.client, &*self.seen.session, &ours).await {
            Ok(written) => {
                tracing::info!(
                    epoch = status.epoch,
                    ready = ready_reason(status),
                    operation = status.operation.as_ref().map(|it| it.id.as_str()),
                    "status written"
                );
                self.ctx.caches.sessions.wrote(written);
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.forget();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn create_claim(&self, access: Access) -> Result<(), WriteError> {
        let class = self.class()?;
        let revision = Revision::draw().map_err(WriteError::Randomness)?;
        let claim = desired_claim(&self.seen.session, class, access, &revision);
        let uid = self.uid();
        let is_ours = |found: &PersistentVolumeClaim| {
            found.labels().get(label::SESSION_UID).map(String::as_str) == Some(uid.as_str())
        };
        let made = self.create(Refusable::Claim, &claim, is_ours).await?;
        self.ctx.caches.claims.wrote(made);
        Ok(())
    }

    async fn create_pod(&self, epoch: i64) -> Result<(), WriteError> {
        let pod = desired_pod(&self.seen.session, self.class()?, epoch);
        let uid = self.uid();
        let is_ours = |found: &Pod| labels::is_of(&found.metadata, uid.as_str());
        let made = self.create(Refusable::Pod, &pod, is_ours).await?;
        tracing::info!(epoch, pod = made.name_any(), "pod made");
        self.ctx.caches.pods.wrote(made);
        Ok(())
    }

    async fn create_secret(&self, epoch: i64) -> Written {
        let secret = desired_secret(&self.seen.session, epoch, &self.ctx.authority, self.now)?;
        let uid = self.uid();
        let is_ours = |found: &Secret| labels::is_of(&found.metadata, uid.as_str());
        let made = self.create(Refusable::Secret, &secret, is_ours).await?;
        Ok(Some((epoch, secret_facts(&made, &self.seen.session, &self.ctx.authority, self.now))))
    }

    /// Creates an object, or finds it made already by us: a repeated create is the read that resolves an earlier one whose
    /// answer was lost.
    async fn create<K>(
        &self,
        step: Refusable,
        object: &K,
        is_ours: impl Fn(&K) -> bool,
    ) -> Result<K, WriteError>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let api = self.api::<K>();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let status = match api.create(&params, object).await {
            Ok(made) => return Ok(made),
            Err(kube::Error::Api(status)) => status,
            Err(error) => return Err(error.into()),
        };
        if status.is_already_exists() {
            let name = object.name_any();
            return match api.get_opt(&name).await? {
                Some(found) if is_ours(&found) => Ok(found),
                Some(_) => Err(WriteError::Refused { step, cause: refusal::conflict(step, &name) }),
                // Gone again.
                None => Err(WriteError::Conflict),
            };
        }
        Err(refused(step, status))
    }

    async fn apply_policy(&self) -> Result<(), WriteError> {
        Ok(write::network_policy(self.ctx, &desired_policy(self.class()?, &self.ctx.namespace)).await?)
    }

    async fn renew_secret(&self, epoch: i64) -> Written {
        let api = self.api::<Secret>();
        let name = names::pod(&self.uid(), epoch);
        let Some(mut secret) = api.get_opt(&name).await? else {
            return Ok(Some((epoch, SecretFacts::Absent)));
        };
        if !labels::is_of(&secret.metadata, self.uid().as_str()) {
            return Ok(Some((epoch, SecretFacts::Foreign)));
        }
        let renewed = desired_secret(&self.seen.session, epoch, &self.ctx.authority, self.now)?;
        secret.data = renewed.data;
        // Over the version that was read.
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        api.replace(&name, &params, &secret).await?;
        tracing::info!(secret = name, "certificate renewed");
        Ok(Some((epoch, SecretFacts::Fresh)))
    }

    async fn delete_claim(&self, uid: &Uid) -> Result<(), WriteError> {
        let name = names::claim(&self.uid());
        tracing::info!(claim = name, uid = uid.as_str(), "volume claim deleted");
        self.delete(&self.ctx.caches.claims, &name, uid).await
    }

    async fn retain_claim(&self, uid: &Uid) -> Result<(), WriteError> {
        let name = names::claim(&self.uid());
        let api = self.api::<PersistentVolumeClaim>();
        let Some(claim) = api.get_opt(&name).await? else { return Ok(()) };
        if claim.uid().as_deref() != Some(uid.as_str()) {
            return Err(WriteError::Conflict);
        }
        let patch = json!({"metadata": {
            "resourceVersion": claim.resource_version(),
            "labels": {RETAINED: "true"},
        }});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let kept = api.patch(&name, &params, &Patch::Merge(&patch)).await?;
        self.ctx.caches.claims.wrote(kept);
        Ok(())
    }

    async fn delete_secret(&self, name: &str) -> Result<(), WriteError> {
        let api = self.api::<Secret>();
        let Some(secret) = api.get_metadata_opt(name).await? else { return Ok(()) };
        if !labels::is_of(&secret.metadata, self.uid().as_str()) {
            return Ok(());
        }
        match api.delete(name, &only(secret.uid().unwrap_or_default())).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes the object with this UID; one that is gone or another one already is no error.
    async fn delete<K>(&self, cache: &Cache<K>, name: &str, uid: &Uid) -> Result<(), WriteError>
    where
        K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope> + serde::de::DeserializeOwned,
    {
        let gone = || cache.deleted(ObjectRef::new(name).within(&self.namespace), uid.as_str());
        match self.api::<K>().delete(name, &only(uid.to_string())).await {
            Ok(answer) => match answer.left() {
                // It ends in its own time.
                Some(object) if object.meta().deletion_timestamp.is_some() => cache.wrote(object),
                Some(_) | None => gone(),
            },
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => gone(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// A delete of one object and no other that has its name.
fn only(uid: String) -> DeleteParams {
    DeleteParams::default().preconditions(Preconditions { uid: Some(uid), resource_version: None })
}

fn refused(step: Refusable, status: Box<Status>) -> WriteError {
    match refusal::cause(step, &status) {
        Some(cause) => WriteError::Refused { step, cause },
        None => kube::Error::Api(status).into(),
    }
}

fn ready_reason(status: &SessionStatus) -> Option<&str> {
    status.conditions.iter().find(|it| it.type_ == "Ready").map(|it| it.reason.as_str())
}
