//! One entry of an archive, checked as far as that can be done without a file system.

use super::error::{ArchiveError, Refused, shown};
use crate::path::{MAX_NAME_BYTES, MAX_PATH_BYTES};

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Names joined by single slashes, neither `.` nor `..` among them; empty for the folder itself.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits as they are to be: set-id and sticky bits are gone, nobody but the owner writes, and the owner may
    /// always read and write, and enter directories.
    pub mode: u32,
    /// When it was last changed.
    pub mtime: Mtime,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file with so many bytes of content.
    File {
        /// Bytes of content, at most 2^63-1.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// As it is written. Whether it stays inside depends on the link's place: [`stays_inside`].
        target: Vec<u8>,
    },
    /// Another name of a regular file that this archive brought before.
    HardLink {
        /// Path of that file, spelt as [`Entry::path`].
        target: Vec<u8>,
    },
}

/// A time of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mtime {
    /// Seconds since 1970-01-01 UTC, rounded down.
    pub seconds: i64,
    /// Nanoseconds of that second, below 1,000,000,000.
    pub nanos: u32,
}

/// An entry's name in its one spelling, and whether it ended in a slash.
pub(super) fn path(name: &[u8]) -> Result<(Vec<u8>, bool), ArchiveError> {
    let refuse = |refused| Err(ArchiveError::entry(name, refused));
    if name.is_empty() {
        return refuse(Refused::Empty);
    }
    if name.contains(&0) {
        return refuse(Refused::Nul);
    }
    if name[0] == b'/' {
        return refuse(Refused::Absolute);
    }
    let mut path = Vec::with_capacity(name.len());
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => continue,
            b".." => return refuse(Refused::DotDot),
            _ if part.len() > MAX_NAME_BYTES => return refuse(Refused::TooLong),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    if path.len() > MAX_PATH_BYTES {
        return refuse(Refused::TooLong);
    }
    Ok((path, name.ends_with(b"/")))
}

/// The target of the symbolic link `name`, as far as it can be judged without knowing the link's place.
pub(super) fn link_target(name: &[u8], target: Vec<u8>) -> Result<Vec<u8>, ArchiveError> {
    if target.contains(&0) {
        return Err(ArchiveError::entry(name, Refused::Nul));
    }
    if target.len() > MAX_PATH_BYTES {
        return Err(ArchiveError::entry(name, Refused::TooLong));
    }
    if target.is_empty() {
        return Err(ArchiveError::entry(name, Refused::LinkLeaves { target: shown(&target) }));
    }
    Ok(target)
}

/// Whether a symbolic link stays inside a tree: the link lies in a directory `depth` levels below the root and points to
/// `target`.
///
/// It may climb at its beginning, at most to the root, and nowhere else: after a name, `..` leads to the parent of whatever
/// that name is, and if that is a link, only the kernel knows which directory it is. So a tree whose links all stay inside
/// by this rule has no chain of links that leaves it, whatever is imported in which order.
pub fn stays_inside(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target[0] == b'/' || target.contains(&0) {
        return false;
    }
    let mut n_climbed = 0;
    let mut has_descended = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if has_descended => return false,
            b".." => n_climbed += 1,
            _ => has_descended = true,
        }
    }
    n_climbed <= depth
}

/// Permission bits of a file, from those of an archive.
pub(super) fn file_mode(mode: u32) -> u32 {
    mode & 0o755 | 0o600
}

/// Permission bits of a directory, from those of an archive.
pub(super) fn directory_mode(mode: u32) -> u32 {
    mode & 0o755 | 0o700
}
