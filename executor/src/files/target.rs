//! The directory entry that a call with effects is about.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::FileError;
use super::kind::Kind;
use super::lane::LaneKey;
use crate::path::{Leaf, WorkspacePath};
use crate::root::{Fault, ResolveError, Root};

/// Directories that a Write makes: the umask of the executor takes bits away.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);

/// An open parent directory and one plain name in it. Every further call is relative to the descriptor, so nothing that is
/// renamed meanwhile leads elsewhere.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: WorkspacePath,
    pub(super) parent: OwnedFd,
    pub(super) name: Vec<u8>,
    /// The path ended in a slash.
    pub(super) is_directory: bool,
    key: LaneKey,
    device: u64,
    /// Directories that were made for it, outermost first: where, and under which name.
    made: Vec<(OwnedFd, Vec<u8>)>,
}

impl Target {
    /// Opens the parent of `path`, which must exist. `action` is the past participle of what is to happen.
    pub(super) fn open(root: &Root, path: &WorkspacePath, action: &'static str) -> Result<Self, FileError> {
        let leaf = leaf_of(path, action)?;
        let parent = root.open_directory(&leaf.parent)?;
        Self::new(path, leaf, parent, Vec::new())
    }

    /// As [`Target::open`], and makes the directories that are missing on the way. [`Target::undo_parents`] takes them back.
    pub(super) fn open_making_parents(
        root: &Root,
        path: &WorkspacePath,
        action: &'static str,
    ) -> Result<Self, FileError> {
        let leaf = leaf_of(path, action)?;
        let mut made = Vec::new();
        let parent = match root.open_directory(&leaf.parent) {
            Ok(parent) => parent,
            Err(ResolveError { fault: Fault::NotFound, .. }) => {
                match make_path(root, &leaf.parent, &mut made) {
                    Ok(parent) => parent,
                    Err(error) => {
                        undo(&made);
                        return Err(error);
                    }
                }
            }
            Err(other) => return Err(other.into()),
        };
        Self::new(path, leaf, parent, made)
    }

    fn new(
        path: &WorkspacePath,
        leaf: Leaf,
        parent: OwnedFd,
        made: Vec<(OwnedFd, Vec<u8>)>,
    ) -> Result<Self, FileError> {
        let stat = rustix::fs::fstat(&parent).map_err(|errno| FileError::system(path, errno))?;
        let key = LaneKey { device: stat.st_dev, inode: stat.st_ino, name: leaf.name.clone() };
        let device = stat.st_dev;
        let Leaf { name, is_directory, .. } = leaf;
        Ok(Self { path: path.clone(), parent, name, is_directory, key, device, made })
    }

    /// The lane of this entry.
    pub(super) fn lane(&self) -> LaneKey {
        self.key.clone()
    }

    /// The device that the parent is on.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// What is there now; a link is a link. `None` when nothing is.
    pub(super) fn stat(&self) -> Result<Option<Stat>, FileError> {
        match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.system(errno)),
        }
    }

    /// Opens the entry for reading when it is a regular file, and refuses links and everything else.
    pub(super) fn open_regular(&self) -> Result<(OwnedFd, Stat), FileError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP) => return Err(self.not_regular(Kind::Link)),
            Err(Errno::NXIO) => return Err(self.not_regular(Kind::Special)),
            Err(errno) => return Err(self.system(errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| self.system(errno))?;
        match Kind::of(&stat) {
            Kind::Regular => Ok((file, stat)),
            kind @ (Kind::Directory | Kind::Link | Kind::Special) => Err(self.not_regular(kind)),
        }
    }

    /// Makes the entry's current state durable.
    pub(super) fn sync_parent(&self) -> Result<(), FileError> {
        sync(&self.path, &self.parent)
    }

    /// Removes the directories that were made for this target, as far as they are still empty.
    pub(super) fn undo_parents(&self) {
        undo(&self.made);
    }

    pub(super) fn system(&self, errno: Errno) -> FileError {
        FileError::system(&self.path, errno)
    }

    pub(super) fn not_regular(&self, kind: Kind) -> FileError {
        FileError::NotRegular { path: self.path.clone(), kind }
    }
}

fn leaf_of(path: &WorkspacePath, action: &'static str) -> Result<Leaf, FileError> {
    path.leaf().ok_or_else(|| FileError::NoEntry { path: path.clone(), action })
}

/// `fsync`. A directory on a file system that has no such call (`EINVAL`) has nothing to wait for.
pub(super) fn sync(path: &WorkspacePath, descriptor: impl AsFd) -> Result<(), FileError> {
    match rustix::io::retry_on_intr(|| rustix::fs::fsync(&descriptor)) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(FileError::system(path, errno)),
    }
}

/// Opens a directory whose path is missing in part, making what is missing.
///
/// Each prefix is resolved anew beneath the root, so that links and `..` mean what the kernel says they mean.
fn make_path(
    root: &Root,
    path: &WorkspacePath,
    made: &mut Vec<(OwnedFd, Vec<u8>)>,
) -> Result<OwnedFd, FileError> {
    let mut prefix = WorkspacePath::root();
    let mut here = root.open_directory(&prefix)?;
    for name in path.names() {
        prefix = prefix.join(name);
        here = match root.open_directory(&prefix) {
            Ok(there) => there,
            Err(ResolveError { fault: Fault::NotFound, .. }) => {
                match rustix::fs::mkdirat(&here, name, DIRECTORY_MODE) {
                    Ok(()) => {
                        sync(&prefix, &here)?;
                        made.push((here, name.to_vec()));
                    }
                    // Somebody else made it, or it is a link to nothing: the next line tells them apart.
                    Err(Errno::EXIST) => {}
                    Err(errno) => return Err(FileError::system(&prefix, errno)),
                }
                root.open_directory(&prefix)?
            }
            Err(other) => return Err(other.into()),
        };
    }
    Ok(here)
}

fn undo(made: &[(OwnedFd, Vec<u8>)]) {
    for (parent, name) in made.iter().rev() {
        if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_err() {
            return;
        }
    }
}
