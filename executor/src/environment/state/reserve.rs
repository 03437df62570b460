//! Room on the volume that only the executor's own state may take.
//!
//! Commands fill volumes. A lease epoch that cannot be written then would keep a session's next harness out until somebody
//! made room by other means; and removing a file, the usual means, is itself a call that needs the lease.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

const FILE: &str = "reserve";
/// Many times what the records of one environment take.
const BYTES: u64 = 1024 * 1024;

/// Whether the room is kept. The file that keeps it is of no other meaning.
#[derive(Debug, Default)]
pub(super) struct Reserve {
    kept: AtomicBool,
}

impl Reserve {
    /// Makes the file unless it is known to be there. What fails is tried again later.
    pub(super) fn fill(&self, directory: impl AsFd) {
        if self.kept.load(Ordering::Relaxed) {
            return;
        }
        match fill(&directory) {
            Ok(()) => self.kept.store(true, Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(%error, "no room can be reserved for the executor's own state");
                // A part of it would only take what the records may need.
                let _ = rustix::fs::unlinkat(&directory, FILE, AtFlags::empty());
            }
        }
    }

    /// Gives the room up; `false` when there was none to give.
    pub(super) fn give_up(&self, directory: impl AsFd) -> bool {
        self.kept.store(false, Ordering::Relaxed);
        rustix::fs::unlinkat(directory, FILE, AtFlags::empty()).is_ok()
    }
}

/// Whether `error` says that the volume, or this user's part of it, has no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn fill(directory: impl AsFd) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, FILE, flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write(file.into()),
        allocated => Ok(allocated?),
    }
}

/// Where room cannot be allocated, bytes take it.
fn write(mut file: std::fs::File) -> io::Result<()> {
    let block = [0_u8; 4096];
    for _ in 0..BYTES / block.len() as u64 {
        file.write_all(&block)?;
    }
    file.sync_all()
}
