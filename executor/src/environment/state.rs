//! The product's own folder for one environment: what is in it, and how a small record is replaced without ever being
//! half written.

mod reserve;

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use reserve::Reserve;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Opens `path`, which must be a directory and no link, for use by descriptor.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Makes `path` with mode 0700 unless it is there, and opens it. A folder that is there is closed to others.
pub(super) fn make_private(path: &Path) -> io::Result<OwnedFd> {
    make_private_at(rustix::fs::CWD, path)
}

/// [`make_private`] of `name` in `directory`.
pub(super) fn make_private_at(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
) -> io::Result<OwnedFd> {
    let made = make_directory_at(directory, name)?;
    rustix::fs::fchmod(&made, Mode::RWXU)?;
    Ok(made)
}

/// Makes `name` in `directory` with mode 0700 unless it is there, and opens it. The mode of a folder that is there stays.
pub(super) fn make_directory_at(
    directory: impl AsFd,
    name: impl rustix::path::Arg + Copy,
) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&directory, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::fs::openat(&directory, name, DIRECTORY, Mode::empty())?)
}

/// Whether `name` is in `directory`, as anything at all.
pub(super) fn exists(directory: impl AsFd, name: &str) -> io::Result<bool> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens the lock file `name` in `directory`, made if it is missing. A file, since network file systems lock no folders.
pub(super) fn open_lock(directory: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?)
}

/// Takes the folder or lock file for this process; `false` when another process has it. Held until `held` is closed.
pub(super) fn lock(held: &OwnedFd) -> io::Result<bool> {
    match rustix::fs::flock(held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The records in one folder.
#[derive(Debug)]
pub(super) struct Records {
    directory: OwnedFd,
    reserve: Option<Reserve>,
}

impl Records {
    /// Those in `directory`.
    pub(super) fn of(directory: OwnedFd) -> Self {
        Self { directory, reserve: None }
    }

    /// The same, with room kept for them that nothing else on the volume can take. Where the volume has no room for that any
    /// more, it is tried again after later writes.
    pub(super) fn with_reserve(self) -> Self {
        let reserve = Reserve::default();
        reserve.fill(&self.directory);
        Self { reserve: Some(reserve), ..self }
    }

    /// The record `name`, or `None` when there is none. Longer than `max_bytes` or not UTF-8 is an error.
    pub(super) fn read(&self, name: &str, max_bytes: usize) -> io::Result<Option<String>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        file.take(max_bytes as u64 + 1).read_to_string(&mut text)?;
        if text.len() > max_bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "record is too long"));
        }
        Ok(Some(text))
    }

    /// Replaces the record `name`: when this returns, the new text is on disk; before, the old one is.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let Some(reserve) = &self.reserve else { return self.replace(name, text) };
        match self.replace(name, text) {
            Err(error) if reserve::is_full(&error) && reserve.give_up(&self.directory) => {
                tracing::warn!("the volume is full: the executor's own state takes its reserve");
                self.replace(name, text)?;
            }
            written => written?,
        }
        reserve.fill(&self.directory);
        Ok(())
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let directory = self.directory.as_fd();
        let next = format!("{name}.next");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::openat(
            directory,
            next.as_str(),
            flags,
            Mode::RUSR | Mode::WUSR,
        )?);
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        rustix::fs::renameat(directory, next.as_str(), directory, name)?;
        rustix::fs::fsync(directory)?;
        Ok(())
    }
}
