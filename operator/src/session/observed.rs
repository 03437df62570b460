//! What is observed of one Session and around it: facts, without any decision.

pub(crate) mod pod;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim};
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use mooring_operator_api::{ExecutorClass, Session, Uid, label};

use super::claim::{self, Access, RETAINED, Revision};
use crate::caches::Caches;
use crate::class::policy;
use crate::dial::Dial;
use crate::refusal::Refused;
use crate::{labels, names};
use pod::PodFacts;

/// The class of a Session that names none.
pub(crate) const DEFAULT_CLASS: &str = "default";

/// Everything that a plan is made from.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The Session, as new as our own last write.
    pub(crate) session: Arc<Session>,
    /// Its class, unless there is none or it is being deleted.
    pub(crate) class: Option<Arc<ExecutorClass>>,
    /// Its class is there and is being deleted.
    pub(crate) is_class_leaving: bool,
    /// The network policy of the class.
    pub(crate) policy: PolicyFacts,
    /// The storage class that its claim would be made with.
    pub(crate) storage: StorageFacts,
    /// Its claim.
    pub(crate) claim: ClaimFacts,
    /// Its own pods, of whatever epoch.
    pub(crate) pods: Vec<PodFacts>,
    /// The Secret of its present epoch.
    pub(crate) secret: SecretFacts,
    /// How far the operator is with reaching an executor of it.
    pub(crate) dial: Option<Dial>,
    /// What the API server refused of the last plan, while it is not tried again.
    pub(crate) refused: Option<Refused>,
}

/// The network policy of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyFacts {
    /// Absent, or not as it should be.
    Wanting,
    /// In place.
    Current,
}

/// The storage class for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorageFacts {
    /// There is one, and a volume of it is used so.
    Known(Access),
    /// The one that is named does not exist.
    Missing(String),
    /// None is named, and the cluster has no default one.
    NoDefault,
}

/// The claim under the Session's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClaimFacts {
    /// There is none.
    Absent,
    /// It carries the label of this Session.
    Ours(OurClaim),
    /// It does not.
    Foreign,
}

/// A claim of this Session.
#[expect(clippy::struct_excessive_bools, reason = "facts that are true or not, each by itself")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OurClaim {
    /// Its UID.
    pub(crate) uid: Uid,
    /// As drawn when it was made; `None` when somebody changed it to something else.
    pub(crate) revision: Option<Revision>,
    /// Somebody has asked for its deletion.
    pub(crate) is_leaving: bool,
    /// The cluster says that its volume is gone.
    pub(crate) is_lost: bool,
    /// It has a volume.
    pub(crate) is_bound: bool,
    /// Marked as outliving its Session.
    pub(crate) is_retained: bool,
}

/// The Secret under the name of an epoch's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretFacts {
    /// Nothing depends on it now, so it was not read.
    Unread,
    /// There is none.
    Absent,
    /// Ours, and what it holds can be used for a while.
    Fresh,
    /// Ours, and what it holds must be replaced.
    Stale,
    /// Not ours.
    Foreign,
}

impl Observed {
    /// What the caches show. The Secret is not among them: it is read by name when a plan depends on it.
    ///
    /// `None` when the Session is gone.
    pub(crate) fn read(caches: &Caches, name: &ObjectRef<Session>, operator_namespace: &str) -> Option<Self> {
        let session = caches.sessions.get(name)?;
        let namespace = session.namespace().unwrap_or_default();
        let uid = Uid::from(session.uid().unwrap_or_default());
        let (class, is_class_leaving) = class(caches, &session, &namespace);
        let policy =
            class.as_ref().map_or(PolicyFacts::Wanting, |class| policy(caches, class, operator_namespace));
        let storage =
            class.as_ref().map_or(StorageFacts::NoDefault, |class| storage(caches, &session, class));
        let claim_name = ObjectRef::new(&names::claim(&uid)).within(&namespace);
        let claim = caches.claims.get(&claim_name).map_or(ClaimFacts::Absent, |it| claim_facts(&it, &uid));
        let mut pods: Vec<PodFacts> = caches
            .pods
            .with_key(&names::claim(&uid))
            .iter()
            .filter(|pod| pod.namespace().as_deref() == Some(namespace.as_str()))
            .filter(|pod| labels::is_of(&pod.metadata, uid.as_str()))
            .map(|pod| pod::read(pod, |node| is_silent(caches, node)))
            .collect();
        pods.sort_by_key(|pod| pod.epoch);
        Some(Self {
            session,
            class,
            is_class_leaving,
            policy,
            storage,
            claim,
            pods,
            secret: SecretFacts::Unread,
            dial: None,
            refused: None,
        })
    }
}

/// The Session's class where pods can be made from it, and whether there is one that is being deleted.
fn class(caches: &Caches, session: &Session, namespace: &str) -> (Option<Arc<ExecutorClass>>, bool) {
    let class = caches.classes.get(&ObjectRef::new(class_name(session)).within(namespace));
    let is_leaving = class.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some());
    (class.filter(|_| !is_leaving), is_leaving)
}

/// The name of a Session's class.
pub(crate) fn class_name(session: &Session) -> &str {
    session.spec.executor_class.as_ref().map_or(DEFAULT_CLASS, |name| name.as_str())
}

fn policy(caches: &Caches, class: &ExecutorClass, operator_namespace: &str) -> PolicyFacts {
    let desired = policy::desired_policy(class, operator_namespace);
    match caches.policies.get(&ObjectRef::from_obj(&desired)) {
        Some(observed) if policy::is_current(&observed, &desired) => PolicyFacts::Current,
        _ => PolicyFacts::Wanting,
    }
}

fn storage(caches: &Caches, session: &Session, class: &ExecutorClass) -> StorageFacts {
    let found = if let Some(name) = claim::storage_class(session, class) {
        match caches.storage_classes.get(&ObjectRef::new(&name)) {
            Some(found) => found,
            None => return StorageFacts::Missing(name),
        }
    } else {
        // Of several the newest counts (Kubernetes, "Storage Classes").
        let mut defaults = caches.storage_classes.filter(|it| {
            it.annotations().get("storageclass.kubernetes.io/is-default-class").is_some_and(|it| it == "true")
        });
        defaults.sort_by_key(|it| it.metadata.creation_timestamp.as_ref().map(|time| time.0));
        match defaults.pop() {
            Some(found) => found,
            None => return StorageFacts::NoDefault,
        }
    };
    let is_csi = caches.drivers.get(&ObjectRef::new(&found.provisioner)).is_some();
    StorageFacts::Known(if is_csi { Access::OnePod } else { Access::OneNode })
}

pub(super) fn claim_facts(claim: &PersistentVolumeClaim, session: &Uid) -> ClaimFacts {
    if claim.labels().get(label::SESSION_UID).map(String::as_str) != Some(session.as_str()) {
        return ClaimFacts::Foreign;
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    ClaimFacts::Ours(OurClaim {
        uid: Uid::from(claim.uid().unwrap_or_default()),
        revision: claim.annotations().get(label::REVISION).and_then(|text| Revision::read(text)),
        is_leaving: claim.metadata.deletion_timestamp.is_some(),
        is_lost: phase == Some("Lost"),
        is_bound: phase == Some("Bound"),
        is_retained: claim.labels().contains_key(RETAINED),
    })
}

pub(super) fn is_silent(caches: &Caches, node: &str) -> bool {
    caches.nodes.get(&ObjectRef::new(node)).is_none_or(|node| !is_ready(&node))
}

/// Whether a node's kubelet reports. The cluster sets `Unknown` once it has been silent for the grace period.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    ready.is_none_or(|ready| ready.status != "Unknown")
}

/// When the Session's deletion was asked for.
pub(crate) fn deleted_at(session: &Session) -> Option<Timestamp> {
    session.metadata.deletion_timestamp.as_ref().map(|time| time.0)
}
