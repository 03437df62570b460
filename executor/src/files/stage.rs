//! Where new content waits until it is whole, and how it takes its place in one step.
//!
//! A temporary lives in the workspace's stage folder, outside the tree, so that git and watchers never see it. Where the
//! stage is on another device than the target, it lies beside the target instead, and an entry in the stage folder says so
//! first: a symbolic link whose text is the temporary's path, made and removed by one system call and so never half written.

mod recovery;
mod sweep;
mod tree;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

pub(super) use self::tree::StagedTree;
use super::target::{Target, sync};
use super::version::read_at;
use super::{FILE_CHUNK_BYTES, FileError};
use crate::path::WorkspacePath;
use crate::root::{Fault, Root};

/// How names of temporaries beside a target begin; 32 hexadecimal digits follow.
const BESIDE_PREFIX: &str = ".mooring-";
/// How names of journal entries in the stage folder begin.
const JOURNAL_PREFIX: &str = "beside-";

/// Mode of a file that did not exist before, whatever the umask.
pub(super) const NEW_FILE_MODE: u32 = 0o644;

/// A workspace's stage folder.
#[derive(Debug)]
pub struct Stage {
    directory: Arc<OwnedFd>,
    device: u64,
}

/// Content on its way. Dropped before [`Staged::install`] succeeds, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Staged {
    file: OwnedFd,
    directory: Arc<OwnedFd>,
    name: String,
    /// Held for its drop.
    _journal: Option<JournalEntry>,
    size: u64,
}

/// Says where a temporary lies that is not in the stage folder; gone when dropped.
#[derive(Debug)]
struct JournalEntry {
    stage: Arc<OwnedFd>,
    name: String,
}

/// What an install may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Install {
    /// Takes the place of what is there.
    Replace,
    /// Fails with [`Fault::AlreadyExists`] when anything is there.
    Create,
}

impl Stage {
    /// Takes the stage folder, on any device, and cleans up after an executor that died: temporaries that the journal names
    /// are removed from the tree, then the folder is emptied.
    ///
    /// # Errors
    /// Any system error of reading or emptying the folder, or when it has no permission to be written.
    pub fn open(directory: impl AsFd, root: &Root) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&directory, ".", flags, Mode::empty())?;
        recovery::recover(&directory, root)?;
        let device = rustix::fs::fstat(&directory)?.st_dev;
        Ok(Self { directory: Arc::new(directory), device })
    }

    /// Makes an empty temporary for content whose target is not open yet.
    pub(super) fn create(&self, path: &WorkspacePath) -> Result<Staged, FileError> {
        let name = random_name(path, "")?;
        Staged::create(path, Arc::clone(&self.directory), name, None)
    }

    /// Makes an empty temporary that can be renamed to `target`.
    pub(super) fn create_for(&self, target: &Target) -> Result<Staged, FileError> {
        if self.device == target.device() { self.create(&target.path) } else { self.create_beside(target) }
    }

    fn create_beside(&self, target: &Target) -> Result<Staged, FileError> {
        let path = &target.path;
        let name = random_name(path, BESIDE_PREFIX)?;
        let leaf = path.leaf().ok_or(FileError::Internal)?;
        let entry = self.announce(path, &leaf.parent.join(name.as_bytes()))?;
        let parent = target.parent.try_clone().map_err(|_| FileError::system(path, Errno::MFILE))?;
        Staged::create(path, Arc::new(parent), name, Some(entry))
    }

    /// Says in the stage folder that a temporary will lie at `place`, durably. `path` is what it is for.
    fn announce(&self, path: &WorkspacePath, place: &WorkspacePath) -> Result<JournalEntry, FileError> {
        let entry =
            JournalEntry { stage: Arc::clone(&self.directory), name: random_name(path, JOURNAL_PREFIX)? };
        rustix::fs::symlinkat(place.as_bytes(), &entry.stage, &entry.name)
            .map_err(|errno| FileError::system(path, errno))?;
        sync(path, &self.directory)?;
        Ok(entry)
    }

    /// Moves content to a temporary beside its target, for a rename that would cross mounts.
    fn relocate(&self, staged: &Staged, target: &Target) -> Result<Staged, FileError> {
        let mut beside = self.create_beside(target)?;
        let mut buffer = vec![0; FILE_CHUNK_BYTES];
        loop {
            let n_read = read_at(&target.path, &staged.file, &mut buffer, beside.size)?;
            if n_read == 0 {
                break;
            }
            beside.append(&target.path, &buffer[..n_read])?;
        }
        let stat = rustix::fs::fstat(&staged.file).map_err(|errno| target.system(errno))?;
        beside.adopt(&target.path, &stat)?;
        beside.keep_attributes(&staged.file);
        beside.sync(&target.path)?;
        Ok(beside)
    }

    /// Gives synced content its name and makes that durable. A rename that crosses mounts is done with a copy beside the target.
    ///
    /// # Errors
    /// [`Fault::AlreadyExists`] for [`Install::Create`] when something is there. The old bytes are in place after any error but
    /// that of the last `fsync` of the directory.
    pub(super) fn install(
        &self,
        mut staged: Staged,
        target: &Target,
        how: Install,
    ) -> Result<OwnedFd, FileError> {
        match staged.rename(target, how) {
            Err(FileError::System { fault: Fault::Escapes, .. }) => {
                staged = self.relocate(&staged, target)?;
                staged.rename(target, how)?;
            }
            other => other?,
        }
        target.sync_parent()?;
        staged.file.try_clone().map_err(|_| target.system(Errno::MFILE))
    }
}

impl Staged {
    fn create(
        path: &WorkspacePath,
        directory: Arc<OwnedFd>,
        name: String,
        journal: Option<JournalEntry>,
    ) -> Result<Self, FileError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &name, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| FileError::system(path, errno))?;
        Ok(Self { file, directory, name, _journal: journal, size: 0 })
    }

    /// Bytes appended so far.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The open temporary.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Appends all of `content`.
    pub(super) fn append(&mut self, path: &WorkspacePath, content: &[u8]) -> Result<(), FileError> {
        let mut left = content;
        while !left.is_empty() {
            let n_written = rustix::io::retry_on_intr(|| rustix::io::pwrite(&self.file, left, self.size))
                .map_err(|errno| FileError::system(path, errno))?;
            left = &left[n_written..];
            self.size += n_written as u64;
        }
        Ok(())
    }

    /// Sets the permission bits, exactly and whatever the umask.
    pub(super) fn set_mode(&self, path: &WorkspacePath, mode: u32) -> Result<(), FileError> {
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))
            .map_err(|errno| FileError::system(path, errno))
    }

    /// Takes owner, where the system allows it, and mode from the file that is to be replaced. The set-id bits go, as they do
    /// when write(2) changes a file.
    pub(super) fn adopt(&self, path: &WorkspacePath, stat: &Stat) -> Result<(), FileError> {
        let own = rustix::fs::fstat(&self.file).map_err(|errno| FileError::system(path, errno))?;
        if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
            let (owner, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            // An unprivileged executor may keep neither; then the file becomes its own, as with any editor.
            let _ = rustix::fs::fchown(&self.file, Some(owner), Some(group))
                .or_else(|_| rustix::fs::fchown(&self.file, None, Some(group)));
        }
        self.set_mode(path, stat.st_mode & 0o1777)
    }

    /// Takes over access lists and the user's own attributes from the file that is to be replaced, where the system allows
    /// it. Capabilities and labels stay behind.
    pub(super) fn keep_attributes(&self, old: &OwnedFd) {
        let mut names = [0_u8; 4096];
        let Ok(n_bytes) = rustix::fs::flistxattr(old, &mut names) else { return };
        for name in names[..n_bytes].split(|byte| *byte == 0) {
            if !name.starts_with(b"user.") && name != b"system.posix_acl_access" {
                continue;
            }
            let mut value = vec![0_u8; 64 * 1024];
            if let Ok(n_value) = rustix::fs::fgetxattr(old, name, value.as_mut_slice()) {
                let _ = rustix::fs::fsetxattr(&self.file, name, &value[..n_value], XattrFlags::empty());
            }
        }
    }

    /// Makes the content durable.
    pub(super) fn sync(&self, path: &WorkspacePath) -> Result<(), FileError> {
        sync(path, self.file.as_fd())
    }

    fn rename(&mut self, target: &Target, how: Install) -> Result<(), FileError> {
        let renamed = match how {
            Install::Replace => {
                rustix::fs::renameat(&self.directory, &self.name, &target.parent, &target.name)
            }
            Install::Create => self.rename_to_nothing(target),
        };
        renamed.map_err(|errno| target.system(errno))?;
        // The name is the target's now.
        self.name.clear();
        Ok(())
    }

    fn rename_to_nothing(&self, target: &Target) -> Result<(), Errno> {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.directory, &self.name, &target.parent, &target.name, flags) {
            // A file system without NOREPLACE (rename(2)): a link never replaces either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(
                    &self.directory,
                    &self.name,
                    &target.parent,
                    &target.name,
                    AtFlags::empty(),
                )?;
                rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty())
            }
            other => other,
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
        // The journal entry goes last, with the field.
    }
}

impl Drop for JournalEntry {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = rustix::fs::unlinkat(&self.stage, &self.name, AtFlags::empty());
        }
    }
}

fn random_name(path: &WorkspacePath, prefix: &str) -> Result<String, FileError> {
    random_digits(prefix).map_err(|errno| FileError::system(path, errno))
}

/// `prefix` and 32 hexadecimal digits.
fn random_digits(prefix: &str) -> rustix::io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| Errno::IO)?;
    Ok(format!("{prefix}{:032x}", u128::from_le_bytes(bytes)))
}
