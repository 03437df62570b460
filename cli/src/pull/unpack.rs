//! Writing an archive into a folder of our own.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::archive::{Archive, Entry, Kind};
use crate::error::Error;
use crate::link::stays_inside;

/// Entries of all kinds: what an executor takes at most by itself.
const MAX_ENTRIES: usize = 1_000_000;
/// Of a file on its way to the disk.
const BUFFER_BYTES: usize = 256 * 1024;

/// What is in a folder now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unpacked {
    /// Paths below the folder, folders before what is in them.
    pub(crate) entries: Vec<(PathBuf, Made)>,
    /// Regular files, and their bytes.
    pub(crate) n_files: u64,
    /// Bytes of content.
    pub(crate) n_bytes: u64,
    /// Entries of `.git` that were left out.
    pub(crate) n_git: u64,
}

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Made {
    /// A folder.
    Directory,
    /// A file or a link.
    Leaf,
}

/// Writes an archive into `root`, an empty folder that nobody else writes to. Links stay inside by the rule of
/// [`stays_inside`], nothing lies below one, and nothing is written twice.
///
/// # Errors
/// [`Error::Hostile`], [`Error::NoArchive`], [`Error::Local`].
pub(crate) fn unpack(reader: impl Read, root: &Path, with_git: bool) -> Result<Unpacked, Error> {
    let mut archive = Archive::new(reader);
    let mut place = Place { root, made: HashMap::new(), order: Vec::new() };
    let (mut n_files, mut n_bytes, mut n_git) = (0, 0, 0);
    while let Some(entry) = archive.next()? {
        if place.made.len() >= MAX_ENTRIES {
            return Err(hostile(&entry.path, "is one of too many"));
        }
        if !with_git && is_git(&entry.path) {
            n_git += 1;
            if let Kind::File(size) = entry.kind {
                archive.content(size, &mut io::sink()).map_err(|_| Error::NoArchive("it ends early"))?;
            }
            continue;
        }
        match &entry.kind {
            Kind::Directory => place.directory(&entry)?,
            Kind::Link(target) => place.link(&entry, target)?,
            Kind::File(size) => {
                place.file(&entry, *size, &mut archive)?;
                n_files += 1;
                n_bytes += size;
            }
        }
    }
    Ok(Unpacked { entries: place.order, n_files, n_bytes, n_git })
}

/// Whether git would take it for its own, on file systems that do not tell cases apart too.
fn is_git(path: &Path) -> bool {
    path.iter().any(|part| part.as_bytes().eq_ignore_ascii_case(b".git"))
}

fn hostile(path: &Path, why: &'static str) -> Error {
    Error::Hostile { entry: path.to_string_lossy().into_owned(), why }
}

struct Place<'a> {
    root: &'a Path,
    made: HashMap<PathBuf, Made>,
    order: Vec<(PathBuf, Made)>,
}

impl Place<'_> {
    fn directory(&mut self, entry: &Entry) -> Result<(), Error> {
        if entry.path.as_os_str().is_empty() {
            return Ok(());
        }
        self.parents(&entry.path)?;
        match self.made.get(&entry.path) {
            None => self.make(&entry.path)?,
            Some(Made::Directory) => {}
            Some(Made::Leaf) => return Err(hostile(&entry.path, "comes twice")),
        }
        let path = self.root.join(&entry.path);
        let set = fs::set_permissions(&path, Permissions::from_mode(entry.mode));
        set.map_err(|error| Error::local(format!("make {}", path.display()), error))
    }

    fn link(&mut self, entry: &Entry, target: &[u8]) -> Result<(), Error> {
        let depth = entry.path.components().count() - 1;
        if !stays_inside(depth, target) {
            return Err(hostile(&entry.path, "is a link that leads out of the folder"));
        }
        let path = self.leaf(&entry.path)?;
        let target = Path::new(std::ffi::OsStr::from_bytes(target));
        symlink(target, &path).map_err(|error| Error::local(format!("make {}", path.display()), error))
    }

    fn file(&mut self, entry: &Entry, size: u64, archive: &mut Archive<impl Read>) -> Result<(), Error> {
        let path = self.leaf(&entry.path)?;
        let failed = |error| Error::local(format!("write {}", path.display()), error);
        let open = OpenOptions::new().write(true).create_new(true).mode(entry.mode).open(&path);
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, open.map_err(failed)?);
        archive.content(size, &mut file).map_err(|error| {
            let is_early = error.kind() == io::ErrorKind::UnexpectedEof;
            if is_early { Error::NoArchive("it ends early") } else { failed(error) }
        })?;
        file.flush().map_err(failed)?;
        let file: File = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.set_modified(entry.mtime).map_err(failed)
    }

    /// A place for a file or a link.
    fn leaf(&mut self, path: &Path) -> Result<PathBuf, Error> {
        self.parents(path)?;
        if self.made.contains_key(path) {
            return Err(hostile(path, "comes twice"));
        }
        self.note(path, Made::Leaf);
        Ok(self.root.join(path))
    }

    /// Every folder above `path`.
    fn parents(&mut self, path: &Path) -> Result<(), Error> {
        let mut above: Vec<&Path> =
            path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        above.reverse();
        for folder in above {
            match self.made.get(folder) {
                None => self.make(folder)?,
                Some(Made::Directory) => {}
                Some(Made::Leaf) => return Err(hostile(path, "lies below a file or a link")),
            }
        }
        Ok(())
    }

    fn make(&mut self, path: &Path) -> Result<(), Error> {
        let full = self.root.join(path);
        let made = DirBuilder::new().mode(0o755).create(&full);
        made.map_err(|error| Error::local(format!("make {}", full.display()), error))?;
        self.note(path, Made::Directory);
        Ok(())
    }

    fn note(&mut self, path: &Path, made: Made) {
        self.made.insert(path.to_owned(), made);
        self.order.push((path.to_owned(), made));
    }
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
