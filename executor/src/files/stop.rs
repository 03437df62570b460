//! How blocking work learns that nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::FileError;

/// A flag that blocking loops look at between steps of bounded size.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
}

/// Raises its flag when it is dropped, with the call's future.
#[derive(Debug)]
pub struct StopOnDrop(Stop);

impl Stop {
    /// A flag, and the guard that raises it.
    pub fn new() -> (Self, StopOnDrop) {
        let stop = Self::default();
        (stop.clone(), StopOnDrop(stop))
    }

    /// Whether to end early.
    pub fn is_raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Fails when it is time to end early.
    ///
    /// # Errors
    /// [`FileError::Cancelled`].
    pub fn check(&self) -> Result<(), FileError> {
        if self.is_raised() { Err(FileError::Cancelled) } else { Ok(()) }
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.flag.store(true, Ordering::Relaxed);
    }
}
