//! Every kind of object that is watched: what is kept of it, and whom a change of it concerns.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, PersistentVolumeClaim, Pod, PodSpec};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::storage::v1::{CSIDriver, CSIDriverSpec, StorageClass};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use mooring_operator_api::{ExecutorClass, Session, Uid, label};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::cache::{Cache, Change, Feed, Object, cache};
use crate::labels::MANAGED_BY;
use crate::session::{class_name, node_is_ready};

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// What the watches show.
pub(crate) struct Caches {
    pub(crate) sessions: Cache<Session>,
    pub(crate) classes: Cache<ExecutorClass>,
    pub(crate) pods: Cache<Pod>,
    pub(crate) claims: Cache<PersistentVolumeClaim>,
    pub(crate) policies: Cache<NetworkPolicy>,
    pub(crate) nodes: Cache<Node>,
    pub(crate) storage_classes: Cache<StorageClass>,
    pub(crate) drivers: Cache<CSIDriver>,
}

/// Who is to be reconciled.
#[derive(Clone)]
pub(crate) struct Wakes {
    /// Sessions.
    pub(crate) sessions: mpsc::Sender<ObjectRef<Session>>,
    /// Classes.
    pub(crate) classes: mpsc::Sender<ObjectRef<ExecutorClass>>,
}

impl Caches {
    /// Whether all of them are complete: absence means something.
    pub(crate) fn are_complete(&self) -> bool {
        self.sessions.is_complete()
            && self.classes.is_complete()
            && self.pods.is_complete()
            && self.claims.is_complete()
            && self.policies.is_complete()
            && self.nodes.is_complete()
            && self.storage_classes.is_complete()
            && self.drivers.is_complete()
    }

    /// Begins to watch. The tasks end only when `tasks` is dropped. `forget` is told of each Session that is gone.
    pub(crate) fn watch(
        client: &Client,
        wakes: &Wakes,
        forget: impl Fn(&Uid) + Send + Sync + 'static,
        tasks: &mut JoinSet<()>,
    ) -> Arc<Self> {
        let (sessions, session_feed) = cache();
        let (classes, class_feed) = cache();
        let (pods, pod_feed) = cache();
        let (claims, claim_feed) = cache();
        let (policies, policy_feed) = cache();
        let (nodes, node_feed) = cache();
        let (storage_classes, storage_class_feed) = cache();
        let (drivers, driver_feed) = cache();
        let caches =
            Arc::new(Self { sessions, classes, pods, claims, policies, nodes, storage_classes, drivers });
        let concern = Concern { caches: Arc::clone(&caches), wakes: wakes.clone(), forget: Arc::new(forget) };
        let executors = format!("{}={}", label::APP_NAME, label::EXECUTOR);
        let ours = format!("{MANAGED_BY}={}", label::OPERATOR);
        tasks.spawn(follow(client, session_feed, "", &concern, Concern::session));
        tasks.spawn(follow(client, class_feed, "", &concern, Concern::class));
        tasks.spawn(follow(client, pod_feed, &executors, &concern, Concern::pod));
        tasks.spawn(follow(client, claim_feed, label::SESSION_UID, &concern, Concern::claim));
        tasks.spawn(follow(client, policy_feed, &ours, &concern, Concern::policy));
        tasks.spawn(follow(client, node_feed, "", &concern, Concern::node));
        tasks.spawn(follow(client, storage_class_feed, "", &concern, Concern::anybody));
        tasks.spawn(follow(client, driver_feed, "", &concern, Concern::anybody));
        caches
    }
}

/// Whom a change concerns.
#[derive(Clone)]
struct Concern {
    caches: Arc<Caches>,
    wakes: Wakes,
    forget: Arc<dyn Fn(&Uid) + Send + Sync>,
}

/// Sessions and classes to wake.
#[derive(Default)]
struct Concerned {
    sessions: Vec<ObjectRef<Session>>,
    classes: Vec<ObjectRef<ExecutorClass>>,
}

fn follow<K>(
    client: &Client,
    feed: Feed<K>,
    labels: &str,
    concern: &Concern,
    concerned: fn(&Concern, &Change<'_, K>) -> Concerned,
) -> impl Future<Output = ()> + use<K>
where
    K: Object + serde::de::DeserializeOwned,
{
    let mut config = watcher::Config::default().page_size(PAGE);
    if !labels.is_empty() {
        config = config.labels(labels);
    }
    let events = watcher(Api::<K>::all(client.clone()), config);
    let concern = concern.clone();
    feed.follow(events, move |change| {
        let found = match change {
            // Anything may have happened, to whomever.
            Change::Listed => concern.everybody(),
            Change::Applied { .. } | Change::Deleted(_) => concerned(&concern, &change),
        };
        let wakes = concern.wakes.clone();
        async move {
            // Closed only when the operator ends.
            for session in found.sessions {
                let _ = wakes.sessions.send(session).await;
            }
            for class in found.classes {
                let _ = wakes.classes.send(class).await;
            }
        }
    })
}

impl Concern {
    fn everybody(&self) -> Concerned {
        if !self.caches.are_complete() {
            // The last one to become complete wakes all.
            return Concerned::default();
        }
        Concerned {
            sessions: self.sessions(|_| true),
            classes: self
                .caches
                .classes
                .filter(|_| true)
                .iter()
                .map(|it| ObjectRef::from_obj(&**it))
                .collect(),
        }
    }

    fn anybody<K>(&self, _: &Change<'_, K>) -> Concerned {
        self.everybody()
    }

    fn session(&self, change: &Change<'_, Session>) -> Concerned {
        match change {
            Change::Applied { now, is_own: false, .. } => Concerned::session(ObjectRef::from_obj(*now)),
            // Our own write: the reconcile that made it has gone on from there.
            Change::Applied { is_own: true, .. } | Change::Listed => Concerned::default(),
            Change::Deleted(session) => {
                (self.forget)(&Uid::from(session.uid().unwrap_or_default()));
                Concerned::default()
            }
        }
    }

    fn class(&self, change: &Change<'_, ExecutorClass>) -> Concerned {
        let (Change::Applied { now, .. } | Change::Deleted(now)) = change else {
            return Concerned::default();
        };
        if let Change::Applied { before: Some(before), now, .. } = change
            && before.metadata.generation == now.metadata.generation
            && before.metadata.deletion_timestamp == now.metadata.deletion_timestamp
            && before.metadata.finalizers == now.metadata.finalizers
        {
            return Concerned::default();
        }
        let (name, namespace) = (now.name_any(), now.namespace());
        Concerned {
            sessions: self
                .sessions(|session| session.namespace() == namespace && class_name(session) == name),
            classes: vec![ObjectRef::from_obj(*now)],
        }
    }

    fn pod(&self, change: &Change<'_, Pod>) -> Concerned {
        let (Change::Applied { now, .. } | Change::Deleted(now)) = change else {
            return Concerned::default();
        };
        let mut found = self.session_of(now);
        if matches!(change, Change::Deleted(_))
            && let Some(class) = now.labels().get(label::CLASS)
        {
            // A class that is being deleted waits for the last pod of it.
            let classes = self.caches.classes.filter(|it| {
                it.metadata.deletion_timestamp.is_some() && crate::names::label(&it.name_any()) == *class
            });
            found.classes = classes.iter().map(|it| ObjectRef::from_obj(&**it)).collect();
        }
        found
    }

    fn claim(&self, change: &Change<'_, PersistentVolumeClaim>) -> Concerned {
        let (Change::Applied { now, .. } | Change::Deleted(now)) = change else {
            return Concerned::default();
        };
        self.owner(now.labels().get(label::SESSION_UID))
    }

    fn policy(&self, change: &Change<'_, NetworkPolicy>) -> Concerned {
        let (Change::Applied { now, .. } | Change::Deleted(now)) = change else {
            return Concerned::default();
        };
        let (name, namespace) = (now.name_any(), now.namespace());
        let classes = self.caches.classes.filter(|class| {
            class.namespace() == namespace
                && crate::names::policy(&Uid::from(class.uid().unwrap_or_default())) == name
        });
        Concerned {
            classes: classes.iter().map(|class| ObjectRef::from_obj(&**class)).collect(),
            sessions: Vec::new(),
        }
    }

    fn node(&self, change: &Change<'_, Node>) -> Concerned {
        let node = match change {
            Change::Applied { before: Some(before), now, .. }
                if node_is_ready(before) == node_is_ready(now) =>
            {
                return Concerned::default();
            }
            Change::Applied { now, .. } | Change::Deleted(now) => now.name_any(),
            Change::Listed => return Concerned::default(),
        };
        let pods = self
            .caches
            .pods
            .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(&node));
        let sessions = pods.iter().flat_map(|pod| self.session_of(pod).sessions).collect();
        Concerned { sessions, classes: Vec::new() }
    }

    /// By its label, or by its name where somebody took the label away.
    fn session_of(&self, pod: &Pod) -> Concerned {
        let labelled = self.owner(pod.labels().get(label::SESSION_UID));
        if !labelled.sessions.is_empty() {
            return labelled;
        }
        let claim = pod.key().unwrap_or_default();
        let sessions =
            self.sessions(|it| crate::names::claim(&Uid::from(it.uid().unwrap_or_default())) == claim);
        Concerned { sessions, classes: Vec::new() }
    }

    fn owner(&self, uid: Option<&String>) -> Concerned {
        let found = uid.map(|uid| self.caches.sessions.with_key(uid)).unwrap_or_default();
        Concerned {
            sessions: found.iter().map(|session| ObjectRef::from_obj(&**session)).collect(),
            classes: Vec::new(),
        }
    }

    fn sessions(&self, holds: impl Fn(&Session) -> bool) -> Vec<ObjectRef<Session>> {
        self.caches.sessions.filter(holds).iter().map(|session| ObjectRef::from_obj(&**session)).collect()
    }
}

impl Concerned {
    fn session(session: ObjectRef<Session>) -> Self {
        Self { sessions: vec![session], classes: Vec::new() }
    }
}

/// Drops what only a reader of the whole object wants.
fn trim_metadata<K: Resource>(object: &mut K) {
    let metadata = object.meta_mut();
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| key.starts_with("mooring.dev/") || key.starts_with("storageclass."));
    }
}

impl Object for Session {
    fn trim(&mut self) {
        trim_metadata(self);
    }

    fn key(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }
}

impl Object for ExecutorClass {
    fn trim(&mut self) {
        trim_metadata(self);
    }
}

impl Object for Pod {
    fn trim(&mut self) {
        trim_metadata(self);
        let node_name = self.spec.take().and_then(|spec| spec.node_name);
        self.spec = Some(PodSpec { node_name, ..PodSpec::default() });
    }

    /// The name of its Session's claim, which its own name begins with: nobody can change that.
    fn key(&self) -> Option<&str> {
        crate::names::of_pod(self.metadata.name.as_deref()?).map(|(claim, _)| claim)
    }
}

impl Object for PersistentVolumeClaim {
    fn trim(&mut self) {
        trim_metadata(self);
        self.spec = None;
    }
}

impl Object for NetworkPolicy {
    fn trim(&mut self) {
        trim_metadata(self);
    }
}

impl Object for Node {
    fn trim(&mut self) {
        trim_metadata(self);
        self.metadata.labels = None;
        self.metadata.annotations = None;
        let conditions = self.status.take().and_then(|status| status.conditions);
        let ready = conditions.into_iter().flatten().filter(|condition| condition.type_ == "Ready").collect();
        self.status = Some(NodeStatus { conditions: Some(ready), ..NodeStatus::default() });
        self.spec = None::<NodeSpec>;
    }
}

impl Object for StorageClass {
    fn trim(&mut self) {
        trim_metadata(self);
        self.parameters = None;
    }
}

impl Object for CSIDriver {
    fn trim(&mut self) {
        trim_metadata(self);
        self.spec = CSIDriverSpec::default();
    }
}
