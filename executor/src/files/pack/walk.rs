//! From one entry of the tree to the next.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Frames, Here, Level, PackFrame, PackReport, Packing, REPORTED_ENTRIES, Skipped};
use crate::archive::{Entry, EntryKind, Mtime, stays_inside};
use crate::files::names::read_names;
use crate::files::stop::Stop;
use crate::files::version::size_of;
use crate::files::{FileError, Kind};
use crate::path::{MAX_PATH_BYTES, WorkspacePath};
use crate::root::{Fault, ResolveError, Root};

const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

impl Packing {
    pub(super) fn new(root: &Root, start: WorkspacePath) -> Result<Self, FileError> {
        let directory = root.open_directory(&start).map_err(|error| {
            let is_something_else = error.fault == Fault::NotDirectory;
            if is_something_else { FileError::NotDirectory { path: start.clone() } } else { error.into() }
        })?;
        let names = sorted_names(&directory).map_err(|errno| FileError::system(&start, errno))?;
        let path = WorkspacePath::root();
        Ok(Self {
            base: Root::new(directory, "/".into()),
            start,
            levels: vec![Level { path, names: names.into_iter() }],
            here: None,
            frames: Frames::default(),
            report: PackReport::default(),
            is_ended: false,
        })
    }

    /// Fills one frame.
    pub(super) fn step(&mut self, stop: &Stop) -> Result<PackFrame, FileError> {
        self.frames.begin();
        loop {
            self.frames.fill(&mut self.report, stop)?;
            if self.frames.is_full() {
                return Ok(self.frames.take());
            }
            if self.is_ended {
                return Ok(self.frames.take_last(std::mem::take(&mut self.report)));
            }
            if !self.next_entry()? {
                self.frames.push_end();
                self.is_ended = true;
            }
        }
    }

    /// Takes the next entry; `false` after the last one.
    fn next_entry(&mut self) -> Result<bool, FileError> {
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let Some((name, file_type)) = level.names.next() else {
            self.levels.pop();
            self.here = None;
            return Ok(!self.levels.is_empty());
        };
        let path = level.path.join(&name);
        if path.as_bytes().len() > MAX_PATH_BYTES {
            self.skip(&path, Skipped::Unreadable);
            return Ok(true);
        }
        match self.take(&path, &name, file_type) {
            // What vanished is not there.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            // It was one thing when its name was read, and is a link now.
            Err(Errno::LOOP | Errno::ACCESS | Errno::PERM) => self.skip(&path, Skipped::Unreadable),
            Err(Errno::NXIO) => self.skip(&path, Skipped::Special),
            Err(errno) => return Err(FileError::system(&self.named(&path), errno)),
        }
        Ok(true)
    }

    fn take(&mut self, path: &WorkspacePath, name: &[u8], file_type: FileType) -> Result<(), Errno> {
        let here = self.enter()?;
        let taken = self.take_from(&here.directory, path, name, file_type);
        // Unless it went on in a directory below.
        self.here.get_or_insert(here);
        taken
    }

    fn take_from(
        &mut self,
        directory: &OwnedFd,
        path: &WorkspacePath,
        name: &[u8],
        file_type: FileType,
    ) -> Result<(), Errno> {
        let stat = || rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        // What the directory does not know is asked for itself.
        let is_unknown = file_type == FileType::Unknown;
        let kind = if is_unknown { Kind::of(&stat()?) } else { Kind::of_type(file_type) };
        match kind {
            Kind::Regular => {
                let file = rustix::fs::openat(directory, name, FILE_FLAGS, Mode::empty())?;
                let stat = rustix::fs::fstat(&file)?;
                if Kind::of(&stat) != Kind::Regular {
                    self.skip(path, Skipped::Special);
                    return Ok(());
                }
                let size = size_of(&stat);
                let entry = entry(path, EntryKind::File { size }, &stat);
                self.frames.file(&entry, self.named(path), file, size);
            }
            Kind::Directory => {
                let below = rustix::fs::openat(directory, name, DIRECTORY | FILE_FLAGS, Mode::empty())?;
                let stat = rustix::fs::fstat(&below)?;
                let names = sorted_names(&below)?;
                self.frames.entry(&entry(path, EntryKind::Directory, &stat));
                self.levels.push(Level { path: path.clone(), names: names.into_iter() });
                self.here = Some(Here { depth: self.levels.len(), directory: below });
            }
            Kind::Link => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())?.into_bytes();
                if stays_inside(self.levels.len() - 1, &target) {
                    self.frames.entry(&entry(path, EntryKind::Link { target }, &stat()?));
                } else {
                    self.skip(path, Skipped::LinkLeaves);
                }
            }
            Kind::Special => self.skip(path, Skipped::Special),
        }
        Ok(())
    }

    /// The directory of the innermost level, taken out of its place.
    fn enter(&mut self) -> Result<Here, Errno> {
        let depth = self.levels.len();
        if let Some(here) = self.here.take().filter(|here| here.depth == depth) {
            return Ok(here);
        }
        let path = self.levels.last().map_or_else(WorkspacePath::root, |level| level.path.clone());
        match self.base.open_without_links(&path, DIRECTORY) {
            Ok(directory) => Ok(Here { depth, directory }),
            Err(ResolveError { fault: Fault::Exhausted, .. }) => Err(Errno::MFILE),
            Err(ResolveError { fault: Fault::Denied, .. }) => Err(Errno::ACCESS),
            Err(ResolveError { fault: Fault::System(errno), .. }) => Err(errno),
            // Moved, removed or replaced by something else since its names were read.
            Err(_) => Err(Errno::NOENT),
        }
    }

    fn skip(&mut self, path: &WorkspacePath, why: Skipped) {
        self.report.skipped_total += 1;
        if self.report.skipped.len() < REPORTED_ENTRIES {
            self.report.skipped.push((path.as_bytes().to_vec(), why));
        }
    }

    /// The path from the workspace root.
    fn named(&self, path: &WorkspacePath) -> WorkspacePath {
        self.start.join(path.as_bytes())
    }
}

fn entry(path: &WorkspacePath, kind: EntryKind, stat: &Stat) -> Entry {
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    let mtime = Mtime { seconds: stat.st_mtime, nanos };
    Entry { path: path.as_bytes().to_vec(), kind, mode: stat.st_mode & 0o777, mtime }
}

fn sorted_names(directory: impl AsFd) -> rustix::io::Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = read_names(directory)?;
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}
