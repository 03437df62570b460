//! Putting the lines of many files in order while they are being searched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::read::{Truncation, TruncationReason};
use super::GrepLine;
use super::sink::FileLines;

/// Takes files in any order and keeps the first lines in the order of the files' indices.
#[derive(Debug)]
pub(super) struct Found {
    max_matches: u64,
    max_bytes: usize,
    merged: Mutex<Merged>,
    /// Files not begun yet cannot be in the answer any more.
    is_full: AtomicBool,
}

#[derive(Debug, Default)]
struct Merged {
    lines: Vec<GrepLine>,
    n_sent: u64,
    n_bytes: usize,
    total: u64,
    /// The bound that was reached.
    reason: Option<TruncationReason>,
    /// Files that came before one with a lower index.
    waiting: BTreeMap<usize, FileLines>,
    waiting_matches: u64,
    waiting_bytes: usize,
    /// The index that is merged next.
    next: usize,
}

impl Found {
    pub(super) fn new(max_matches: usize, max_bytes: usize) -> Self {
        let max_matches = max_matches as u64;
        Self { max_matches, max_bytes, merged: Mutex::default(), is_full: AtomicBool::new(false) }
    }

    /// Whether files whose index is taken from now on need only be counted.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// A file without lines.
    pub(super) fn skip(&self, index: usize) {
        self.add(index, FileLines { lines: Vec::new(), n_matches: 0 });
    }

    /// The lines of the file with this index; each index comes once.
    pub(super) fn add(&self, index: usize, file: FileLines) {
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        merged.waiting_matches += matches_in(&file.lines);
        merged.waiting_bytes += bytes_in(&file.lines);
        merged.waiting.insert(index, file);
        loop {
            let next = merged.next;
            let Some(file) = merged.waiting.remove(&next) else { break };
            merged.next += 1;
            merged.waiting_matches -= matches_in(&file.lines);
            merged.waiting_bytes -= bytes_in(&file.lines);
            merge(&mut merged, file, self.max_matches, self.max_bytes);
        }
        // What waits comes before any file that is not begun yet.
        if merged.reason.is_some()
            || merged.n_sent + merged.waiting_matches > self.max_matches
            || merged.n_bytes + merged.waiting_bytes > self.max_bytes
        {
            self.is_full.store(true, Ordering::Release);
        }
    }

    /// The lines, and what was left out. `complete` says that all files came.
    pub(super) fn finish(self, complete: bool) -> (Vec<GrepLine>, Option<Truncation>) {
        let mut merged = self.merged.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Time ran out in a file before these.
        while let Some((_, file)) = merged.waiting.pop_first() {
            merge(&mut merged, file, self.max_matches, self.max_bytes);
        }
        let reason = if complete { merged.reason } else { Some(TruncationReason::Time) };
        let (total, sent) = (merged.total, merged.n_sent);
        let reason = reason.or((sent < total).then_some(TruncationReason::Count));
        let truncation = reason.map(|reason| Truncation {
            reason,
            total: complete.then_some(total),
            sent,
            next_offset: 0,
        });
        (merged.lines, truncation)
    }
}

/// Appends what still fits, and counts the rest.
fn merge(merged: &mut Merged, file: FileLines, max_matches: u64, max_bytes: usize) {
    merged.total += file.n_matches;
    if merged.reason.is_some() {
        return;
    }
    for line in file.lines {
        if !line.is_context && merged.n_sent == max_matches {
            merged.reason = Some(TruncationReason::Count);
            return;
        }
        if merged.n_bytes + line.text.len() > max_bytes {
            merged.reason = Some(TruncationReason::Bytes);
            return;
        }
        merged.n_bytes += line.text.len();
        merged.n_sent += u64::from(!line.is_context);
        merged.lines.push(line);
    }
}

fn matches_in(lines: &[GrepLine]) -> u64 {
    lines.iter().filter(|line| !line.is_context).count() as u64
}

fn bytes_in(lines: &[GrepLine]) -> usize {
    lines.iter().map(|line| line.text.len()).sum()
}
