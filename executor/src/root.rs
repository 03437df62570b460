//! The handle on one workspace tree, and the only way in which a caller's path becomes a descriptor.
//!
//! Resolution is the kernel's: `openat2(2)` with `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS` on a directory descriptor. Links
//! that stay inside are followed, everything that would leave the tree fails with `EXDEV`, whatever is swapped meanwhile.

mod fault;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use mooring_proto::v1::ErrorCode;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub use self::fault::Fault;
use crate::path::{PathError, WorkspacePath};

#[cfg(test)]
mod tests;

/// How often a resolution is tried again when the kernel could not prove, because of a concurrent rename or mount, that `..`
/// stayed beneath the root (openat2(2), EAGAIN).
const RESOLVE_ATTEMPTS: usize = 64;

/// A workspace tree.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    visible: PathBuf,
}

/// A path could not be resolved beneath the root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {}", .fault.sentence())]
pub struct ResolveError {
    /// The path as the caller gave it, escaped.
    pub path: WorkspacePath,
    /// What the kernel said.
    pub fault: Fault,
}

impl ResolveError {
    /// The stable code of this refusal.
    pub fn code(&self) -> ErrorCode {
        self.fault.code()
    }
}

impl Root {
    /// Opens the directory at `path`, which commands see under the same name.
    ///
    /// # Errors
    /// Any error of `open(2)`, `ENOTDIR` when it is no directory.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self::new(directory, path.to_owned()))
    }

    /// Takes an open directory. `visible` is the absolute path under which commands see it.
    pub fn new(directory: OwnedFd, visible: PathBuf) -> Self {
        Self { directory, visible }
    }

    /// The absolute path under which commands see the root.
    pub fn visible(&self) -> &Path {
        &self.visible
    }

    /// Parses a caller's path against this root.
    ///
    /// # Errors
    /// As [`WorkspacePath::parse`].
    pub fn parse(&self, text: &str) -> Result<WorkspacePath, PathError> {
        WorkspacePath::parse(text, self.visible.as_os_str().as_bytes())
    }

    /// Opens `path` beneath the root, close-on-exec and never as a controlling terminal.
    ///
    /// Links are followed as long as they stay inside; with [`OFlags::NOFOLLOW`] a link as the last name is refused. `mode`
    /// counts only where `flags` create. Add [`OFlags::NONBLOCK`] wherever the path may be a FIFO or a device.
    ///
    /// # Errors
    /// [`ResolveError`] with the kernel's answer; [`Fault::Contended`] after a bounded number of tries while the tree is being
    /// renamed.
    pub fn open_beneath(
        &self,
        path: &WorkspacePath,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, ResolveError> {
        self.resolve(path, flags, mode, ResolveFlags::empty())
    }

    /// As [`Root::open_beneath`], but no link is followed in any part of the path. For paths that a walk found.
    ///
    /// # Errors
    /// As [`Root::open_beneath`]; [`Fault::Links`] when any part is a link.
    pub fn open_without_links(&self, path: &WorkspacePath, flags: OFlags) -> Result<OwnedFd, ResolveError> {
        self.resolve(path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    }

    /// Opens a directory beneath the root for reading its entries, for `fsync`, and as a command's working directory.
    ///
    /// # Errors
    /// As [`Root::open_beneath`]; [`Fault::NotDirectory`] when it is something else.
    pub fn open_directory(&self, path: &WorkspacePath) -> Result<OwnedFd, ResolveError> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    fn resolve(
        &self,
        path: &WorkspacePath,
        flags: OFlags,
        mode: Mode,
        further: ResolveFlags,
    ) -> Result<OwnedFd, ResolveError> {
        // openat2(2) refuses every flag that O_PATH would ignore.
        let terminal = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY };
        let flags = flags | OFlags::CLOEXEC | terminal;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | further;
        let mut errno = Errno::AGAIN;
        for _ in 0..RESOLVE_ATTEMPTS {
            match rustix::fs::openat2(&self.directory, path.as_system(), flags, mode, how) {
                Ok(descriptor) => return Ok(descriptor),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(other) => {
                    errno = other;
                    break;
                }
            }
        }
        Err(ResolveError { path: path.clone(), fault: Fault::of(errno) })
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}
