//! Environments in a cluster: found in what their Sessions say, reached over mutual TLS.
//!
//! ```text
//!  Sessions ◀─watch─ API server
//!     │ find: whose it is                reference ─▶ resolve: compared exactly ─▶ links ─▶ executor
//!     ▼                                                      │
//!  Session ── status.environment ────────────────────────────┘ status.executor: pod, address; epoch
//! ```

mod links;

use std::sync::Arc;

use futures::StreamExt as _;
use kube::api::Api;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use mooring_operator_api::Session;
use mooring_operator_api::session::{self as api, SessionStatus};
use tonic::transport::Channel;

use super::resolve::{NotReady, ResolveError};
use crate::caller::Caller;
use crate::session::{EnvironmentKind, EnvironmentRef};
use crate::telemetry::story;

pub use links::{LinkError, Links};

/// The condition that says whether an environment can be used.
const READY: &str = "Ready";
/// A Session whose workspace is lost for good has this one.
const RETIRED: &str = "Retired";

/// The name of a Session: `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    /// Its namespace.
    pub namespace: String,
    /// Its name in there.
    pub name: String,
}

impl SessionName {
    /// Reads `namespace/name`.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let is_name = |text: &str, longest: usize| {
            let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            (1..=longest).contains(&text.len())
                && text.bytes().all(|byte| is_letter(byte) || byte == b'-' || byte == b'.')
        };
        (is_name(namespace, 63) && is_name(name, 253))
            .then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// The executor of an environment as its Session names it now.
#[derive(Clone)]
pub struct PodEnvironment {
    /// What it was found by.
    pub reference: EnvironmentRef,
    /// Of the executor that is bound.
    pub epoch: u64,
    /// To that executor.
    pub channel: Channel,
}

/// Finds Sessions, and the executors of their environments.
pub struct KubernetesResolver {
    sessions: Store<Session>,
    links: Links,
}

impl KubernetesResolver {
    /// Watches the Sessions of all namespaces, for as long as the future that is given back is awaited; `links` reach
    /// executors.
    pub fn watch(client: Client, links: Links) -> (Self, impl Future<Output = ()>) {
        let (store, writer) = reflector::store();
        let changes = watcher(Api::<Session>::all(client), watcher::Config::default())
            .default_backoff()
            .modify(|session| session.metadata.managed_fields = None)
            .reflect(writer)
            .for_each(|change| {
                if let Err(error) = change {
                    tracing::warn!(error = story(&error), "the watch of Sessions broke; it begins anew");
                }
                std::future::ready(())
            });
        (Self { sessions: store, links }, changes)
    }

    #[cfg(test)]
    pub(crate) fn of(sessions: Store<Session>, links: Links) -> Self {
        Self { sessions, links }
    }

    /// Whether there is a certificate to show to executors.
    pub fn has_credential(&self) -> bool {
        self.links.has_credential()
    }

    /// Returns once all Sessions were listed. Cancel-safe.
    pub async fn listed(&self) {
        // Only an ended watch is an error, and with it everything ends.
        let _ = self.sessions.wait_until_ready().await;
    }

    /// The Session of this name that belongs to `caller`.
    ///
    /// # Errors
    /// [`ResolveError::Unknown`] for one that is not there, and for somebody else's: the two are the same.
    pub fn find(&self, name: &SessionName, caller: &Caller) -> Result<Arc<Session>, ResolveError> {
        let key = ObjectRef::new(&name.name).within(&name.namespace);
        let session = self.sessions.get(&key).filter(|session| session.spec.owner == caller.user);
        session.ok_or(ResolveError::Unknown)
    }

    /// The executor of the environment that `reference` names.
    ///
    /// # Errors
    /// [`ResolveError::NoResolver`] for another kind, [`ResolveError::Unknown`] when no Session has the id,
    /// [`ResolveError::Mismatch`] when its revision is another one, [`ResolveError::EmptyWorkspace`] when its workspace is
    /// lost, [`ResolveError::NotReady`] when no executor is bound or it cannot be reached: nothing was sent to it.
    pub async fn resolve(&self, reference: &EnvironmentRef) -> Result<PodEnvironment, ResolveError> {
        let session = self.named(reference)?;
        let status = session.status.clone().unwrap_or_default();
        let bound = bound(&status, reference)?;
        let namespace = session.namespace().unwrap_or_default();
        let channel = self.links.reach(&bound.pod, &namespace, &bound.address).await;
        let channel = channel.map_err(|error| {
            // The operator may know more of why than the connection does.
            let source = if is_true(&status, READY) {
                NotReady::Unreachable(Arc::new(error))
            } else {
                standing(&status)
            };
            ResolveError::NotReady { source: Some(source) }
        })?;
        Ok(PodEnvironment { reference: reference.clone(), epoch: bound.epoch, channel })
    }

    fn named(&self, reference: &EnvironmentRef) -> Result<Arc<Session>, ResolveError> {
        if reference.kind != EnvironmentKind::Kubernetes {
            return Err(ResolveError::NoResolver { kind: reference.kind });
        }
        let mut parts = reference.id.splitn(3, '/');
        let (Some(namespace), Some(name), Some(uid)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(ResolveError::Unknown);
        };
        let session = self.sessions.get(&ObjectRef::new(name).within(namespace));
        session.filter(|session| session.uid().as_deref() == Some(uid)).ok_or(ResolveError::Unknown)
    }
}

/// Where the bound executor is.
#[derive(Debug, PartialEq, Eq)]
struct Bound {
    pod: String,
    address: String,
    epoch: u64,
}

fn bound(status: &SessionStatus, reference: &EnvironmentRef) -> Result<Bound, ResolveError> {
    let not_ready = || ResolveError::NotReady { source: Some(standing(status)) };
    // Compared before anything else is said of it.
    match &status.environment {
        Some(environment) if known(environment) == *reference => {}
        Some(_) => return Err(ResolveError::Mismatch),
        None => return Err(not_ready()),
    }
    if is_true(status, RETIRED) {
        return Err(ResolveError::EmptyWorkspace);
    }
    let executor = status.executor.as_ref().ok_or_else(not_ready)?;
    let epoch = status.epoch.and_then(|epoch| u64::try_from(epoch).ok()).ok_or_else(not_ready)?;
    Ok(Bound { pod: executor.pod.to_string(), address: executor.address.clone(), epoch })
}

fn is_true(status: &SessionStatus, kind: &str) -> bool {
    status.conditions.iter().any(|it| it.type_ == kind && it.status == "True")
}

/// What the operator says of it.
pub(crate) fn standing(status: &SessionStatus) -> NotReady {
    match status.conditions.iter().find(|it| it.type_ == READY) {
        Some(ready) => NotReady::Standing { reason: ready.reason.clone(), message: ready.message.clone() },
        None => NotReady::Standing {
            reason: "Pending".to_owned(),
            message: "the operator has not looked at the Session yet".to_owned(),
        },
    }
}

/// A reference as the operator writes it.
pub(crate) fn known(reference: &api::EnvironmentRef) -> EnvironmentRef {
    let kind = match reference.kind {
        api::EnvironmentKind::Local => EnvironmentKind::Local,
        api::EnvironmentKind::Kubernetes => EnvironmentKind::Kubernetes,
        api::EnvironmentKind::None => EnvironmentKind::None,
    };
    EnvironmentRef { kind, id: reference.id.clone(), revision: reference.revision.clone() }
}

#[cfg(test)]
mod tests;
