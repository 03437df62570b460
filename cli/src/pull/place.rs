//! From a hidden folder to where a person wants it.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::unpack::Made;
use crate::error::Error;

/// What begins the name of a hidden folder.
const PREFIX: &str = ".mooring-pull-";
/// The folder in it that becomes the person's, made with the person's own permission mask.
const TREE: &str = "tree";

/// Where a pull goes, with a hidden folder on the same file system. That is removed with this.
#[derive(Debug)]
pub(crate) struct Destination {
    folder: PathBuf,
    is_there: bool,
    hidden: TempDir,
    tree: PathBuf,
}

impl Destination {
    /// Makes the hidden folder: in `folder` when that is there, else beside it.
    ///
    /// # Errors
    /// [`Error::Local`].
    pub(crate) fn prepare(folder: &Path) -> Result<Self, Error> {
        let failed = |error| Error::local(format!("use {}", folder.display()), error);
        let found = match fs::canonicalize(folder) {
            Ok(found) => Some(found),
            // A link that leads nowhere is there, too.
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.symlink_metadata().is_err() => {
                None
            }
            Err(error) => return Err(failed(error)),
        };
        let above = match &found {
            Some(found) => found.clone(),
            None => match folder.parent() {
                Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
                Some(_) | None => PathBuf::from("."),
            },
        };
        let hidden = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&above).map_err(failed)?;
        let tree = hidden.path().join(TREE);
        DirBuilder::new().create(&tree).map_err(failed)?;
        let is_there = found.is_some();
        Ok(Self { folder: found.unwrap_or_else(|| folder.to_owned()), is_there, hidden, tree })
    }

    /// The hidden folder that is filled.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Gives what was unpacked its place: by one rename when the folder is new, else entry by entry, each whole. Every entry is
    /// compared with what is there before the first one moves.
    ///
    /// # Errors
    /// [`Error::Overwrites`] without `force`, [`Error::OtherKind`], [`Error::Local`].
    pub(crate) fn place(self, entries: &[(PathBuf, Made)], force: bool) -> Result<(), Error> {
        let Self { folder, is_there, hidden, tree } = self;
        let failed = |path: &Path| {
            let what = format!("write {}", path.display());
            move |error| Error::local(what, error)
        };
        if !is_there {
            return fs::rename(&tree, &folder).map_err(failed(&folder)).map(|()| drop(hidden));
        }
        let moves = compare(&folder, entries, force)?;
        for path in moves {
            let to = folder.join(path);
            fs::rename(tree.join(path), &to).map_err(failed(&to))?;
        }
        Ok(())
    }
}

/// What is to be moved: files and links, and folders that are not there yet with all that is in them.
fn compare<'a>(folder: &Path, entries: &'a [(PathBuf, Made)], force: bool) -> Result<Vec<&'a Path>, Error> {
    let mut moves: Vec<&Path> = Vec::new();
    let mut whole: Option<&Path> = None;
    let mut overwritten: Vec<&Path> = Vec::new();
    let mut sorted: Vec<&(PathBuf, Made)> = entries.iter().collect();
    sorted.sort();
    for (path, made) in sorted {
        if whole.is_some_and(|whole| path.starts_with(whole)) {
            continue;
        }
        let found = match folder.join(path).symlink_metadata() {
            Ok(found) => Some(found.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::local(format!("look at {}", path.display()), error)),
        };
        match (made, found) {
            (Made::Directory, None) => {
                whole = Some(path);
                moves.push(path);
            }
            (Made::Directory, Some(found)) if found.is_dir() => {}
            (Made::Leaf, None) => moves.push(path),
            (Made::Leaf, Some(found)) if found.is_file() || found.is_symlink() => {
                overwritten.push(path);
                moves.push(path);
            }
            (Made::Directory | Made::Leaf, Some(_)) => {
                return Err(Error::OtherKind { path: folder.join(path) });
            }
        }
    }
    match overwritten.first() {
        Some(path) if !force => {
            Err(Error::Overwrites { count: overwritten.len() as u64, path: folder.join(path) })
        }
        Some(_) | None => Ok(moves),
    }
}

#[cfg(test)]
mod tests;
