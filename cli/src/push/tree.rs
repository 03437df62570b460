//! What of a folder is brought over.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};

use crate::error::Error;
use crate::link::stays_inside;

/// Git's own folder, which no ignore rule is about.
const GIT: &str = ".git";

/// Something of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the folder.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: Kind,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) mtime: i64,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A folder.
    Directory,
    /// A regular file, with its size in bytes when it was looked at.
    File(u64),
    /// A symbolic link, with its target.
    Link(PathBuf),
}

/// What of a folder is brought over.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The folder, canonical.
    pub(crate) root: PathBuf,
    /// Folders before what is in them; names sorted by bytes, `.git` first.
    pub(crate) entries: Vec<Entry>,
    /// What is not, and why.
    pub(crate) left_out: Vec<(PathBuf, &'static str)>,
    /// Whether its `.git` is a file, as in linked worktrees and submodules.
    pub(crate) has_history_elsewhere: bool,
}

impl Tree {
    /// Looks through a folder: by the `.gitignore` files in it, unless `all`; nothing above it and nothing of the user's
    /// configuration counts.
    ///
    /// # Errors
    /// [`Error::Local`] when it is no folder, or something in it cannot be read.
    pub(crate) fn read(folder: &Path, all: bool) -> Result<Self, Error> {
        let unreadable = |error| Error::local(format!("read {}", folder.display()), error);
        let root = fs::canonicalize(folder).map_err(unreadable)?;
        if !root.is_dir() {
            return Err(unreadable(std::io::ErrorKind::NotADirectory.into()));
        }
        let has_history_elsewhere = root.join(GIT).symlink_metadata().is_ok_and(|found| found.is_file());
        let mut tree = Self { root, entries: Vec::new(), left_out: Vec::new(), has_history_elsewhere };
        tree.walk(&tree.root.clone(), all)?;
        Ok(tree)
    }

    /// Regular files.
    pub(crate) fn count_files(&self) -> u64 {
        self.entries.iter().filter(|entry| matches!(entry.kind, Kind::File(_))).count() as u64
    }

    /// Bytes of their content.
    pub(crate) fn count_bytes(&self) -> u64 {
        let size = |entry: &Entry| if let Kind::File(size) = entry.kind { size } else { 0 };
        self.entries.iter().map(size).sum()
    }

    fn walk(&mut self, from: &Path, all: bool) -> Result<(), Error> {
        let mut builder = WalkBuilder::new(from);
        builder.standard_filters(false).follow_links(false).sort_by_file_name(Ord::cmp);
        if !all {
            builder.git_ignore(true).require_git(false);
            builder.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != GIT);
        }
        for found in builder.build() {
            let found = found.map_err(|error| {
                let source =
                    error.into_io_error().unwrap_or_else(|| std::io::Error::other("a loop of links"));
                Error::local(format!("read {}", from.display()), source)
            })?;
            let is_directory = found.file_type().is_some_and(|kind| kind.is_dir());
            let path = found.path().to_owned();
            self.add(&found)?;
            if !all && is_directory && path.join(GIT).symlink_metadata().is_ok() {
                self.walk(&path.join(GIT), true)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, found: &DirEntry) -> Result<(), Error> {
        let Ok(path) = found.path().strip_prefix(&self.root).map(Path::to_owned) else { return Ok(()) };
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let unreadable = |error| Error::local(format!("read {}", found.path().display()), error);
        let metadata = found.path().symlink_metadata().map_err(unreadable)?;
        let kind = metadata.file_type();
        let kind = if kind.is_dir() {
            Kind::Directory
        } else if kind.is_file() {
            Kind::File(metadata.len())
        } else if kind.is_symlink() {
            let target = fs::read_link(found.path()).map_err(unreadable)?;
            let depth = path.components().count() - 1;
            if !stays_inside(depth, target.as_os_str().as_bytes()) {
                self.left_out.push((path, "a link that leads out of the folder"));
                return Ok(());
            }
            Kind::Link(target)
        } else {
            self.left_out.push((path, "neither a file, a folder nor a link"));
            return Ok(());
        };
        self.entries.push(entry(path, kind, &metadata));
        Ok(())
    }
}

fn entry(path: PathBuf, kind: Kind, metadata: &Metadata) -> Entry {
    Entry { path, kind, mode: metadata.mode() & 0o777, mtime: metadata.mtime() }
}

#[cfg(test)]
mod tests;
