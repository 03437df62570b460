//! What a watch shows of one kind of object, with our own writes laid over it until the watch has shown them.
//!
//! So a reconcile always sees what the one before it wrote, and absence is believed only from a complete list.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt as _};

use crate::telemetry::story;

/// From the first failed watch to the next attempt, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two attempts: what happens meanwhile is seen late by so much.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An object of the cluster that can be kept here.
pub(crate) trait Object:
    Resource<DynamicType = ()> + Clone + Debug + Send + Sync + Unpin + 'static
{
    /// Drops what nobody reads.
    fn trim(&mut self);

    /// What it is looked up by beside its name: for most kinds nothing.
    fn key(&self) -> Option<&str> {
        None
    }
}

/// What happened to a kind of object.
pub(crate) enum Change<'a, K> {
    /// One was made or changed; `before` is what was known of it.
    Applied {
        /// As it was known.
        before: Option<Arc<K>>,
        /// As it is.
        now: &'a K,
        /// It is a write of ours, whose answer was taken in already.
        is_own: bool,
    },
    /// One is gone.
    Deleted(&'a K),
    /// All were listed anew: anything may have happened.
    Listed,
}

/// A complete view of one kind of object. Clones are the same one.
pub(crate) struct Cache<K: Object> {
    store: Store<K>,
    overlay: Arc<Mutex<Overlay<K>>>,
}

impl<K: Object> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), overlay: Arc::clone(&self.overlay) }
    }
}

struct Overlay<K: Object> {
    /// The highest resource version that the watch has shown. Versions of one kind are ordered (KEP-5504).
    shown: u64,
    /// Written by us with a version that the watch has not shown.
    written: HashMap<ObjectRef<K>, Arc<K>>,
    /// What was in `written` when the list that is under way began: it shows them, or they are gone.
    listed: Vec<ObjectRef<K>>,
    /// Deleted by us, by name and UID, while the watch has not shown it.
    gone: HashSet<(ObjectRef<K>, String)>,
    by_key: HashMap<String, HashSet<ObjectRef<K>>>,
    is_complete: bool,
}

/// The side of a cache that a watch writes to.
pub(crate) struct Feed<K: Object> {
    cache: Cache<K>,
    writer: reflector::store::Writer<K>,
}

/// An empty cache, not complete, and what fills it.
pub(crate) fn cache<K: Object>() -> (Cache<K>, Feed<K>) {
    let (store, writer) = reflector::store();
    let overlay = Overlay {
        shown: 0,
        written: HashMap::new(),
        listed: Vec::new(),
        gone: HashSet::new(),
        by_key: HashMap::new(),
        is_complete: false,
    };
    let cache = Cache { store, overlay: Arc::new(Mutex::new(overlay)) };
    (cache.clone(), Feed { cache, writer })
}

impl<K: Object> Cache<K> {
    /// Whether everything that exists has been listed since the watch last had to begin anew.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().is_complete
    }

    /// The newest version known of an object.
    pub(crate) fn get(&self, name: &ObjectRef<K>) -> Option<Arc<K>> {
        self.newest(&self.lock(), name)
    }

    /// Those with this key.
    pub(crate) fn with_key(&self, key: &str) -> Vec<Arc<K>> {
        let overlay = self.lock();
        let mut names: HashSet<&ObjectRef<K>> = overlay.by_key.get(key).into_iter().flatten().collect();
        names.extend(
            overlay.written.iter().filter(|(_, object)| object.key() == Some(key)).map(|(name, _)| name),
        );
        names.into_iter().filter_map(|name| self.newest(&overlay, name)).collect()
    }

    /// Those of which this holds.
    pub(crate) fn filter(&self, holds: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let overlay = self.lock();
        let mut names: HashSet<ObjectRef<K>> =
            self.store.state().iter().map(|object| ObjectRef::from_obj(&**object)).collect();
        names.extend(overlay.written.keys().cloned());
        names.iter().filter_map(|name| self.newest(&overlay, name)).filter(|object| holds(object)).collect()
    }

    /// All of them, as the watch has shown them.
    pub(crate) fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Takes in the API server's answer to a write of ours.
    pub(crate) fn wrote(&self, mut object: K) {
        object.trim();
        let mut overlay = self.lock();
        if version(&object) > overlay.shown {
            overlay.written.insert(ObjectRef::from_obj(&object), Arc::new(object));
        }
    }

    /// Takes in that an object is gone by a delete of ours.
    pub(crate) fn deleted(&self, name: ObjectRef<K>, uid: &str) {
        let mut overlay = self.lock();
        overlay.written.remove(&name);
        if self.store.get(&name).is_some() {
            overlay.gone.insert((name, uid.to_owned()));
        }
    }

    /// What the watch has shown of an object before, and whether this version of it is a write of ours.
    fn known(&self, object: &K) -> (Option<Arc<K>>, bool) {
        let name = ObjectRef::from_obj(object);
        let is_own =
            self.lock().written.get(&name).is_some_and(|written| version(&**written) == version(object));
        (self.store.get(&name), is_own)
    }

    fn newest(&self, overlay: &Overlay<K>, name: &ObjectRef<K>) -> Option<Arc<K>> {
        let shown = self.store.get(name);
        let written = overlay.written.get(name).cloned();
        let newest = match (shown, written) {
            (Some(shown), Some(written)) if version(&*shown) >= version(&*written) => Some(shown),
            (shown, written) => written.or(shown),
        };
        newest.filter(|object| !overlay.gone.contains(&(name.clone(), object.uid().unwrap_or_default())))
    }

    fn lock(&self) -> MutexGuard<'_, Overlay<K>> {
        // Nothing is awaited and nothing panics while it is held.
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Object> Feed<K> {
    /// Follows a watch until it ends, which it does only when dropped. `on_change` is called after each change is visible.
    pub(crate) async fn follow<S, F>(mut self, events: S, mut on_change: impl FnMut(Change<'_, K>) -> F)
    where
        S: Stream<Item = watcher::Result<Event<K>>>,
        F: Future<Output = ()>,
    {
        let mut events = std::pin::pin!(events);
        let mut pause = FIRST_PAUSE;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    pause = FIRST_PAUSE;
                    let event = event.modify(K::trim);
                    let (before, is_own) = match &event {
                        Event::Apply(object) => self.cache.known(object),
                        Event::Delete(_) | Event::Init | Event::InitApply(_) | Event::InitDone => {
                            (None, false)
                        }
                    };
                    self.take(&event);
                    match &event {
                        Event::Apply(now) => on_change(Change::Applied { before, now, is_own }).await,
                        Event::Delete(object) => on_change(Change::Deleted(object)).await,
                        Event::InitDone => on_change(Change::Listed).await,
                        Event::Init | Event::InitApply(_) => {}
                    }
                }
                Err(error) => {
                    let kind = K::kind(&());
                    tracing::warn!(%kind, error = story(&error), "watch broke, goes on");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn take(&mut self, event: &Event<K>) {
        let mut overlay = self.cache.lock();
        self.writer.apply_watcher_event(event);
        match event {
            Event::Apply(object) | Event::InitApply(object) => overlay.show(object),
            Event::Delete(object) => {
                overlay.show(object);
                overlay.forget(object);
            }
            Event::Init => {
                overlay.is_complete = false;
                overlay.listed = overlay.written.keys().cloned().collect();
            }
            Event::InitDone => {
                overlay.is_complete = true;
                for name in std::mem::take(&mut overlay.listed) {
                    overlay.written.remove(&name);
                }
                overlay.gone.clear();
                overlay.by_key.clear();
                for object in self.cache.store.state() {
                    overlay.index(&object);
                }
            }
        }
    }
}

impl<K: Object> Overlay<K> {
    fn show(&mut self, object: &K) {
        self.shown = self.shown.max(version(object));
        let shown = self.shown;
        self.written.retain(|_, written| version(&**written) > shown);
        self.index(object);
    }

    fn index(&mut self, object: &K) {
        if let Some(key) = object.key() {
            self.by_key.entry(key.to_owned()).or_default().insert(ObjectRef::from_obj(object));
        }
    }

    fn forget(&mut self, object: &K) {
        let name = ObjectRef::from_obj(object);
        if let Some(key) = object.key()
            && let Some(names) = self.by_key.get_mut(key)
        {
            names.remove(&name);
            if names.is_empty() {
                self.by_key.remove(key);
            }
        }
        self.gone.remove(&(name, object.uid().unwrap_or_default()));
    }
}

/// 0 where there is none: older than everything.
pub(crate) fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
