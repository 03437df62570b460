//! The highest lease epoch seen per session, kept where it outlives the executor.
//!
//! A harness that lost its lease without noticing must not write. Its successor's first effect puts the higher epoch on
//! disk before anything else happens, so that the older one is refused even by another executor process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::identity::{from_hex, to_hex};
use super::state::Records;

/// The table's name in the state folder.
const FILE: &str = "leases";
const HEADER: &str = "mooring leases 1";
/// Sessions that one environment remembers.
const MAX_SESSIONS: usize = 10_000;
/// The table's size at most: a header, and per session 506 digits, 19 digits and two separators.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;

/// Why a lease did not admit an effect.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another harness took the session over.
    #[error("stale lease: have epoch {have}, a higher one was seen")]
    Stale {
        /// As the caller has it.
        have: u64,
    },
    /// More sessions than one environment remembers.
    #[error("more than {MAX_SESSIONS} sessions in one environment")]
    TooManySessions,
    /// The epoch could not be put on disk, so the effect must not happen.
    #[error("cannot keep the lease epoch")]
    Keep(#[source] std::io::Error),
    /// The table on disk is not one of ours.
    #[error("the lease table is damaged")]
    Damaged,
}

/// The table. Memory holds what is on disk, never more.
#[derive(Debug)]
pub(super) struct Leases {
    table: Arc<Mutex<Table>>,
}

#[derive(Debug)]
struct Table {
    records: Records,
    epochs: BTreeMap<Arc<str>, u64>,
}

impl Leases {
    /// Reads the table from `records`; absent is empty.
    ///
    /// # Errors
    /// [`LeaseError::Damaged`] rather than a guess, [`LeaseError::Keep`] when it cannot be read.
    pub(super) fn open(records: Records) -> Result<Self, LeaseError> {
        let text = records.read(FILE, MAX_FILE_BYTES).map_err(LeaseError::Keep)?;
        let epochs = match text {
            None => BTreeMap::new(),
            Some(text) => parse(&text).ok_or(LeaseError::Damaged)?,
        };
        Ok(Self { table: Arc::new(Mutex::new(Table { records, epochs })) })
    }

    /// Admits an effect of `session` under `lease_epoch`, after a higher one than before is on disk.
    pub(super) async fn admit(&self, session: &Arc<str>, lease_epoch: u64) -> Result<(), LeaseError> {
        let mut table = Arc::clone(&self.table).lock_owned().await;
        match table.epochs.get(session) {
            Some(&seen) if lease_epoch < seen => return Err(LeaseError::Stale { have: lease_epoch }),
            Some(&seen) if lease_epoch == seen => return Ok(()),
            Some(_) => {}
            None if table.epochs.len() >= MAX_SESSIONS => return Err(LeaseError::TooManySessions),
            None => {}
        }
        let session = Arc::clone(session);
        // The lock travels with the write: a caller that goes away leaves memory and disk equal.
        let written = tokio::task::spawn_blocking(move || {
            let mut epochs = table.epochs.clone();
            epochs.insert(session, lease_epoch);
            table.records.write(FILE, &print(&epochs))?;
            table.epochs = epochs;
            Ok(())
        });
        written.await.map_err(std::io::Error::other).flatten().map_err(LeaseError::Keep)
    }
}

fn print(epochs: &BTreeMap<Arc<str>, u64>) -> String {
    let mut text = format!("{HEADER}\n");
    for (session, epoch) in epochs {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{epoch} {}", to_hex(session.as_bytes()));
    }
    text
}

fn parse(text: &str) -> Option<BTreeMap<Arc<str>, u64>> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEADER {
        return None;
    }
    lines
        .map(|line| {
            let (epoch, session) = line.split_once(' ')?;
            let session = String::from_utf8(from_hex(session)?).ok()?;
            Some((Arc::from(session), epoch.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
