//! From the stage folder into the tree, and back when something goes wrong on the way.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::place::Place;
use super::{ImportError, is_taken};
use crate::files::lane::{Lane, LaneKey, Lanes};
use crate::files::names::read_names;
use crate::files::stage::StagedTree;
use crate::files::{FileError, Kind};
use crate::path::WorkspacePath;
use crate::root::{Fault, Root};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// The way of one staged tree into its place.
#[derive(Debug)]
pub(super) struct Switch<'a> {
    lanes: &'a Lanes,
    place: &'a Place,
    staged: &'a StagedTree,
    done: Vec<Change>,
}

/// One entry that has taken its place.
#[derive(Debug)]
struct Change {
    /// Below the place.
    directory: Arc<WorkspacePath>,
    name: Box<[u8]>,
    how: Step,
    /// Of what was brought.
    inode: u64,
}

/// How an entry takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing was there.
    Move,
    /// Changes places with what was there.
    Exchange,
}

/// What a walk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Finds what stands in the way.
    Check,
    /// Renames.
    Apply,
}

/// A directory that is both staged and in the tree.
#[derive(Debug)]
struct Pair {
    path: Arc<WorkspacePath>,
    staged: OwnedFd,
    present: OwnedFd,
}

impl<'a> Switch<'a> {
    pub(super) fn new(lanes: &'a Lanes, place: &'a Place, staged: &'a StagedTree) -> Self {
        Self { lanes, place, staged, done: Vec::new() }
    }

    /// All of it, or nothing after an error.
    pub(super) fn run(mut self) -> Result<(), ImportError> {
        // What takes its place is on the disk before.
        self.staged.sync(&self.place.path)?;
        self.walk(Pass::Check)?;
        if let Err(error) = self.walk(Pass::Apply) {
            self.undo()?;
            return Err(error);
        }
        self.staged.sync(&self.place.path)?;
        Ok(())
    }

    /// Visits every entry of the directories that are on both sides, outermost first, before anything below it.
    fn walk(&mut self, pass: Pass) -> Result<(), ImportError> {
        let mut pending = vec![WorkspacePath::root()];
        while let Some(path) = pending.pop() {
            let pair = self.open(Arc::new(path))?;
            let names = read_names(&pair.staged).map_err(|errno| self.system(&pair.path, errno))?;
            for (name, _) in names {
                let goes_below = match pass {
                    Pass::Check => self.step(&pair, &name)?.0.is_none(),
                    Pass::Apply => self.apply(&pair, &name)?,
                };
                if goes_below {
                    pending.push(pair.path.join(&name));
                }
            }
        }
        Ok(())
    }

    /// What is to happen to an entry; `None` for a directory that is there already.
    fn step(&self, pair: &Pair, name: &[u8]) -> Result<(Option<Step>, Stat), ImportError> {
        let path = || pair.path.join(name);
        let stat = |directory| rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let brought = stat(&pair.staged).map_err(|errno| self.system(&path(), errno))?;
        let present = match stat(&pair.present) {
            Ok(present) => present,
            Err(Errno::NOENT) => return Ok((Some(Step::Move), brought)),
            Err(errno) => return Err(self.system(&path(), errno)),
        };
        let step = match (Kind::of(&present), Kind::of(&brought)) {
            (Kind::Directory, Kind::Directory) => None,
            (Kind::Regular, Kind::Regular) | (Kind::Link, Kind::Link) => Some(Step::Exchange),
            (present, brought) => {
                return Err(ImportError::Kind { path: self.named(&path()), present, brought });
            }
        };
        Ok((step, brought))
    }

    /// Gives an entry its place; `true` for a directory that is there already.
    fn apply(&mut self, pair: &Pair, name: &[u8]) -> Result<bool, ImportError> {
        let _lane = self.lane(pair, name)?;
        let (Some(how), brought) = self.step(pair, name)? else { return Ok(true) };
        let renamed = match how {
            Step::Move => rename_to_nothing(&pair.staged, &pair.present, name),
            Step::Exchange => exchange(&pair.staged, &pair.present, name),
        };
        renamed.map_err(|errno| self.failed(&pair.path.join(name), Fault::of(errno)))?;
        let directory = Arc::clone(&pair.path);
        self.done.push(Change { directory, name: name.into(), how, inode: brought.st_ino });
        Ok(false)
    }

    /// Takes back what was done, last first.
    fn undo(&mut self) -> Result<(), ImportError> {
        let mut torn = None;
        let mut pair: Option<Pair> = None;
        while let Some(change) = self.done.pop() {
            let is_here = pair.as_ref().is_some_and(|pair| Arc::ptr_eq(&pair.path, &change.directory));
            if !is_here {
                pair = self.open(Arc::clone(&change.directory)).ok();
            }
            if !pair.as_ref().is_some_and(|pair| self.take_back(pair, &change)) {
                torn = Some(self.named(&change.directory.join(&change.name)));
            }
        }
        torn.map_or(Ok(()), |path| Err(ImportError::Torn { path }))
    }

    /// Whether the entry is as it was before the change.
    fn take_back(&self, pair: &Pair, change: &Change) -> bool {
        let Ok(_lane) = self.lane(pair, &change.name) else { return false };
        let present = rustix::fs::statat(&pair.present, &*change.name, AtFlags::SYMLINK_NOFOLLOW);
        // Somebody has put something else there since: that stays.
        if !present.is_ok_and(|stat| stat.st_ino == change.inode) {
            return false;
        }
        let renamed = match change.how {
            Step::Move => rename_to_nothing(&pair.present, &pair.staged, &change.name),
            Step::Exchange => exchange(&pair.present, &pair.staged, &change.name),
        };
        renamed.is_ok()
    }

    fn open(&self, path: Arc<WorkspacePath>) -> Result<Pair, ImportError> {
        let fail = |fault| self.failed(&path, fault);
        let staged = self.staged.folder().open_without_links(&path, DIRECTORY);
        let staged = staged.map_err(|error| fail(error.fault))?;
        let place = self.place.directory.try_clone().map_err(|_| fail(Fault::Exhausted))?;
        let present = Root::new(place, "/".into()).open_without_links(&path, DIRECTORY);
        let present = present.map_err(|error| fail(error.fault))?;
        Ok(Pair { path, staged, present })
    }

    /// Waits until no other call changes this entry.
    fn lane(&self, pair: &Pair, name: &[u8]) -> Result<Lane, ImportError> {
        let stat = rustix::fs::fstat(&pair.present).map_err(|errno| self.system(&pair.path, errno))?;
        let key = LaneKey { device: stat.st_dev, inode: stat.st_ino, name: name.to_vec() };
        Ok(tokio::runtime::Handle::current().block_on(self.lanes.enter(key)))
    }

    /// What was looked at a moment before is no longer so, or the system failed.
    fn failed(&self, path: &WorkspacePath, fault: Fault) -> ImportError {
        let path = self.named(path);
        if is_taken(fault) {
            return ImportError::Changed { path };
        }
        // Two file systems: a mount inside the tree.
        let is_across = fault == Fault::Escapes;
        if is_across {
            FileError::AnotherMount { path }.into()
        } else {
            FileError::System { path, fault }.into()
        }
    }

    fn system(&self, path: &WorkspacePath, errno: Errno) -> ImportError {
        FileError::system(&self.named(path), errno).into()
    }

    /// The path from the workspace root.
    fn named(&self, path: &WorkspacePath) -> WorkspacePath {
        if path.as_bytes().is_empty() {
            self.place.path.clone()
        } else {
            self.place.path.join(path.as_bytes())
        }
    }
}

/// Moves an entry to another directory where nothing has its name.
fn rename_to_nothing(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, name, RenameFlags::NOREPLACE) {
        // A file system without NOREPLACE (rename(2)): our own calls are kept out by the lane.
        Err(Errno::INVAL | Errno::NOSYS) => match rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, name),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
        other => other,
    }
}

/// Lets two files, or two links, of one name change places, so that either is under that name at every moment.
fn exchange(staged: &OwnedFd, present: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match rustix::fs::renameat_with(staged, name, present, name, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS) => exchange_by_link(staged, present, name),
        other => other,
    }
}

/// [`exchange`] on a file system that has no such call.
pub(in crate::files) fn exchange_by_link(
    staged: &OwnedFd,
    present: &OwnedFd,
    name: &[u8],
) -> Result<(), Errno> {
    // Shorter than any name that could be refused for its length, and not one that an archive can bring beside `name`.
    let kept = kept_name(staged, name)?;
    rustix::fs::linkat(present, name, staged, kept.as_slice(), AtFlags::empty())?;
    if let Err(errno) = rustix::fs::renameat(staged, name, present, name) {
        let _ = rustix::fs::unlinkat(staged, kept.as_slice(), AtFlags::empty());
        return Err(errno);
    }
    rustix::fs::renameat(staged, kept.as_slice(), staged, name)
}

/// A name that is free in `directory`.
fn kept_name(directory: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    for number in 0..=u16::MAX {
        let candidate = format!(".mooring-old-{number}").into_bytes();
        if candidate == name {
            continue;
        }
        match rustix::fs::statat(directory, candidate.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(candidate),
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
    }
    Err(Errno::EXIST)
}
