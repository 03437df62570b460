//! Who is told that something about a session was committed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::session::SessionId;

/// Wakes when something about one session was committed. Several commits may wake it once.
pub struct Changes {
    receiver: watch::Receiver<u64>,
}

impl Changes {
    /// Waits for the next commit since the last call (or since [`super::Store::watch`]). Cancel-safe.
    pub async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The senders of all sessions that somebody watches.
#[derive(Default)]
pub(super) struct Watchers {
    senders: Mutex<HashMap<SessionId, watch::Sender<u64>>>,
}

impl Watchers {
    pub(super) fn watch(&self, session: SessionId) -> Changes {
        let mut senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        senders.retain(|id, sender| *id == session || sender.receiver_count() > 0);
        let receiver = senders.entry(session).or_insert_with(|| watch::channel(0).0).subscribe();
        Changes { receiver }
    }

    pub(super) fn notify(&self, session: SessionId) {
        let senders = self.senders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(&session) {
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}
