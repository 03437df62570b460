//! A folder in which a tree of files waits until it is whole.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{BESIDE_PREFIX, JournalEntry, Stage, random_name, sweep};
use crate::files::FileError;
use crate::path::WorkspacePath;
use crate::root::Root;

/// Nobody else enters it.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o700);

/// A folder for a tree on its way, on the mount of the directory that it is for. Dropped, it is removed with all that is in it, on
/// a thread of its own; [`StagedTree::remove`] waits for that.
#[derive(Debug)]
pub(in crate::files) struct StagedTree {
    /// The folder, for resolving beneath it.
    folder: Root,
    remains: Option<Remains>,
}

/// What is to be removed: the name of the folder, and the entry that says where it lies.
#[derive(Debug)]
struct Remains {
    parent: Arc<OwnedFd>,
    name: String,
    journal: Option<JournalEntry>,
}

impl Stage {
    /// Makes a folder whose entries can be renamed into `directory`, which lies at `path`. In the stage folder, or, when that
    /// is on another mount, in `directory` itself after an entry in the stage folder says so.
    pub(in crate::files) fn create_tree(
        &self,
        directory: &OwnedFd,
        path: &WorkspacePath,
    ) -> Result<StagedTree, FileError> {
        let fail = |errno| FileError::system(path, errno);
        let remains = if mount_of(&self.directory).map_err(fail)? == mount_of(directory).map_err(fail)? {
            let parent = Arc::clone(&self.directory);
            Remains { parent, name: random_name(path, "")?, journal: None }
        } else {
            let name = random_name(path, BESIDE_PREFIX)?;
            let journal = Some(self.announce(path, &path.join(name.as_bytes()))?);
            let parent = directory.try_clone().map_err(|_| fail(Errno::MFILE))?;
            Remains { parent: Arc::new(parent), name, journal }
        };
        rustix::fs::mkdirat(&remains.parent, &remains.name, FOLDER_MODE).map_err(fail)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat(&remains.parent, &remains.name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(errno) => {
                let _ = remains.remove();
                return Err(fail(errno));
            }
        };
        Ok(StagedTree { folder: Root::new(folder, "/".into()), remains: Some(remains) })
    }
}

impl StagedTree {
    /// The folder.
    pub(in crate::files) fn folder(&self) -> &Root {
        &self.folder
    }

    /// Makes everything durable that was written to the file system until now, the tree's content included.
    pub(in crate::files) fn sync(&self, path: &WorkspacePath) -> Result<(), FileError> {
        rustix::io::retry_on_intr(|| rustix::fs::syncfs(&self.folder))
            .map_err(|errno| FileError::system(path, errno))
    }

    /// Lets go of the folder when what it was for is done: an empty one is removed at once, what is left in another one later.
    pub(in crate::files) fn release(mut self) {
        let is_gone = self.remains.as_ref().is_some_and(|remains| {
            rustix::fs::unlinkat(&remains.parent, &remains.name, AtFlags::REMOVEDIR).is_ok()
        });
        if is_gone {
            self.remains = None;
        }
    }

    /// Removes the folder and all that is left in it.
    pub(in crate::files) fn remove(mut self) {
        if let Some(remains) = self.remains.take() {
            remains.remove_or_tell();
        }
    }
}

impl Drop for StagedTree {
    fn drop(&mut self) {
        let Some(remains) = self.remains.take() else { return };
        match tokio::runtime::Handle::try_current() {
            // A large tree takes a while, and whoever drops it may serve other calls.
            Ok(runtime) => drop(runtime.spawn_blocking(|| remains.remove_or_tell())),
            Err(_) => remains.remove_or_tell(),
        }
    }
}

impl Remains {
    fn remove(&self) -> rustix::io::Result<()> {
        sweep::remove(&self.parent, self.name.as_bytes())
    }

    fn remove_or_tell(mut self) {
        if let Err(errno) = self.remove() {
            tracing::warn!(errno = errno.raw_os_error(), "a staged tree stays until the next start");
            // So that the next start finds it.
            if let Some(journal) = self.journal.take() {
                journal.leave();
            }
        }
    }
}

impl JournalEntry {
    /// Leaves the entry where it is.
    fn leave(mut self) {
        self.name.clear();
    }
}

/// The mount that a directory is on: renaming works within one alone. On kernels that do not tell, the device stands for it.
fn mount_of(directory: impl AsFd) -> rustix::io::Result<u64> {
    let facts = rustix::fs::statx(&directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if facts.stx_mask & StatxFlags::MNT_ID.bits() != 0 {
        return Ok(facts.stx_mnt_id);
    }
    Ok(rustix::fs::fstat(&directory)?.st_dev)
}
