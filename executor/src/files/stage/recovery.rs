//! What a new executor does with what a dead one left.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{BESIDE_PREFIX, JOURNAL_PREFIX};
use crate::path::WorkspacePath;
use crate::root::Root;

/// Directories below the stage folder that are entered; deeper ones are not ours.
const MAX_DEPTH: usize = 64;

/// Removes journalled temporaries from the tree, then empties the stage folder.
pub(super) fn recover(stage: &OwnedFd, root: &Root) -> rustix::io::Result<()> {
    for (name, _) in entries(stage)? {
        if name.starts_with(JOURNAL_PREFIX.as_bytes())
            && let Ok(text) = rustix::fs::readlinkat(stage, name.as_slice(), Vec::new())
        {
            remove_temporary(root, text.as_bytes())?;
        }
    }
    empty(stage, MAX_DEPTH)
}

/// Removes what one journal entry names, and nothing that is not one of our temporaries.
fn remove_temporary(root: &Root, text: &[u8]) -> rustix::io::Result<()> {
    let Some(leaf) = WorkspacePath::from_bytes(text).ok().and_then(|path| path.leaf()) else { return Ok(()) };
    let is_ours = leaf
        .name
        .strip_prefix(BESIDE_PREFIX.as_bytes())
        .is_some_and(|digits| digits.len() == 32 && digits.iter().all(u8::is_ascii_hexdigit));
    // A parent that is gone took the temporary along.
    let Ok(parent) = root.open_directory(&leaf.parent) else { return Ok(()) };
    if !is_ours {
        return Ok(());
    }
    match rustix::fs::unlinkat(&parent, leaf.name.as_slice(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Removes everything in a directory, never following a link.
fn empty(directory: impl AsFd, depth: usize) -> rustix::io::Result<()> {
    for (name, file_type) in entries(&directory)? {
        let name = name.as_slice();
        if file_type == FileType::Directory {
            if depth == 0 {
                return Err(Errno::LOOP);
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let below = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
            empty(below, depth - 1)?;
            rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?;
        } else {
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        }
    }
    Ok(())
}

fn entries(directory: impl AsFd) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut file_type = entry.file_type();
        if file_type == FileType::Unknown {
            let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            file_type = FileType::from_raw_mode(stat.st_mode);
        }
        found.push((name.to_vec(), file_type));
    }
    Ok(found)
}
