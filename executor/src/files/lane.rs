//! One change at a time for one directory entry; changes elsewhere do not wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// A directory entry, however its path was spelt: the parent's device and inode, and the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LaneKey {
    /// Device of the directory.
    pub(super) device: u64,
    /// Inode of the directory.
    pub(super) inode: u64,
    /// Name in it.
    pub(super) name: Vec<u8>,
}

type Slots = Mutex<HashMap<LaneKey, Arc<tokio::sync::Mutex<()>>>>;

/// The entries that are being changed.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    slots: Arc<Slots>,
}

/// The right to change one entry, until dropped.
#[derive(Debug)]
pub(super) struct Lane {
    slots: Arc<Slots>,
    key: LaneKey,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Lanes {
    /// Waits until nobody else changes this entry. Callers wait in order, and without holding a thread.
    pub(super) async fn enter(&self, key: LaneKey) -> Lane {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(key.clone()).or_default())
        };
        // Made before waiting, so that a caller who gives up cleans up as well.
        let mut lane = Lane { slots: Arc::clone(&self.slots), key, guard: None };
        lane.guard = Some(slot.lock_owned().await);
        lane
    }

    /// Enters two lanes in one global order, so that two moves never wait for each other.
    pub(super) async fn enter_both(&self, one: LaneKey, other: LaneKey) -> (Lane, Option<Lane>) {
        if one == other {
            return (self.enter(one).await, None);
        }
        let (first, second) = if one < other { (one, other) } else { (other, one) };
        let first = self.enter(first).await;
        (first, Some(self.enter(second).await))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // Clones are made under this same lock: a count of one means that nobody holds it or waits for it.
        if slots.get(&self.key).is_some_and(|slot| Arc::strong_count(slot) == 1) {
            slots.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> LaneKey {
        LaneKey { device: 1, inode: 2, name: name.as_bytes().to_vec() }
    }

    #[tokio::test]
    async fn only_the_same_entry_waits_and_nothing_is_left_behind() {
        let lanes = Lanes::default();
        let held = lanes.enter(key("a")).await;
        let elsewhere = lanes.enter(key("b")).await;
        {
            let mut waiting = std::pin::pin!(lanes.enter(key("a")));
            assert!(futures::poll!(waiting.as_mut()).is_pending());
        }
        drop(held);
        let (first, second) = lanes.enter_both(key("c"), key("a")).await;
        assert!(second.is_some());
        drop((first, second, elsewhere));
        assert!(lanes.slots.lock().expect("slots").is_empty());
    }
}
