//! Operation ids whose results were let go.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use super::OperationId;

/// Ids remembered at most; about 24 MiB when full. The oldest falls out, a million operations after its own result did.
const MAX_REMEMBERED: usize = 1_000_000;

/// A set of operation ids, kept as keyed 64-bit hashes: a new id is taken for an old one once in 2^44 at the fullest.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
    hasher: RandomState,
}

impl Forgotten {
    /// Whether `id` was added.
    pub(super) fn has(&self, id: &OperationId) -> bool {
        !self.hashes.is_empty() && self.hashes.contains(&self.hasher.hash_one(id))
    }

    /// Adds `id`.
    pub(super) fn add(&mut self, id: &OperationId) {
        let hash = self.hasher.hash_one(id);
        if self.hashes.insert(hash) {
            self.order.push_back(hash);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
    }
}
