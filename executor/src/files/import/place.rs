//! Where an archive goes.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use crate::files::FileError;
use crate::path::WorkspacePath;
use crate::root::{Fault, ResolveError, Root};

/// The deepest directory of the path that exists, and the names of those to be made in it.
#[derive(Debug)]
pub(super) struct Place {
    /// Open; its path from the workspace root is `path`.
    pub(super) directory: OwnedFd,
    pub(super) path: WorkspacePath,
    /// Names below `path`, joined by slashes; empty when all exist.
    pub(super) missing: Vec<u8>,
    /// Levels of `path` below the workspace root.
    pub(super) depth: usize,
}

impl Place {
    /// Links are not followed, so that the number of levels above an entry is known whatever the archive holds.
    pub(super) fn find(root: &Root, path: &WorkspacePath) -> Result<Self, FileError> {
        if path.names().any(|name| name == b"..") {
            let reason = "the folder of an Import is named without `..`".to_owned();
            return Err(FileError::Invalid { reason });
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut here = WorkspacePath::root();
        let mut directory = root.open_without_links(&here, flags)?;
        let names: Vec<&[u8]> = path.names().collect();
        let mut depth = 0;
        while depth < names.len() {
            let below = here.join(names[depth]);
            match root.open_without_links(&below, flags) {
                Ok(opened) => directory = opened,
                Err(ResolveError { fault: Fault::NotFound, .. }) => break,
                Err(other) => return Err(other.into()),
            }
            here = below;
            depth += 1;
        }
        Ok(Self { directory, path: here, missing: names[depth..].join(&b'/'), depth })
    }
}
