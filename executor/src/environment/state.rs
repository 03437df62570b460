//! The product's own folder for one environment: what is in it, and how a small record is replaced without ever being
//! half written.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

const DIRECTORY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Opens `path`, which must be a directory and no link, for use by descriptor.
pub(super) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Makes `path` with mode 0700 unless it is there, and opens it. A folder that is there is closed to others.
pub(super) fn make_private(path: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let directory = open_directory(path)?;
    rustix::fs::fchmod(&directory, Mode::RWXU)?;
    Ok(directory)
}

/// Takes the folder for this process; `false` when another process has it. Held until `directory` is closed.
pub(super) fn lock(directory: &OwnedFd) -> io::Result<bool> {
    match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The record `name`, or `None` when there is none. Longer than `max_bytes` or not UTF-8 is an error.
pub(super) fn read_record(directory: impl AsFd, name: &str, max_bytes: usize) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
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
pub(super) fn write_record(directory: impl AsFd, name: &str, text: &str) -> io::Result<()> {
    let directory = directory.as_fd();
    let next = format!("{name}.next");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file =
        std::fs::File::from(rustix::fs::openat(directory, next.as_str(), flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    rustix::fs::renameat(directory, next.as_str(), directory, name)?;
    rustix::fs::fsync(directory)?;
    Ok(())
}
