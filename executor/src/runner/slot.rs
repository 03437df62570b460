//! Where the link to the runner is, while one runner goes and another comes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::link::{Link, StartError};
use super::spec::Capabilities;

/// Holds the link of the runner that is connected now, if one is. Cheap to clone.
///
/// A command keeps the link it was started over, so it ends with that runner and never reaches the next one.
#[derive(Clone)]
pub struct LinkSlot(Arc<watch::Sender<Option<Link>>>);

impl LinkSlot {
    /// No runner yet.
    pub fn empty() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// The one runner there will be.
    pub fn holding(link: Link) -> Self {
        Self(Arc::new(watch::Sender::new(Some(link))))
    }

    /// The link of the runner that is connected.
    ///
    /// # Errors
    /// [`StartError::RunnerUnavailable`] while none is.
    pub fn current(&self) -> Result<Link, StartError> {
        self.0.borrow().clone().ok_or(StartError::RunnerUnavailable)
    }

    /// What the kernel of the runner can do, asked of the one that is connected, or that connects within `patience`.
    ///
    /// # Errors
    /// [`StartError::RunnerUnavailable`] when none has told in time, or the connected one is lost meanwhile.
    pub async fn capabilities(&self, patience: Duration) -> Result<Capabilities, StartError> {
        let asked = async {
            let mut slot = self.0.subscribe();
            // The sender lives as long as `self`.
            let link = slot.wait_for(Option::is_some).await.ok().and_then(|link| link.clone());
            link.ok_or(StartError::RunnerUnavailable)?.capabilities().await
        };
        tokio::time::timeout(patience, asked).await.unwrap_or(Err(StartError::RunnerUnavailable))
    }

    /// Closes the link that is there, and with it ends that runner and its commands.
    pub fn close(&self) {
        if let Some(link) = self.0.borrow().as_ref() {
            link.close();
        }
    }

    /// A runner has come, or the last one has gone.
    pub(super) fn set(&self, link: Option<Link>) {
        self.0.send_replace(link);
    }
}
