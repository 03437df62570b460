//! All sessions that are at work, one owner task each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mooring_authority::Protected;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::departed;
use super::session::work_on;
use crate::environment::EnvironmentResolver;
use crate::model::ModelClient;
use crate::session::SessionId;
use crate::store::{Departed, Store, StoreError};

/// What the agent works with.
pub struct AgentParts {
    /// Everything that lasts.
    pub store: Store,
    /// Finds each session's environment.
    pub resolver: Arc<EnvironmentResolver>,
    /// `None`: every run ends with `model_misconfigured`.
    pub model: Option<ModelClient>,
    /// The product's own ground. Each local environment's `home` and `tmp` are opened in it here.
    pub protected: Protected,
    /// Numbers.
    pub settings: AgentSettings,
}

/// Numbers of the loop.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Names this process as a lease holder, 1..=253 characters, unlike any other's.
    pub holder: String,
    /// How long a lease holds without being renewed; it is renewed three times as often.
    pub lease: Duration,
    /// How long a person has to answer a question; then the call is told as not executed.
    pub approval_expiry: Duration,
    /// Bytes of conversation that one request to the model may hold.
    pub context_bytes: usize,
}

impl AgentSettings {
    /// The defaults: a lease of 60 s, 24 h to answer, 480 kB of conversation.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease: Duration::from_mins(1),
            approval_expiry: Duration::from_hours(24),
            context_bytes: 480_000,
        }
    }
}

/// Works on runs. Dropping it leaves them open, to be gone on with by the next.
pub struct Runs {
    parts: Arc<AgentParts>,
    /// Whether something came for a session while it is at work.
    at_work: Arc<Mutex<HashMap<SessionId, bool>>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Runs {
    /// Nothing is at work yet: see [`Runs::resume_all`].
    pub fn new(parts: AgentParts) -> Self {
        Self {
            parts: Arc::new(parts),
            at_work: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// Makes sure that a task works on the session's open run, if it has one. Idempotent, returns at once.
    ///
    /// Must be called within a Tokio runtime.
    pub fn wake(&self, session: SessionId) {
        if self.closing.is_cancelled() {
            return;
        }
        let mut at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(again) = at_work.get_mut(&session) {
            *again = true;
            return;
        }
        at_work.insert(session, false);
        let (parts, others, closing) =
            (Arc::clone(&self.parts), Arc::clone(&self.at_work), self.closing.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = own(&parts, &others, session) => {}
                () = closing.cancelled() => {}
            }
        });
    }

    /// The run of this session is to stop: the store holds the wish ([`Store::interrupt`]) and tells the task that is at
    /// work; here it is only made sure that there is one.
    pub fn interrupt(&self, session: SessionId) {
        self.wake(session);
    }

    /// Stops the work of a deleted session and ends the commands that it left running. Returns at once.
    ///
    /// Must be called within a Tokio runtime.
    pub fn end_left_behind(&self, departed: Departed) {
        self.wake(departed.session);
        let (parts, closing) = (Arc::clone(&self.parts), self.closing.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = departed::end_commands(&parts, &departed) => {}
                // The executor ends, and its commands with it.
                () = closing.cancelled() => {}
            }
        });
    }

    /// Goes on with every open run of the store. Gives how many sessions have one.
    ///
    /// # Errors
    /// [`StoreError::Database`], [`StoreError::Corrupt`].
    pub async fn resume_all(&self) -> Result<usize, StoreError> {
        let sessions = self.parts.store.sessions_with_open_runs().await?;
        for session in &sessions {
            self.wake(*session);
        }
        Ok(sessions.len())
    }

    /// Stops all work at once and waits until nothing of it is left; runs stay open. Commands that are under way end with
    /// their executor ([`EnvironmentResolver::close`]).
    pub async fn shutdown(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Works on a session until nothing came for it while it was worked on.
async fn own(parts: &Arc<AgentParts>, at_work: &Mutex<HashMap<SessionId, bool>>, session: SessionId) {
    loop {
        Box::pin(work_on(parts, session)).await;
        let mut at_work = at_work.lock().unwrap_or_else(PoisonError::into_inner);
        match at_work.get_mut(&session) {
            Some(again) if *again => *again = false,
            Some(_) | None => {
                at_work.remove(&session);
                return;
            }
        }
    }
}
