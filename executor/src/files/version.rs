//! What a file was at one moment.

use std::os::fd::AsFd;

use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};

use super::stop::Stop;
use super::{FILE_CHUNK_BYTES, FileError};
use crate::path::WorkspacePath;

/// Files up to this size are known by the SHA-256 of their content: 64 MiB.
pub const HASHED_UP_TO_BYTES: u64 = 64 * 1024 * 1024;

/// Equal versions mean unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// SHA-256 of the content, for files up to [`HASHED_UP_TO_BYTES`].
    Content([u8; 32]),
    /// What the system says about a larger file.
    Stat(StatVersion),
}

/// The facts that stand for the content of a large file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatVersion {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970-01-01 UTC.
    pub mtime_nanos: i64,
    /// Nanoseconds since 1970-01-01 UTC.
    pub ctime_nanos: i64,
}

impl StatVersion {
    /// Takes the facts from a `stat`.
    pub fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: size_of(stat),
            mtime_nanos: nanos(stat.st_mtime, stat.st_mtime_nsec),
            ctime_nanos: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Bytes of content.
pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// One number from the two that the system gives; saturates in the year 2262.
pub(super) fn nanos(seconds: i64, nanoseconds: u64) -> i64 {
    let nanoseconds = i64::try_from(nanoseconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

impl Version {
    /// The version of content that is at hand.
    pub fn of_content(content: &[u8]) -> Self {
        Self::Content(Sha256::digest(content).into())
    }

    /// The version of an open regular file as it is now. Reads at most [`HASHED_UP_TO_BYTES`].
    ///
    /// # Errors
    /// A system error of reading, or [`FileError::Cancelled`].
    pub fn of_file(
        path: &WorkspacePath,
        file: impl AsFd,
        stat: &Stat,
        stop: &Stop,
    ) -> Result<Self, FileError> {
        let size = size_of(stat);
        if size > HASHED_UP_TO_BYTES {
            return Ok(Self::Stat(StatVersion::of(stat)));
        }
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; chunk_for(size)];
        let mut offset = 0;
        while offset < size {
            stop.check()?;
            let n_read = read_at(path, &file, &mut buffer, offset)?;
            if n_read == 0 {
                break;
            }
            let wanted = usize::try_from(size - offset).map_or(n_read, |left| left.min(n_read));
            hasher.update(&buffer[..wanted]);
            offset += n_read as u64;
        }
        Ok(Self::Content(hasher.finalize().into()))
    }
}

/// A buffer size for reading `size` bytes.
fn chunk_for(size: u64) -> usize {
    usize::try_from(size).map_or(FILE_CHUNK_BYTES, |size| size.clamp(1, FILE_CHUNK_BYTES))
}

/// One `pread`, repeated when a signal interrupts it.
pub(super) fn read_at(
    path: &WorkspacePath,
    file: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, FileError> {
    rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut *buffer, offset))
        .map_err(|errno| FileError::system(path, errno))
}
