//! Ignore files, read through the descriptor of the folder they lie in.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, OFlags};

/// An ignore file is read up to this size; what comes after is not a list that a person wrote.
const IGNORE_FILE_BYTES: usize = 1024 * 1024;

/// The ignore files that count in one directory: its own and those of the directories above, up to the workspace root. Files above
/// the root and of the executor's user do not count.
#[derive(Debug)]
pub(super) struct Ignores {
    above: Option<Arc<Ignores>>,
    /// Bytes of the directory's path and the slash after it, to be taken off the paths that are matched.
    prefix: usize,
    /// `.ignore`.
    plain: Gitignore,
    /// `.gitignore`.
    git: Gitignore,
    /// `.git/info/exclude`.
    exclude: Gitignore,
    /// Rules of git from further up end here.
    is_repository: bool,
}

/// What ignore files say about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Unnamed,
    /// Leave it out.
    Ignored,
    /// Take it, even when it is hidden.
    Wanted,
}

/// Which files that matter here a directory holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    pub(super) plain: bool,
    pub(super) git: bool,
    pub(super) repository: bool,
}

impl Present {
    /// Takes note of one name.
    pub(super) fn note(&mut self, name: &[u8]) {
        match name {
            b".ignore" => self.plain = true,
            b".gitignore" => self.git = true,
            b".git" => self.repository = true,
            _ => {}
        }
    }
}

impl Ignores {
    /// What counts in `directory`, whose path from the workspace root is `path`, below what counts above it.
    pub(super) fn of(
        directory: &OwnedFd,
        path: &[u8],
        present: Present,
        above: Option<Arc<Self>>,
    ) -> Option<Arc<Self>> {
        if !present.plain && !present.git && !present.repository {
            return above;
        }
        let rules =
            |wanted: bool, name: &str| if wanted { read_rules(directory, name) } else { Gitignore::empty() };
        Some(Arc::new(Self {
            above,
            prefix: if path.is_empty() { 0 } else { path.len() + 1 },
            plain: rules(present.plain, ".ignore"),
            git: rules(present.git, ".gitignore"),
            exclude: rules(present.repository, ".git/info/exclude"),
            is_repository: present.repository,
        }))
    }

    /// What the files say about an entry, by its path from the workspace root. `.ignore` counts more than `.gitignore`, and that
    /// more than `exclude`; in each kind the nearest file that names the entry decides.
    pub(super) fn verdict(&self, path: &[u8], is_directory: bool) -> Verdict {
        let mut found = [Verdict::Unnamed; 3];
        let mut saw_repository = false;
        let mut level = Some(self);
        while let Some(here) = level {
            let below = Path::new(OsStr::from_bytes(path.get(here.prefix..).unwrap_or(path)));
            for (kind, (rules, is_git)) in
                [(&here.plain, false), (&here.git, true), (&here.exclude, true)].into_iter().enumerate()
            {
                if found[kind] == Verdict::Unnamed && !(is_git && saw_repository) && !rules.is_empty() {
                    found[kind] = match rules.matched(below, is_directory) {
                        Match::None => Verdict::Unnamed,
                        Match::Ignore(_) => Verdict::Ignored,
                        Match::Whitelist(_) => Verdict::Wanted,
                    };
                }
            }
            saw_repository |= here.is_repository;
            level = here.above.as_deref();
        }
        found.into_iter().find(|verdict| *verdict != Verdict::Unnamed).unwrap_or(Verdict::Unnamed)
    }
}

/// The rules of one file; none when it cannot be read or is not a regular file. Lines that are no valid rule are left out.
fn read_rules(directory: impl AsFd, name: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    if let Some(content) = read_text(directory, name) {
        let text = String::from_utf8_lossy(&content);
        for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read_text(directory: impl AsFd, name: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = rustix::fs::ResolveFlags::BENEATH | rustix::fs::ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut content = vec![0; usize::try_from(stat.st_size).ok()?.min(IGNORE_FILE_BYTES)];
    let mut n_read = 0;
    while n_read < content.len() {
        match rustix::io::pread(&file, &mut content[n_read..], n_read as u64).ok()? {
            0 => break,
            n => n_read += n,
        }
    }
    content.truncate(n_read);
    Some(content)
}
