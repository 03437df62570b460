//! Walking a tree by descriptors.
//!
//! Every directory is opened beneath the start with no link in any part of its path, so a directory that is swapped for a
//! link while the walk is on its way is refused, never entered. Names that come out are names inside the workspace.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, OFlags};

use super::ignored::{Ignores, Present, Verdict};
use super::{Budget, SEARCH_THREADS, Tally};
use crate::files::FileError;
use crate::files::kind::Kind;
use crate::files::names::read_names;
use crate::path::WorkspacePath;
use crate::root::Root;

/// How a tree is walked.
#[derive(Debug)]
pub(in crate::files) struct Walk<'a> {
    root: &'a Root,
    /// Where the walk begins: all paths below are relative to it.
    base: Root,
    /// Path of the start from the workspace root.
    start: WorkspacePath,
    /// Ignore files do not count, and hidden entries are taken.
    include_ignored: bool,
    /// Hidden entries are taken.
    include_hidden: bool,
    /// The start lies in a `.git` directory.
    in_git: bool,
    budget: &'a Budget,
    tally: &'a Tally,
}

/// A directory that waits to be read.
#[derive(Debug)]
struct Pending {
    /// Relative to the start.
    path: Vec<u8>,
    ignores: Option<Arc<Ignores>>,
}

/// Names of a directory's entries, with what the directory says they are.
type Names = Vec<(Vec<u8>, FileType)>;

#[derive(Debug, Default)]
struct Queue {
    pending: Vec<Pending>,
    /// Directories that are being read and may bring further ones.
    n_active: usize,
    is_ended: bool,
}

impl<'a> Walk<'a> {
    /// A walk of the directory `start`, which is open as `directory`.
    pub(in crate::files) fn new(
        root: &'a Root,
        start: &WorkspacePath,
        directory: OwnedFd,
        budget: &'a Budget,
        tally: &'a Tally,
    ) -> Self {
        let start = start.without_dots();
        let in_git = start.names().any(|name| name == b".git");
        let base = Root::new(directory, root.visible().to_owned());
        Self { root, base, start, include_ignored: false, include_hidden: false, in_git, budget, tally }
    }

    /// Takes everything but `.git`, whatever ignore files say.
    pub(in crate::files) fn include_ignored(mut self, yes: bool) -> Self {
        self.include_ignored = yes;
        self
    }

    /// Takes names that begin with a dot.
    pub(in crate::files) fn include_hidden(mut self, yes: bool) -> Self {
        self.include_hidden = yes;
        self
    }

    /// The tree below the start, for opening what was found.
    pub(in crate::files) fn base(&self) -> &Root {
        &self.base
    }

    /// Hands the regular files of each directory, as paths relative to the start, to `visit`, from several threads and in no
    /// order. Ends early when the budget is spent or `visit` answers `false`; says whether it came to its end.
    pub(in crate::files) fn run(
        &self,
        visit: &(dyn Fn(Vec<Vec<u8>>) -> bool + Sync),
    ) -> Result<bool, FileError> {
        let first = Pending { path: Vec::new(), ignores: self.ignores_above() };
        let queue = Mutex::new(Queue { pending: vec![first], ..Queue::default() });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for _ in 1..SEARCH_THREADS {
                scope.spawn(|| self.work(&queue, &changed, visit));
            }
            self.work(&queue, &changed, visit);
        });
        self.budget.stop.check()?;
        let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(!queue.is_ended)
    }

    fn work(&self, queue: &Mutex<Queue>, changed: &Condvar, visit: &(dyn Fn(Vec<Vec<u8>>) -> bool + Sync)) {
        let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = lock();
        loop {
            while held.pending.is_empty() && held.n_active > 0 && !held.is_ended {
                held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            if held.is_ended {
                return;
            }
            let Some(directory) = held.pending.pop() else { return };
            held.n_active += 1;
            drop(held);
            let (files, below) = self.read(directory);
            let goes_on = !self.budget.is_spent() && (files.is_empty() || visit(files));
            held = lock();
            held.n_active -= 1;
            held.is_ended |= !goes_on;
            held.pending.extend(below);
            changed.notify_all();
        }
    }

    /// Reads one directory: the files in it, and the directories to be read next.
    fn read(&self, directory: Pending) -> (Vec<Vec<u8>>, Vec<Pending>) {
        let Pending { path, ignores } = directory;
        let Some((handle, names)) = self.open(&path) else {
            self.tally.unreadable.add(1);
            return (Vec::new(), Vec::new());
        };
        let full = self.full_path(&path);
        let mut present = Present::default();
        for (name, _) in &names {
            present.note(name);
        }
        let ignores = if self.include_ignored { None } else { Ignores::of(&handle, &full, present, ignores) };
        let (mut files, mut below) = (Vec::new(), Vec::new());
        for (name, file_type) in names {
            let Some(kind) = self.kind(&handle, &name, file_type) else { continue };
            if self.is_left_out(&full, &name, kind, ignores.as_deref()) {
                continue;
            }
            match kind {
                Kind::Regular => files.push(join(&path, &name)),
                Kind::Directory => {
                    below.push(Pending { path: join(&path, &name), ignores: ignores.clone() });
                }
                Kind::Link => self.tally.links.add(1),
                Kind::Special => self.tally.special.add(1),
            }
        }
        (files, below)
    }

    fn open(&self, path: &[u8]) -> Option<(OwnedFd, Names)> {
        let path = WorkspacePath::from_bytes(path).ok()?;
        let handle = self.base.open_without_links(&path, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let names = read_names(&handle).ok()?;
        Some((handle, names))
    }

    /// The kind by the directory itself, or by `lstat` on file systems that do not say it there.
    fn kind(&self, directory: &OwnedFd, name: &[u8], file_type: FileType) -> Option<Kind> {
        if file_type != FileType::Unknown {
            return Some(Kind::of_type(file_type));
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if stat.is_none() {
            self.tally.unreadable.add(1);
        }
        stat.as_ref().map(Kind::of)
    }

    fn is_left_out(&self, directory: &[u8], name: &[u8], kind: Kind, ignores: Option<&Ignores>) -> bool {
        if name == b".git" && !self.in_git {
            return true;
        }
        if self.include_ignored {
            return false;
        }
        let is_hidden = name.first() == Some(&b'.') && !self.include_hidden;
        let verdict = ignores.map_or(Verdict::Unnamed, |ignores| {
            ignores.verdict(&join(directory, name), kind == Kind::Directory)
        });
        match verdict {
            Verdict::Ignored => true,
            Verdict::Wanted => false,
            Verdict::Unnamed => is_hidden,
        }
    }

    /// The path of something below the start, from the workspace root.
    pub(in crate::files) fn full_path(&self, path: &[u8]) -> Vec<u8> {
        if path.is_empty() { self.start.as_bytes().to_vec() } else { join(self.start.as_bytes(), path) }
    }

    /// The ignore files of the directories above the start. None for a start that is spelt through `..`: what is above it then is for
    /// the kernel to say.
    fn ignores_above(&self) -> Option<Arc<Ignores>> {
        if self.include_ignored || self.start.names().any(|name| name == b"..") {
            return None;
        }
        let mut ignores = None;
        let mut here = WorkspacePath::root();
        for name in self.start.names() {
            let directory = self.root.open_directory(&here).ok()?;
            let mut present = Present::default();
            for special in [&b".ignore"[..], b".gitignore", b".git"] {
                if rustix::fs::statat(&directory, special, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    present.note(special);
                }
            }
            ignores = Ignores::of(&directory, here.as_bytes(), present, ignores);
            here = here.join(name);
        }
        ignores
    }
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    if !directory.is_empty() {
        path.extend_from_slice(directory);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
