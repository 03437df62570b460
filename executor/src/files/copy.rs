//! Copying one regular file.

use rustix::fs::ioctl_ficlone;

use super::kind::Kind;
use super::stage::Install;
use super::stop::Stop;
use super::target::Target;
use super::version::{read_at, size_of};
use super::{FILE_CHUNK_BYTES, FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;

impl Files {
    /// Copies the regular file at `source` to `destination`, which must be absent and whose folder must exist; gives the bytes
    /// copied. A link as source is followed when it stays inside. The copy is a new inode with the permission bits of the source; set-id
    /// bits, file capabilities and other attributes stay behind. Nothing is recorded in the ledger.
    ///
    /// # Errors
    /// [`Fault::AlreadyExists`](crate::root::Fault::AlreadyExists) when anything is at the destination, a link to nothing too;
    /// [`FileError::NotRegular`] when the source is no file. After any error the destination is absent.
    pub async fn copy(&self, source: WorkspacePath, destination: WorkspacePath) -> Result<u64, FileError> {
        let target = self
            .blocking(Weight::Light, move |inner, _| Target::open(&inner.root, &destination, "written"))
            .await?;
        let lane = self.inner.lanes.enter(target.lane()).await;
        self.blocking(Weight::Light, move |inner, stop| {
            let _lane = lane;
            inner.copy(&source, &target, stop)
        })
        .await
    }
}

impl Inner {
    fn copy(&self, source: &WorkspacePath, target: &Target, stop: &Stop) -> Result<u64, FileError> {
        if target.is_directory {
            return Err(target.not_regular(Kind::Directory));
        }
        let (file, stat) = self.open_for_reading(source)?;
        if target.stat()?.is_some() {
            return Err(target.system(rustix::io::Errno::EXIST));
        }
        let mut staged = self.stage.create_for(target)?;
        let mut size = size_of(&stat);
        // Shares the blocks where the file system can; otherwise bytes are copied.
        if size == 0 || ioctl_ficlone(staged.file(), &file).is_err() {
            let mut buffer = vec![0; FILE_CHUNK_BYTES];
            while staged.size() < size {
                stop.check()?;
                let n_read = read_at(source, &file, &mut buffer, staged.size())?;
                if n_read == 0 {
                    break;
                }
                staged.append(&target.path, &buffer[..n_read])?;
            }
            size = staged.size();
        }
        staged.set_mode(&target.path, stat.st_mode & 0o777)?;
        staged.sync(&target.path)?;
        stop.check()?;
        self.stage.install(staged, target, Install::Create)?;
        Ok(size)
    }
}
