//! Every version of one object, in the order and at the time it was seen.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures::StreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two attempts to reach an API server that does not answer.
const RETRY: Duration = Duration::from_millis(100);

/// An object at one moment.
#[derive(Clone, Debug)]
pub struct Sighting<K> {
    /// When it was seen.
    pub at: Instant,
    /// The object; none when there was none of its name.
    pub object: Option<K>,
}

/// Watches one object until it is dropped, through breaks of the connection.
pub struct Watch<K> {
    seen: watch::Receiver<Vec<Sighting<K>>>,
    task: JoinHandle<()>,
}

impl<K> Watch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Of the object `name`, there or not.
    pub fn of(api: Api<K>, name: &str) -> Self {
        let (sender, seen) = watch::channel(Vec::new());
        let versions = watcher::watch_object(api, name).backoff(Steady);
        let task = tokio::spawn(async move {
            let mut versions = std::pin::pin!(versions);
            while let Some(version) = versions.next().await {
                // An error is tried again; what was missed comes as the version that is current then.
                if let Ok(object) = version {
                    sender.send_modify(|seen| seen.push(Sighting { at: Instant::now(), object }));
                }
            }
        });
        Self { seen, task }
    }

    /// What was seen so far.
    pub fn sightings(&self) -> Vec<Sighting<K>> {
        self.seen.borrow().clone()
    }

    /// Waits until something is found in what was seen.
    ///
    /// # Errors
    /// After `deadline`, with `what` was awaited and what `tell` says of the last version.
    pub async fn until<T>(
        &mut self,
        deadline: Duration,
        what: &str,
        mut find: impl FnMut(&[Sighting<K>]) -> Option<T>,
        tell: impl Fn(&K) -> String,
    ) -> anyhow::Result<T> {
        let mut found = None;
        let waiting = self.seen.wait_for(|seen| {
            found = find(seen);
            found.is_some()
        });
        let waited = tokio::time::timeout(deadline, waiting).await.is_ok_and(|waited| waited.is_ok());
        match found {
            Some(found) if waited => Ok(found),
            Some(_) | None => {
                let last = self.seen.borrow().last().map_or("nothing".to_owned(), |sighting| {
                    sighting.object.as_ref().map_or("no such object".to_owned(), &tell)
                });
                bail!("waited {:.1} s in vain: {what}; last seen: {last}", deadline.as_secs_f64())
            }
        }
    }
}

impl<K> Drop for Watch<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks again at an even pace: the tests measure how soon something is seen.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}
