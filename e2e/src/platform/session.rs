//! One Session, from kubectl to its executor.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::api::DynamicObject;
use mooring_proto::certificate;
use mooring_proto::v1::EnvironmentRef;
use serde_json::Value;

use super::status::VolumeClaim;
use super::{Namespace, Product, SessionStatus, Sighting, Watch};
use crate::execution::{Executor, Identity, Target};

/// From the apply to Ready on a busy machine: volume, pod, Bind.
const READY_DEADLINE: Duration = Duration::from_mins(2);

/// A Session that is watched from its creation.
pub struct Session {
    /// Where it is.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
    watch: Watch<DynamicObject>,
}

/// A Session that is Ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The environment.
    pub environment: EnvironmentRef,
    /// The epoch.
    pub epoch: u64,
    /// The executor.
    pub executor: super::Executor,
    /// The claim of its volume.
    pub claim: VolumeClaim,
}

impl Session {
    /// Applies one with kubectl, with the class `default` and an empty workspace unless `spec` says otherwise.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply(namespace: &Namespace, name: &str, spec: &Value) -> anyhow::Result<Self> {
        let session = Self::open(namespace, name);
        session.change(spec).await?;
        Ok(session)
    }

    /// One that is there already, or comes.
    pub fn open(namespace: &Namespace, name: &str) -> Self {
        let watch = Watch::of(namespace.ground.sessions(&namespace.name), name);
        Self { namespace: namespace.clone(), name: name.to_owned(), watch }
    }

    /// Applies it again with another `spec`; the cluster's admin is the owner.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn change(&self, spec: &Value) -> anyhow::Result<()> {
        self.namespace.apply("Session", &self.name, spec).await
    }

    /// Waits until it is Ready.
    ///
    /// # Errors
    /// When it is not in two minutes, with its conditions.
    pub async fn ready(&mut self) -> anyhow::Result<Bound> {
        self.ready_from(1).await.map(|(bound, _)| bound)
    }

    /// Waits until it is Ready under `epoch` or a later one; says when that was seen first.
    ///
    /// # Errors
    /// As [`Session::ready`].
    pub async fn ready_from(&mut self, epoch: u64) -> anyhow::Result<(Bound, Instant)> {
        let find = |status: &SessionStatus| bound(status).filter(|bound| bound.epoch >= epoch);
        self.until(READY_DEADLINE, &format!("Ready under epoch {epoch} or later"), find).await
    }

    /// Waits until the current version, or one seen since `since`, has a condition `Ready` that is not True, and gives its reason
    /// and when it was seen.
    ///
    /// # Errors
    /// After `deadline`.
    pub async fn not_ready(
        &mut self,
        since: Instant,
        deadline: Duration,
    ) -> anyhow::Result<(String, Instant)> {
        let find = |seen: &[Sighting<DynamicObject>]| {
            seen.iter().filter(|sighting| sighting.at >= since).find_map(|sighting| {
                let status = SessionStatus::of(sighting.object.as_ref()?);
                let ready = status.condition("Ready")?;
                (ready.status != "True").then(|| (ready.reason.clone(), sighting.at))
            })
        };
        self.watch.until(deadline, "Ready is not True", find, tell).await
    }

    /// Waits until the current version has this condition.
    ///
    /// # Errors
    /// After `deadline`, with the conditions there are.
    pub async fn condition(
        &mut self,
        deadline: Duration,
        kind: &str,
        status: &str,
        reason: &str,
    ) -> anyhow::Result<SessionStatus> {
        let what = format!("{kind}={status} {reason} of {}", self.name);
        let find = |found: &SessionStatus| {
            let condition = found.condition(kind)?;
            (condition.status == status && condition.reason == reason).then(|| found.clone())
        };
        self.until(deadline, &what, find).await.map(|(status, _)| status)
    }

    /// Waits until something is found in the status of the current version; gives when that version was seen.
    ///
    /// # Errors
    /// After `deadline`, with the conditions there are.
    pub async fn until<T>(
        &mut self,
        deadline: Duration,
        what: &str,
        find: impl Fn(&SessionStatus) -> Option<T>,
    ) -> anyhow::Result<(T, Instant)> {
        let find = |seen: &[Sighting<DynamicObject>]| {
            let last = seen.last()?;
            Some((find(&SessionStatus::of(last.object.as_ref()?))?, last.at))
        };
        self.watch.until(deadline, what, find, tell).await
    }

    /// Waits until there is no Session of this name.
    ///
    /// # Errors
    /// After `deadline`.
    pub async fn gone(&mut self, deadline: Duration) -> anyhow::Result<()> {
        let find =
            |seen: &[Sighting<DynamicObject>]| seen.last().filter(|last| last.object.is_none()).map(drop);
        self.watch.until(deadline, "the Session is gone", find, tell).await
    }

    /// The current status.
    pub fn status(&self) -> SessionStatus {
        let last = self.watch.sightings().pop().and_then(|sighting| sighting.object);
        last.as_ref().map(SessionStatus::of).unwrap_or_default()
    }

    /// Everything seen of it.
    pub fn sightings(&self) -> Vec<Sighting<DynamicObject>> {
        self.watch.sightings()
    }

    /// The UID of the current version.
    ///
    /// # Errors
    /// When there is none.
    pub async fn uid(&mut self) -> anyhow::Result<String> {
        let find = |seen: &[Sighting<DynamicObject>]| seen.last()?.object.as_ref()?.metadata.uid.clone();
        self.watch.until(Duration::from_secs(10), "the Session is seen", find, tell).await
    }

    /// Deletes it with kubectl and does not wait.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn delete(&self) -> anyhow::Result<()> {
        self.namespace.kubectl(&["delete", "session.mooring.dev", &self.name, "--wait=false"]).await.map(drop)
    }

    /// A client of its executor, as the harness.
    ///
    /// # Errors
    /// When the executor does not take the connection.
    pub async fn connect(&self, bound: &Bound, product: &Product) -> anyhow::Result<Executor> {
        self.connect_as(bound, product, &product.harness).await
    }

    /// A client of its executor, as somebody else at the harness's place.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub async fn connect_as(
        &self,
        bound: &Bound,
        product: &Product,
        identity: &Identity,
    ) -> anyhow::Result<Executor> {
        let name = self.server_name(bound);
        let connecting =
            Executor::connect(bound.executor.address, &name, identity, &product.place, bound.target());
        connecting.await.with_context(|| format!("the executor of {}", self.name))
    }

    /// The name that its executor is certified by.
    pub fn server_name(&self, bound: &Bound) -> String {
        certificate::executor(&bound.executor.pod, &self.namespace.name)
    }
}

impl Bound {
    /// What calls to it say.
    pub fn target(&self) -> Target {
        Target { environment: self.environment.clone(), epoch: self.epoch, workspace_id: String::new() }
    }
}

fn bound(status: &SessionStatus) -> Option<Bound> {
    if !status.is("Ready") {
        return None;
    }
    Some(Bound {
        environment: status.environment.as_ref()?.into(),
        epoch: status.epoch?,
        executor: status.executor.clone()?,
        claim: status.claim.clone()?,
    })
}

fn tell(session: &DynamicObject) -> String {
    let status = SessionStatus::of(session);
    format!("epoch {:?}, {}", status.epoch, status.told())
}
