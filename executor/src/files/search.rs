//! What Grep and Glob share: the walk, its bounds, and the report of what was not looked at.

mod ignored;
mod walk;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) use self::walk::Walk;
use super::stop::Stop;

/// Threads that walk and search.
pub(super) const SEARCH_THREADS: usize = 2;

/// What a search did not look at, so that nothing found never reads as nothing there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchReport {
    /// Files whose content was searched, or whose path was matched.
    pub files_searched: u64,
    /// Files with a NUL byte in what was read.
    pub binary_files_skipped: u64,
    /// Symbolic links met and not followed.
    pub links_skipped: u64,
    /// FIFOs, sockets, devices.
    pub special_files_skipped: u64,
    /// What the system refused, what vanished, and files with a line too long to be searched.
    pub unreadable_skipped: u64,
}

/// A [`SearchReport`] in the making.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) searched: Counter,
    pub(super) binary: Counter,
    pub(super) links: Counter,
    pub(super) special: Counter,
    pub(super) unreadable: Counter,
}

/// A number that threads add to.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub(super) fn report(&self) -> SearchReport {
        SearchReport {
            files_searched: self.searched.get(),
            binary_files_skipped: self.binary.get(),
            links_skipped: self.links.get(),
            special_files_skipped: self.special.get(),
            unreadable_skipped: self.unreadable.get(),
        }
    }
}

/// When a search ends early.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) deadline: Instant,
    pub(super) stop: Stop,
}

impl Budget {
    /// Whether the time is over or the caller has gone.
    pub(super) fn is_spent(&self) -> bool {
        self.stop.is_raised() || Instant::now() >= self.deadline
    }
}
