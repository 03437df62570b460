//! From an archive's bytes to a tree in the stage folder.
//!
//! Every entry is made by our own handle on its directory, which is opened beneath the staged folder with no link in any part
//! of its path, and with flags that refuse what is there already. So nothing an archive says is written through a link.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::place::Place;
use super::{ImportBudget, ImportError, Imported};
use crate::archive::{ArchiveError, Entry, EntryKind, Event, Mtime, Reader, Refused, shown, stays_inside};
use crate::files::stage::{Stage, StagedTree};
use crate::files::stop::Stop;
use crate::files::{FileError, Kind};
use crate::path::{MAX_PATH_BYTES, WorkspacePath};
use crate::root::{Fault, ResolveError, Root};

const FILE_FLAGS: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Mode of a directory that no entry describes.
const DIRECTORY_MODE: u32 = 0o755;

/// An archive on its way.
#[derive(Debug)]
pub(super) struct Unpacking {
    reader: Reader,
    pub(super) tree: StagedTree,
    pub(super) place: Place,
    budget: ImportBudget,
    n_entries: u64,
    pub(super) imported: Imported,
    /// The directory of the last entry, open.
    here: Option<(Vec<u8>, OwnedFd)>,
    file: Option<Arriving>,
    /// The umask takes bits away that we want.
    is_masked: bool,
}

/// A file whose content is arriving.
#[derive(Debug)]
struct Arriving {
    file: OwnedFd,
    path: Vec<u8>,
    mtime: Mtime,
    left: u64,
}

impl Unpacking {
    pub(super) fn new(
        root: &Root,
        stage: &Stage,
        path: &WorkspacePath,
        budget: ImportBudget,
    ) -> Result<Self, FileError> {
        let place = Place::find(root, path)?;
        let tree = stage.create_tree(&place.directory, &place.path)?;
        let mut unpacking = Self {
            reader: Reader::default(),
            tree,
            place,
            budget,
            n_entries: 0,
            imported: Imported::default(),
            here: None,
            file: None,
            is_masked: false,
        };
        match unpacking.begin() {
            Ok(()) => Ok(unpacking),
            Err(error) => {
                unpacking.tree.remove();
                Err(error)
            }
        }
    }

    /// Finds out what the umask does, and makes the directories that the path lacks.
    fn begin(&mut self) -> Result<(), FileError> {
        let fail = |errno| FileError::system(&self.place.path, errno);
        let (folder, probe) = (self.tree.folder(), c"mode");
        rustix::fs::mkdirat(folder, probe, Mode::from_raw_mode(DIRECTORY_MODE)).map_err(fail)?;
        let made = rustix::fs::statat(folder, probe, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
        rustix::fs::unlinkat(folder, probe, AtFlags::REMOVEDIR).map_err(fail)?;
        self.is_masked = made.st_mode & 0o777 != DIRECTORY_MODE;
        let missing = self.place.missing.clone();
        self.make_directories(&missing).map_err(|error| match error {
            ImportError::File(error) => error,
            ImportError::Archive(_)
            | ImportError::Budget { .. }
            | ImportError::Kind { .. }
            | ImportError::Changed { .. }
            | ImportError::Torn { .. } => FileError::Internal,
        })
    }

    /// Itself when all went well; otherwise the staged tree is removed first.
    pub(super) fn or_nothing(
        self: Box<Self>,
        outcome: Result<(), ImportError>,
    ) -> Result<Box<Self>, ImportError> {
        match outcome {
            Ok(()) => Ok(self),
            Err(error) => {
                self.tree.remove();
                Err(error)
            }
        }
    }

    /// Takes the next bytes of the archive.
    pub(super) fn push(&mut self, mut piece: &[u8], stop: &Stop) -> Result<(), ImportError> {
        loop {
            stop.check()?;
            match self.reader.next(&mut piece)? {
                None => return Ok(()),
                Some(Event::Entry(entry)) => self.entry(entry)?,
                Some(Event::Content(content)) => self.content(content)?,
            }
        }
    }

    pub(super) fn finish(&self) -> Result<(), ImportError> {
        Ok(self.reader.finish()?)
    }

    fn entry(&mut self, entry: Entry) -> Result<(), ImportError> {
        let path = self.full(&entry.path)?;
        match entry.kind {
            EntryKind::Directory => self.directory(&path, entry.mode),
            EntryKind::File { size } => {
                self.count_bytes(size)?;
                self.count_file()?;
                let file = self.create(&path, entry.mode)?;
                let arriving = Arriving { file, path, mtime: entry.mtime, left: size };
                if size == 0 {
                    return self.complete(&arriving);
                }
                self.file = Some(arriving);
                Ok(())
            }
            EntryKind::Link { target } => self.link(&path, &target, entry.mtime),
            EntryKind::HardLink { target } => self.hard_link(&path, &target),
        }
    }

    /// The path of an entry below the place, with the directories that the place lacks.
    fn full(&self, path: &[u8]) -> Result<Vec<u8>, ImportError> {
        let missing = &self.place.missing;
        let full = match (missing.is_empty(), path.is_empty()) {
            (true, _) => path.to_vec(),
            (false, true) => missing.clone(),
            (false, false) => [missing, path].join(&b'/'),
        };
        if self.place.path.as_bytes().len() + 1 + full.len() > MAX_PATH_BYTES {
            return Err(ArchiveError::entry(path, Refused::TooLong).into());
        }
        Ok(full)
    }

    fn content(&mut self, content: &[u8]) -> Result<(), ImportError> {
        // The reader gives content only after a file of some size, and never more than that.
        let Some(mut arriving) = self.file.take() else { return Err(FileError::Internal.into()) };
        let mut left = content;
        while !left.is_empty() {
            let n_written = rustix::io::retry_on_intr(|| rustix::io::write(&arriving.file, left))
                .map_err(|errno| self.system(&arriving.path, errno))?;
            left = &left[n_written..];
        }
        arriving.left -= content.len() as u64;
        if arriving.left == 0 {
            return self.complete(&arriving);
        }
        self.file = Some(arriving);
        Ok(())
    }

    fn complete(&self, arriving: &Arriving) -> Result<(), ImportError> {
        rustix::fs::futimens(&arriving.file, &times(arriving.mtime))
            .map_err(|errno| self.system(&arriving.path, errno))
    }

    fn create(&mut self, path: &[u8], mode: u32) -> Result<OwnedFd, ImportError> {
        let (directory, name) = self.enter(path)?;
        let created = rustix::fs::openat(directory, name, FILE_FLAGS, Mode::from_raw_mode(mode));
        let file = created.map_err(|errno| self.refused(path, errno))?;
        if self.is_masked {
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::fchmod(&file, mode).map_err(|errno| self.system(path, errno))?;
        }
        Ok(file)
    }

    fn link(&mut self, path: &[u8], target: &[u8], mtime: Mtime) -> Result<(), ImportError> {
        let depth = self.place.depth
            + split(path).0.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
        if !stays_inside(depth, target) {
            return Err(self.entry_refused(path, Refused::LinkLeaves { target: shown(target) }));
        }
        self.count_entry()?;
        let (directory, name) = self.enter(path)?;
        let made = rustix::fs::symlinkat(target, directory, name)
            .and_then(|()| rustix::fs::utimensat(directory, name, &times(mtime), AtFlags::SYMLINK_NOFOLLOW));
        made.map_err(|errno| self.refused(path, errno))
    }

    /// A new name for a file that this archive brought. Whatever is put in its place after the look is linked itself, at worst: no
    /// link is followed.
    fn hard_link(&mut self, path: &[u8], target: &[u8]) -> Result<(), ImportError> {
        self.count_file()?;
        let full_target = self.full(target)?;
        let (parent, leaf) = split(&full_target);
        let partner = self.try_open(parent).ok().filter(|directory| {
            let stat = rustix::fs::statat(directory, leaf, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| Kind::of(&stat) == Kind::Regular)
        });
        let Some(directory) = partner else {
            return Err(self.entry_refused(path, Refused::HardLink { target: shown(target) }));
        };
        let (here, name) = self.enter(path)?;
        rustix::fs::linkat(&directory, leaf, here, name, AtFlags::empty())
            .map_err(|errno| self.refused(path, errno))
    }

    fn directory(&mut self, path: &[u8], mode: u32) -> Result<(), ImportError> {
        if path == self.place.missing {
            return Ok(());
        }
        let (directory, name) = self.enter(path)?;
        let is_new = match rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(mode)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(self.system(path, errno)),
        };
        if is_new {
            self.count_entry()?;
        }
        if !is_new || self.is_masked {
            let made = self.open(path)?;
            let mode = Mode::from_raw_mode(mode);
            rustix::fs::fchmod(&made, mode).map_err(|errno| self.system(path, errno))?;
        }
        Ok(())
    }

    /// The directory of `path`, made when it is missing, and the last name.
    fn enter<'p>(&mut self, path: &'p [u8]) -> Result<(&OwnedFd, &'p [u8]), ImportError> {
        let (parent, name) = split(path);
        if self.here.as_ref().is_none_or(|(open, _)| open != parent) {
            let directory = match self.try_open(parent) {
                Err(ResolveError { fault: Fault::NotFound, .. }) => {
                    self.make_directories(parent)?;
                    self.open(parent)?
                }
                opened => opened.map_err(|error| self.unresolved(parent, error.fault))?,
            };
            self.here = Some((parent.to_vec(), directory));
        }
        match &self.here {
            Some((_, directory)) => Ok((directory, name)),
            None => Err(FileError::Internal.into()),
        }
    }

    /// Makes the directories of `path` that are missing.
    fn make_directories(&mut self, path: &[u8]) -> Result<(), ImportError> {
        let mut end = 0;
        let mut directory = self.open(b"")?;
        while end < path.len() {
            let start = if end == 0 { 0 } else { end + 1 };
            end = path[start..].iter().position(|byte| *byte == b'/').map_or(path.len(), |at| start + at);
            let (here, name) = (&path[..end], &path[start..end]);
            let mode = Mode::from_raw_mode(DIRECTORY_MODE);
            let is_new = match rustix::fs::mkdirat(&directory, name, mode) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(self.system(here, errno)),
            };
            directory = self.open(here)?;
            if is_new {
                self.count_entry()?;
            }
            if is_new && self.is_masked {
                rustix::fs::fchmod(&directory, mode).map_err(|errno| self.system(here, errno))?;
            }
        }
        Ok(())
    }

    fn open(&self, path: &[u8]) -> Result<OwnedFd, ImportError> {
        self.try_open(path).map_err(|error| self.unresolved(path, error.fault))
    }

    fn try_open(&self, path: &[u8]) -> Result<OwnedFd, ResolveError> {
        let folder = self.tree.folder();
        let path = WorkspacePath::from_bytes(path)
            .map_err(|_| ResolveError { path: WorkspacePath::root(), fault: Fault::NameTooLong })?;
        folder.open_without_links(&path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn count_entry(&mut self) -> Result<(), ImportError> {
        self.n_entries += 1;
        if self.n_entries > self.budget.entries {
            let limit = self.budget.entries;
            return Err(ImportError::Budget { field: "max_files", what: "entries", limit });
        }
        Ok(())
    }

    fn count_file(&mut self) -> Result<(), ImportError> {
        self.imported.files += 1;
        self.count_entry()
    }

    /// Before the content arrives, by what the header says.
    fn count_bytes(&mut self, size: u64) -> Result<(), ImportError> {
        let limit = self.budget.bytes;
        self.imported.bytes = self.imported.bytes.saturating_add(size);
        if self.imported.bytes > limit {
            return Err(ImportError::Budget { field: "max_bytes", what: "bytes", limit });
        }
        Ok(())
    }

    /// An entry could not be made: something that the archive brought is there, or the system failed.
    fn refused(&self, path: &[u8], errno: Errno) -> ImportError {
        if errno == Errno::EXIST {
            return self.entry_refused(path, Refused::Duplicate);
        }
        self.system(path, errno)
    }

    /// A directory could not be opened.
    fn unresolved(&self, path: &[u8], fault: Fault) -> ImportError {
        if matches!(fault, Fault::Links | Fault::NotDirectory) {
            return self.entry_refused(path, Refused::BelowNoDirectory);
        }
        FileError::System { path: self.named(path), fault }.into()
    }

    /// As the archive names it.
    fn entry_refused(&self, path: &[u8], refused: Refused) -> ImportError {
        let missing = &self.place.missing;
        let name = if missing.is_empty() { Some(path) } else { path.strip_prefix(&missing[..]) };
        let name = name.map_or(path, |name| name.strip_prefix(b"/").unwrap_or(name));
        ArchiveError::entry(name, refused).into()
    }

    fn system(&self, path: &[u8], errno: Errno) -> ImportError {
        FileError::system(&self.named(path), errno).into()
    }

    /// The path from the workspace root.
    fn named(&self, path: &[u8]) -> WorkspacePath {
        self.place.path.join(path)
    }
}

/// The directory and the last name of a path.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

fn times(mtime: Mtime) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() },
    }
}
