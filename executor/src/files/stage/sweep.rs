//! Removing what is no longer wanted in a stage folder.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::files::names::read_entries;

/// Directories that are entered from the top; what lies deeper is brought up first. Bounds descriptors and the thread's stack.
const MAX_DEPTH: usize = 32;

/// Removes the entry `name` of `directory` and everything below it, never following a link. What is not there is removed.
pub(super) fn remove(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    empty(open(&directory, name)?)?;
    rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)
}

/// Removes everything in a directory of any depth, never following a link.
pub(super) fn empty(directory: impl AsFd) -> rustix::io::Result<()> {
    let mut n_lifted = 1;
    while n_lifted > 0 {
        n_lifted = 0;
        empty_below(&directory, &directory, MAX_DEPTH, &mut n_lifted)?;
    }
    Ok(())
}

fn empty_below(
    top: &impl AsFd,
    directory: &impl AsFd,
    depth: usize,
    n_lifted: &mut usize,
) -> rustix::io::Result<()> {
    for (name, file_type) in read_entries(directory)? {
        let name = name.as_slice();
        if file_type != FileType::Directory {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
        } else if depth == 0 {
            let lifted = super::random_digits("lifted-")?;
            rustix::fs::renameat(directory, name, top, lifted)?;
            *n_lifted += 1;
        } else {
            empty_below(top, &open(directory, name)?, depth - 1, n_lifted)?;
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

fn open(directory: impl AsFd, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}
