//! Who has read what: the licence to overwrite.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::version::Version;
use crate::path::WorkspacePath;

#[cfg(test)]
mod tests;

/// Most versions remembered over all workspaces of an executor; beyond it the least recently used goes, and its file counts
/// as unread again.
pub(super) const LEDGER_ENTRIES: usize = 100_000;

/// Versions by (workspace, actor, path), in memory alone: a new process asks for a new Read.
///
/// Keys are digests, so that an entry costs the same whatever the length of its path.
#[derive(Debug)]
pub(super) struct Ledger {
    entries: Mutex<Entries>,
    capacity: usize,
}

/// One entry's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedgerKey([u8; 32]);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<LedgerKey, (Version, u64)>,
    by_use: BTreeMap<u64, LedgerKey>,
    clock: u64,
}

impl LedgerKey {
    /// The key of one actor's knowledge of one path in one workspace.
    pub(super) fn new(workspace: &str, actor: &str, path: &WorkspacePath) -> Self {
        let mut hasher = Sha256::new();
        for part in [workspace.as_bytes(), actor.as_bytes()] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.update(path.without_dots().as_bytes());
        Self(hasher.finalize().into())
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::with_capacity(LEDGER_ENTRIES)
    }
}

impl Ledger {
    /// An empty ledger of at most `capacity` entries.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { entries: Mutex::default(), capacity }
    }

    /// Remembers what the actor knows the file to be.
    pub(super) fn record(&self, key: LedgerKey, version: Version) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        if let Some((_, before)) = entries.by_key.insert(key, (version, now)) {
            entries.by_use.remove(&before);
        }
        entries.by_use.insert(now, key);
        if entries.by_key.len() > self.capacity
            && let Some((_, oldest)) = entries.by_use.pop_first()
        {
            entries.by_key.remove(&oldest);
        }
    }

    /// What the actor last knew, and marks it as used.
    pub(super) fn known(&self, key: LedgerKey) -> Option<Version> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let now = entries.clock;
        let (version, used) = entries.by_key.get_mut(&key)?;
        let version = *version;
        let before = std::mem::replace(used, now);
        entries.by_use.remove(&before);
        entries.by_use.insert(now, key);
        Some(version)
    }
}
