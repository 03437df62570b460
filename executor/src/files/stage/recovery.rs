//! What a new executor does with what a dead one left.

use std::os::fd::OwnedFd;

use super::{BESIDE_PREFIX, JOURNAL_PREFIX, sweep};
use crate::files::names::read_names;
use crate::path::WorkspacePath;
use crate::root::Root;

/// Removes journalled temporaries from the tree, then empties the stage folder.
pub(super) fn recover(stage: &OwnedFd, root: &Root) -> rustix::io::Result<()> {
    for (name, _) in read_names(stage)? {
        if name.starts_with(JOURNAL_PREFIX.as_bytes())
            && let Ok(text) = rustix::fs::readlinkat(stage, name.as_slice(), Vec::new())
        {
            remove_temporary(root, text.as_bytes())?;
        }
    }
    sweep::empty(stage)
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
    sweep::remove(&parent, &leaf.name)
}
