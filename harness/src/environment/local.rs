//! A folder of this machine as an environment: at most one executor at a time, started when it is needed.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::executor::{Binding, Executor, Launch, StartError};
use super::folder::Folder;
use super::given::Given;
use super::resolve::{NotReady, ResolveError};
use crate::session::EnvironmentRef;
use crate::store::Store;

/// One local environment, shared by all sessions of its folder.
pub struct LocalEnvironment {
    pub(super) reference: EnvironmentRef,
    pub(super) folder: Folder,
    pub(super) launch: Launch,
    pub(super) state: PathBuf,
    pub(super) given: Given,
    pub(super) store: Store,
    pub(super) live: Mutex<Live>,
}

/// The executor there is, or was.
pub(super) enum Live {
    /// None was needed yet, or the last one has ended.
    Idle,
    /// This one.
    Running(Executor),
    /// None will be started again.
    Closed,
}

impl LocalEnvironment {
    /// Exact identity.
    pub fn reference(&self) -> &EnvironmentRef {
        &self.reference
    }

    /// The product's own folder for this environment; `home` and `tmp` in it belong to commands.
    pub fn state(&self) -> &std::path::Path {
        &self.state
    }

    /// The executor that lives now, if one does. Starts nothing.
    pub async fn current(&self) -> Option<Executor> {
        match &*self.live.lock().await {
            Live::Running(executor) if !executor.is_gone() => Some(executor.clone()),
            Live::Running(_) | Live::Idle | Live::Closed => None,
        }
    }

    /// A live executor: the one there is, or a new one under the next epoch.
    ///
    /// Whoever gets another [`Executor::boot_id`] than before has an empty read ledger and none of its commands.
    ///
    /// # Errors
    /// [`ResolveError::Mismatch`] or [`ResolveError::EmptyWorkspace`] when the folder is no longer the one that was bound,
    /// [`ResolveError::NotReady`] when no executor can be started, [`ResolveError::Store`].
    pub async fn executor(&self) -> Result<Executor, ResolveError> {
        let mut live = self.live.lock().await;
        match &*live {
            Live::Closed => return Err(ResolveError::NotReady { source: None }),
            Live::Running(executor) if !executor.is_gone() => return Ok(executor.clone()),
            Live::Running(executor) => {
                // It must be gone for good before another may hold the state folder.
                executor.end().await;
                *live = Live::Idle;
            }
            Live::Idle => {}
        }
        super::resolve::compare_folder(&self.folder)?;
        self.make_state_parent()?;
        let epoch = self.store.next_environment_epoch(&self.reference).await?;
        let started = Executor::start(Binding {
            launch: &self.launch,
            reference: super::wire(&self.reference),
            epoch,
            state: &self.state,
            given: &self.given,
        })
        .await;
        let executor = started.map_err(|error: StartError| {
            tracing::error!(error = &error as &dyn std::error::Error, "no executor");
            ResolveError::NotReady { source: Some(NotReady::Start(Arc::new(error))) }
        })?;
        *live = Live::Running(executor.clone());
        Ok(executor)
    }

    /// The folder that holds the state folders of all environments. The executor makes its own in it.
    fn make_state_parent(&self) -> Result<(), ResolveError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let Some(parent) = self.state.parent() else { return Ok(()) };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| {
            ResolveError::NotReady { source: Some(NotReady::Start(Arc::new(StartError::State(error)))) }
        })
    }

    /// Ends the executor, its commands included; none is started again.
    pub async fn close(&self) {
        let mut live = self.live.lock().await;
        if let Live::Running(executor) = &*live {
            executor.end().await;
        }
        *live = Live::Closed;
    }
}
