//! That a session was used, told to the cluster at most once a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use mooring_operator_api::Session;
use serde_json::json;
use tokio::sync::mpsc;

use crate::telemetry::story;

/// How exact `status.lastActivity` is.
const PERIOD: Duration = Duration::from_mins(1);
/// Sessions that are remembered before the old ones are forgotten.
const REMEMBERED: usize = 1024;
/// Writes that wait. One that finds no room is made at the session's next use.
const WAITING: usize = 256;
/// Who the API server records as the writer.
const FIELD_MANAGER: &str = "mooring-harness";

/// Takes note of uses. Clones are the same one.
#[derive(Clone)]
pub struct Activity {
    told: Arc<Mutex<HashMap<String, Instant>>>,
    writes: mpsc::Sender<Write>,
}

struct Write {
    namespace: String,
    name: String,
    uid: String,
}

/// An [`Activity`], and what writes for it, for as long as that is awaited.
pub fn activity(client: Client) -> (Activity, impl Future<Output = ()>) {
    let (writes, mut waiting) = mpsc::channel::<Write>(WAITING);
    let writing = async move {
        while let Some(write) = waiting.recv().await {
            if let Err(error) = write.carry_out(&client).await {
                tracing::warn!(
                    session = write.uid,
                    error = story(&error),
                    "the last activity was not written"
                );
            }
        }
    };
    (Activity { told: Arc::default(), writes }, writing)
}

impl Activity {
    /// Notes that a session was used now; `last` is when the cluster knows of.
    pub(super) fn touch(&self, namespace: &str, name: &str, uid: &str, last: Option<Timestamp>) {
        let fresh = SignedDuration::try_from(PERIOD).unwrap_or(SignedDuration::MAX);
        if last.is_some_and(|last| Timestamp::now().duration_since(last) < fresh) || !self.is_due(uid) {
            return;
        }
        let write = Write { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() };
        if self.writes.try_send(write).is_err() {
            self.lock().remove(uid);
        }
    }

    fn is_due(&self, uid: &str) -> bool {
        let mut told = self.lock();
        if told.get(uid).is_some_and(|at| at.elapsed() < PERIOD) {
            return false;
        }
        if told.len() >= REMEMBERED {
            told.retain(|_, at| at.elapsed() < PERIOD);
        }
        told.insert(uid.to_owned(), Instant::now());
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write {
    async fn carry_out(&self, client: &Client) -> Result<(), kube::Error> {
        let sessions: Api<Session> = Api::namespaced(client.clone(), &self.namespace);
        // With the UID: one of the same name that is another session is a conflict.
        let patch = json!({"metadata": {"uid": self.uid}, "status": {"lastActivity": Timestamp::now()}});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        sessions.patch_status(&self.name, &params, &Patch::Merge(&patch)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_told_once_a_minute() {
        let (writes, mut waiting) = mpsc::channel(2);
        let activity = Activity { told: Arc::default(), writes };
        let now = Timestamp::now();
        let ago = |seconds| Some(now - SignedDuration::from_secs(seconds));
        activity.touch("n", "a", "1", None);
        activity.touch("n", "a", "1", None);
        activity.touch("n", "b", "2", ago(10));
        activity.touch("n", "b", "2", ago(70));
        // No room: it is told at the next use.
        activity.touch("n", "c", "3", None);
        let mut told = || waiting.try_recv().ok().map(|write| write.uid);
        assert_eq!([told(), told(), told()], [Some("1".to_owned()), Some("2".to_owned()), None]);
        activity.touch("n", "c", "3", None);
        assert_eq!(waiting.try_recv().ok().map(|write| write.uid).as_deref(), Some("3"));
    }
}
