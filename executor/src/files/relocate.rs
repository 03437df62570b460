//! Moving a file, link or directory to another name on the same mount.

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::kind::Kind;
use super::target::Target;
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;

impl Files {
    /// Moves what is at `source` to `destination`, which must be absent and whose folder must exist. A link is moved itself. Nothing is
    /// recorded in the ledger.
    ///
    /// # Errors
    /// [`Fault::AlreadyExists`](crate::root::Fault::AlreadyExists) when anything is at the destination; [`FileError::Invalid`] for a
    /// directory into itself; [`FileError::AnotherMount`]; [`FileError::NoEntry`] for the root.
    pub async fn relocate(&self, source: WorkspacePath, destination: WorkspacePath) -> Result<(), FileError> {
        let (from, to) = self
            .blocking(Weight::Light, move |inner, _| {
                let from = Target::open(&inner.root, &source, "moved")?;
                let to = Target::open(&inner.root, &destination, "moved to")?;
                Ok((from, to))
            })
            .await?;
        let lanes = self.inner.lanes.enter_both(from.lane(), to.lane()).await;
        self.blocking(Weight::Light, move |inner, _| {
            let _lanes = lanes;
            inner.relocate(&from, &to)
        })
        .await
    }
}

impl Inner {
    #[expect(clippy::unused_self, reason = "reads like its siblings; the workspace is in the targets")]
    fn relocate(&self, from: &Target, to: &Target) -> Result<(), FileError> {
        let Some(stat) = from.stat()? else { return Err(from.system(Errno::NOENT)) };
        let kind = Kind::of(&stat);
        if kind != Kind::Directory && (from.is_directory || to.is_directory) {
            return Err(FileError::NotDirectory { path: from.path.clone() });
        }
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&from.parent, &from.name, &to.parent, &to.name, flags) {
            Ok(()) => {}
            Err(Errno::XDEV) => return Err(FileError::AnotherMount { path: from.path.clone() }),
            Err(Errno::INVAL) if kind == Kind::Directory => {
                let reason = format!("{} cannot be moved into itself ({})", from.path, to.path);
                return Err(FileError::Invalid { reason });
            }
            Err(errno @ (Errno::EXIST | Errno::NOTEMPTY)) => {
                let errno = if errno == Errno::NOTEMPTY { Errno::EXIST } else { errno };
                return Err(to.system(errno));
            }
            Err(errno) => return Err(from.system(errno)),
        }
        to.sync_parent()?;
        from.sync_parent()
    }
}
