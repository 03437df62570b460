//! Listing one directory in pages.

use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir};
use rustix::io::Errno;

use super::kind::Kind;
use super::stop::Stop;
use super::version::size_of;
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;
use crate::root::{Fault, ResolveError};

/// Most entries in one page.
pub const LIST_PAGE_ENTRIES: usize = 1000;

/// Entries between two looks at whether the caller is still there.
const ENTRIES_PER_CHECK: u64 = 4096;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name as it is on disk.
    pub name: Vec<u8>,
    /// What it is; a link is a link.
    pub kind: Kind,
    /// Bytes of content; 0 for everything but regular files.
    pub size: u64,
    /// Where a link points to, as it is written; empty for everything else.
    pub link_target: Vec<u8>,
}

/// One page of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by the bytes of their names.
    pub entries: Vec<Entry>,
    /// The last name of this page, vanished or not, when there are entries after it.
    pub last_name: Option<Vec<u8>>,
    /// Entries in the whole directory.
    pub total: u64,
}

impl Files {
    /// Lists the first `page_size` entries, at most [`LIST_PAGE_ENTRIES`], whose names come after `after` by bytes; all names come
    /// after none. A page is right for the directory as it is now, whatever came and went since the page before.
    ///
    /// # Errors
    /// [`FileError::NotDirectory`], or [`FileError::Resolve`] when the path does not resolve beneath the root.
    pub async fn list(
        &self,
        path: WorkspacePath,
        after: Vec<u8>,
        page_size: usize,
    ) -> Result<Listing, FileError> {
        let page_size = page_size.clamp(1, LIST_PAGE_ENTRIES);
        self.blocking(Weight::Light, move |inner, stop| inner.list(&path, &after, page_size, stop)).await
    }
}

impl Inner {
    fn list(
        &self,
        path: &WorkspacePath,
        after: &[u8],
        page_size: usize,
        stop: &Stop,
    ) -> Result<Listing, FileError> {
        let directory = self.open_listable(path)?;
        // The largest name is on top and goes when a smaller one comes: memory is bounded by the page.
        let mut page = BinaryHeap::new();
        let mut total = 0;
        let mut n_after = 0_u64;
        for entry in Dir::read_from(&directory).map_err(|errno| FileError::system(path, errno))? {
            let entry = entry.map_err(|errno| FileError::system(path, errno))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            total += 1;
            if total % ENTRIES_PER_CHECK == 0 {
                stop.check()?;
            }
            if name <= after {
                continue;
            }
            n_after += 1;
            if page.len() < page_size {
                page.push(name.to_vec());
            } else if page.peek().is_some_and(|largest: &Vec<u8>| name < largest.as_slice()) {
                page.pop();
                page.push(name.to_vec());
            }
        }
        let last_name = page.peek().filter(|_| n_after > page.len() as u64).cloned();
        let mut entries = Vec::with_capacity(page.len());
        for name in page.into_sorted_vec() {
            if let Some(entry) = describe(path, &directory, name)? {
                entries.push(entry);
            }
        }
        Ok(Listing { entries, last_name, total })
    }

    /// Opens a directory, with the error that fits when it is something else.
    pub(super) fn open_listable(&self, path: &WorkspacePath) -> Result<OwnedFd, FileError> {
        self.root.open_directory(path).map_err(|error| match error {
            ResolveError { fault: Fault::NotDirectory, .. } if self.is_there(path) => {
                FileError::NotDirectory { path: path.clone() }
            }
            other => other.into(),
        })
    }

    /// Whether the path resolves to anything.
    fn is_there(&self, path: &WorkspacePath) -> bool {
        let flags = rustix::fs::OFlags::PATH;
        self.root.open_beneath(path, flags, rustix::fs::Mode::empty()).is_ok()
    }
}

/// Facts about one entry; `None` when it vanished after its name was read.
fn describe(path: &WorkspacePath, directory: &OwnedFd, name: Vec<u8>) -> Result<Option<Entry>, FileError> {
    let stat = match rustix::fs::statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(FileError::system(&path.join(&name), errno)),
    };
    let kind = Kind::of(&stat);
    let size = if kind == Kind::Regular { size_of(&stat) } else { 0 };
    let link_target = if kind == Kind::Link {
        match rustix::fs::readlinkat(directory, name.as_slice(), Vec::new()) {
            Ok(target) => target.into_bytes(),
            Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(FileError::system(&path.join(&name), errno)),
        }
    } else {
        Vec::new()
    };
    Ok(Some(Entry { name, kind, size, link_target }))
}
