//! Removing one entry.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::kind::Kind;
use super::target::Target;
use super::{FileError, Files, Weight};
use crate::path::WorkspacePath;

impl Files {
    /// Removes one file, one link (never what it points to), one special file or one empty directory, and says which it was.
    ///
    /// # Errors
    /// [`Fault::NotEmpty`](crate::root::Fault::NotEmpty) for a directory with entries, [`FileError::NoEntry`] for the root,
    /// [`Fault::MountPoint`](crate::root::Fault::MountPoint).
    pub async fn remove(&self, path: WorkspacePath) -> Result<Kind, FileError> {
        let target =
            self.blocking(Weight::Light, move |inner, _| Target::open(&inner.root, &path, "removed")).await?;
        let lane = self.inner.lanes.enter(target.lane()).await;
        self.blocking(Weight::Light, move |_, _| {
            let _lane = lane;
            remove(&target)
        })
        .await
    }
}

fn remove(target: &Target) -> Result<Kind, FileError> {
    // Twice: what was a file may have become a directory since it was looked at.
    for _ in 0..2 {
        let Some(stat) = target.stat()? else { return Err(target.system(Errno::NOENT)) };
        let kind = Kind::of(&stat);
        if target.is_directory && kind != Kind::Directory {
            return Err(FileError::NotDirectory { path: target.path.clone() });
        }
        let flags = if kind == Kind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match rustix::fs::unlinkat(&target.parent, &target.name, flags) {
            Ok(()) => {
                target.sync_parent()?;
                return Ok(kind);
            }
            Err(Errno::NOTDIR | Errno::ISDIR) => {}
            // POSIX lets a system say EEXIST for a directory with entries.
            Err(Errno::EXIST) => return Err(target.system(Errno::NOTEMPTY)),
            Err(errno) => return Err(target.system(errno)),
        }
    }
    Err(target.system(Errno::AGAIN))
}
