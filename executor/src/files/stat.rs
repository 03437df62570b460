//! Describing one path.

use rustix::fs::{Mode, OFlags};

use super::kind::Kind;
use super::stop::Stop;
use super::version::{Version, nanos, size_of};
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// A link is a link.
    pub kind: Kind,
    /// Bytes of content; 0 for everything but regular files.
    pub size: u64,
    /// Permission bits, 0..=0o7777.
    pub mode: u32,
    /// Nanoseconds since 1970-01-01 UTC.
    pub mtime_nanos: i64,
    /// For regular files that may be read.
    pub version: Option<Version>,
    /// Where a link points to, as it is written; empty for everything else.
    pub link_target: Vec<u8>,
}

impl Files {
    /// Describes the path itself, not what a link points to. Nothing is recorded in the ledger.
    ///
    /// # Errors
    /// [`FileError::Resolve`] when the path does not resolve beneath the root.
    pub async fn stat(&self, path: WorkspacePath) -> Result<Description, FileError> {
        self.blocking(Weight::Light, move |inner, stop| inner.stat(&path, stop)).await
    }
}

impl Inner {
    fn stat(&self, path: &WorkspacePath, stop: &Stop) -> Result<Description, FileError> {
        let system = |errno| FileError::system(path, errno);
        let handle = self.root.open_beneath(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        let mut stat = rustix::fs::fstat(&handle).map_err(system)?;
        let kind = Kind::of(&stat);
        let mut version = None;
        if kind == Kind::Regular {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            if let Ok(file) = self.root.open_beneath(path, flags, Mode::empty()) {
                let now = rustix::fs::fstat(&file).map_err(system)?;
                if Kind::of(&now) == Kind::Regular {
                    version = Some(Version::of_file(path, &file, &now, stop)?);
                    stat = now;
                }
            }
        }
        let link_target = if kind == Kind::Link {
            rustix::fs::readlinkat(&handle, "", Vec::new()).map_err(system)?.into_bytes()
        } else {
            Vec::new()
        };
        Ok(Description {
            kind,
            size: if kind == Kind::Regular { size_of(&stat) } else { 0 },
            mode: stat.st_mode & 0o7777,
            mtime_nanos: nanos(stat.st_mtime, stat.st_mtime_nsec),
            version,
            link_target,
        })
    }
}
