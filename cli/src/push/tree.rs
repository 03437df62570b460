//! What of a folder is brought over.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::{DirEntry, WalkBuilder};

use crate::error::Error;
use crate::link::stays_inside;

/// Git's own folder, which no ignore rule is about.
const GIT: &str = ".git";

/// Rules about what git does not know of.
const RULES: &str = ".gitignore";
/// Bytes of one file of rules, with much room.
const MAX_RULES_BYTES: u64 = 1024 * 1024;

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
    /// [`Error::Local`] when it is no folder, or something in it cannot be read, its rules for instance.
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
        let unusable: Arc<OnceLock<PathBuf>> = Arc::default();
        if !all {
            builder.git_ignore(true).require_git(false);
            has_usable_rules(from).map_err(|path| unusable_rules(&path))?;
            let unusable = Arc::clone(&unusable);
            // Asked before a folder is entered and its rules are read.
            builder.filter_entry(move |entry| {
                let is_in = entry.depth() == 0 || entry.file_name() != GIT;
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                match if is_in && is_folder { has_usable_rules(entry.path()) } else { Ok(()) } {
                    Ok(()) => is_in,
                    Err(path) => {
                        // The first one is told.
                        let _ = unusable.set(path);
                        false
                    }
                }
            });
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
        unusable.get().map_or(Ok(()), |path| Err(unusable_rules(path)))
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

/// Whether the rules in a folder, where it has any, are a regular file of some size: neither a pipe, nor a device, nor a link,
/// which git does not follow either (gitignore(5)).
fn has_usable_rules(folder: &Path) -> Result<(), PathBuf> {
    let path = folder.join(RULES);
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() || found.len() > MAX_RULES_BYTES => Err(path),
        // One that cannot be looked at cannot be read either, which the walk tells.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn unusable_rules(path: &Path) -> Error {
    let why = std::io::Error::other("it is no regular file of at most 1 MiB; --all brings everything");
    Error::local(format!("follow the rules in {}", path.display()), why)
}

fn entry(path: PathBuf, kind: Kind, metadata: &Metadata) -> Entry {
    Entry { path, kind, mode: metadata.mode() & 0o777, mtime: metadata.mtime() }
}

#[cfg(test)]
mod tests;
