//! The files of one workspace.
//!
//! ```text
//! grpc::file_service ──▶ Files ──▶ Root (openat2) ──▶ tree
//!                          ├──▶ FilePool: Ledger (who read what), threads, shared by all workspaces
//!                          ├──▶ Lanes (one change at a time per entry)
//!                          ├──▶ Stage (temporary, fsync, rename)
//!                          └──▶ Import and Pack ──▶ archive (tar, without a file system)
//! ```
//!
//! Paths come in parsed, results go out as plain types; nothing here knows gRPC. All system calls run on blocking threads,
//! a bounded number at a time, and long work ends soon after its caller has gone.

mod copy;
mod edit;
mod error;
mod glob;
mod grep;
mod import;
mod kind;
mod lane;
mod ledger;
mod list;
mod names;
mod pack;
mod read;
mod relocate;
mod remove;
mod search;
mod stage;
mod stat;
mod stop;
mod target;
mod upload;
mod version;
mod write;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use self::edit::{EDIT_TEXT_BYTES, Edit, Edited};
pub use self::error::FileError;
pub use self::glob::{GlobAnswer, GlobQuery};
pub use self::grep::{GrepAnswer, GrepLine, GrepQuery};
pub use self::import::{Import, ImportBudget, ImportError, Imported, Unpacked};
pub use self::kind::Kind;
pub use self::list::{Entry, LIST_PAGE_ENTRIES, Listing};
pub use self::pack::{Pack, PackEnd, PackFrame, PackReport, REPORTED_ENTRIES, Skipped};
pub use self::read::{
    ByteRange, Content, Frame, LineRange, Range, Reading, Streamed, Truncation, TruncationReason,
};
pub use self::search::SearchReport;
pub use self::stage::Stage;
pub use self::stat::Description;
pub use self::upload::{Upload, Uploaded};
pub use self::version::{HASHED_UP_TO_BYTES, StatVersion, Version};
pub use self::write::Written;

use self::lane::Lanes;
use self::ledger::{Ledger, LedgerKey};
use self::stop::Stop;
use crate::path::WorkspacePath;
use crate::root::Root;

#[cfg(test)]
mod tests;

/// Calls that hold a blocking thread at one time.
const LIGHT_CALLS: usize = 32;
/// Searches, and edits of large files, that hold a blocking thread at one time.
const HEAVY_CALLS: usize = 4;
/// Imports that take their places at one time. Not among the calls above: they wait for writers, who wait for those.
const SWITCHES: usize = 4;
/// Bytes that are read at once where a file is not taken whole.
const FILE_CHUNK_BYTES: usize = 256 * 1024;

/// What the workspaces of one executor share: the ledger, and how much blocking work runs at one time.
#[derive(Debug)]
pub struct FilePool {
    ledger: Ledger,
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    switches: Arc<Semaphore>,
}

impl Default for FilePool {
    fn default() -> Self {
        Self {
            ledger: Ledger::default(),
            light: Arc::new(Semaphore::new(LIGHT_CALLS)),
            heavy: Arc::new(Semaphore::new(HEAVY_CALLS)),
            switches: Arc::new(Semaphore::new(SWITCHES)),
        }
    }
}

/// How long a piece of blocking work may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Milliseconds.
    Light,
    /// Seconds, or much memory.
    Heavy,
}

/// The files of one workspace. Clones are the same workspace.
#[derive(Clone, Debug)]
pub struct Files {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    workspace: String,
    root: Arc<Root>,
    stage: Stage,
    lanes: Lanes,
    /// Held while an Import takes its place.
    switching: Arc<tokio::sync::Mutex<()>>,
    pool: Arc<FilePool>,
}

impl Files {
    /// The files below `root`. `workspace` is the workspace's id, under which the ledger keeps what was read.
    pub fn new(workspace: impl Into<String>, root: Arc<Root>, stage: Stage, pool: Arc<FilePool>) -> Self {
        let (lanes, switching) = (Lanes::default(), Arc::default());
        let inner = Inner { workspace: workspace.into(), root, stage, lanes, switching, pool };
        Self { inner: Arc::new(inner) }
    }

    /// The tree, for parsing paths and for opening a command's working directory.
    pub fn root(&self) -> &Root {
        &self.inner.root
    }

    /// Runs `work` on a blocking thread when its turn has come. Dropping the future tells the work to end early.
    async fn blocking<T: Send + 'static>(
        &self,
        weight: Weight,
        work: impl FnOnce(&Inner, &Stop) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let gate = match weight {
            Weight::Light => &self.inner.pool.light,
            Weight::Heavy => &self.inner.pool.heavy,
        };
        let permit = Arc::clone(gate).acquire_owned().await.map_err(|_| FileError::Cancelled)?;
        let inner = Arc::clone(&self.inner);
        let (stop, _stop_on_drop) = Stop::new();
        let running = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            stop.check()?;
            work(&inner, &stop)
        });
        running.await.unwrap_or(Err(FileError::Internal))
    }
}

impl Inner {
    fn ledger_key(&self, actor: &str, path: &WorkspacePath) -> LedgerKey {
        LedgerKey::new(&self.workspace, actor, path)
    }
}
