//! Replacing text in a file that was read and is unchanged.

use memchr::memmem::Finder;

use super::kind::Kind;
use super::ledger::LedgerKey;
use super::stage::Install;
use super::stop::Stop;
use super::target::Target;
use super::version::{HASHED_UP_TO_BYTES, Version, read_at, size_of};
use super::write::ensure_current;
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;

#[cfg(test)]
mod tests;

/// Most bytes of the text to be replaced, and of what is to stand there instead: 512 KiB.
pub const EDIT_TEXT_BYTES: usize = 512 * 1024;

/// Files above this size are edited a few at a time.
const LIGHT_EDIT_BYTES: u64 = 1024 * 1024;

/// A replacement of bytes by bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    old: Vec<u8>,
    new: Vec<u8>,
    replace_all: bool,
}

/// What an Edit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The version that is in the ledger now.
    pub version: Version,
    /// Matches replaced.
    pub replacements: u32,
    /// Directory entries that shared the file before: above 1 the others still hold the old bytes.
    pub link_count: u32,
    /// Bytes of the whole file now.
    pub size: u64,
}

impl Edit {
    /// Replaces the only match of `old`, or each one, by `new`.
    ///
    /// # Errors
    /// [`FileError::Invalid`] when `old` is empty or equal to `new`; [`FileError::TooLarge`] above [`EDIT_TEXT_BYTES`].
    pub fn new(old: Vec<u8>, new: Vec<u8>, replace_all: bool) -> Result<Self, FileError> {
        if old.is_empty() {
            let reason = "the text to replace is empty; to make a new file or replace a whole one, write it";
            return Err(FileError::Invalid { reason: reason.to_owned() });
        }
        if old == new {
            let reason = "the text to replace and its replacement are the same";
            return Err(FileError::Invalid { reason: reason.to_owned() });
        }
        for (what, text) in [("the text to replace", &old), ("the replacement", &new)] {
            if text.len() > EDIT_TEXT_BYTES {
                let (size, limit) = (text.len() as u64, EDIT_TEXT_BYTES as u64);
                return Err(FileError::TooLarge { what, size, limit });
            }
        }
        Ok(Self { old, new, replace_all })
    }

    /// The content after the edit, and how many matches were replaced. Every byte outside the matches stays as it is.
    ///
    /// Without `replace_all` two matches that overlap are two: either could be meant.
    fn apply(&self, path: &WorkspacePath, content: &[u8]) -> Result<(Vec<u8>, u32), FileError> {
        let finder = Finder::new(&self.old);
        let Some(first) = finder.find(content) else { return Err(FileError::NoMatch { path: path.clone() }) };
        if !self.replace_all && finder.find(&content[first + 1..]).is_some() {
            let matches = (finder.find_iter(content).count() as u64).max(2);
            return Err(FileError::Ambiguous { path: path.clone(), matches });
        }
        let n_matches = finder.find_iter(content).count();
        let size = content.len() - n_matches * self.old.len() + n_matches * self.new.len();
        if size as u64 > HASHED_UP_TO_BYTES {
            let (size, limit) = (size as u64, HASHED_UP_TO_BYTES);
            return Err(FileError::TooLarge { what: "the file after the edit", size, limit });
        }
        let mut edited = Vec::with_capacity(size);
        let mut from = 0;
        for at in finder.find_iter(content) {
            edited.extend_from_slice(&content[from..at]);
            edited.extend_from_slice(&self.new);
            from = at + self.old.len();
        }
        edited.extend_from_slice(&content[from..]);
        // At most one match per byte of a file that is far below 4 GiB.
        Ok((edited, u32::try_from(n_matches).unwrap_or(u32::MAX)))
    }
}

impl Files {
    /// Applies `edit` to the regular file at `path` in one step. The file must have been read by `actor` and be unchanged; mode
    /// stays, and owner where the system allows. Edits of one file by one actor may follow each other without a new Read.
    ///
    /// # Errors
    /// [`FileError::Unread`], [`FileError::Stale`], [`FileError::NoMatch`], [`FileError::Ambiguous`]; [`FileError::TooLarge`] for files above
    /// 64 MiB. After any error the old bytes are in place and no temporary is left.
    pub async fn edit(&self, actor: &str, path: WorkspacePath, edit: Edit) -> Result<Edited, FileError> {
        let key = self.inner.ledger_key(actor, &path);
        let (target, size) = self
            .blocking(Weight::Light, move |inner, _| {
                let target = Target::open(&inner.root, &path, "edited")?;
                let size = target.stat()?.map_or(0, |stat| size_of(&stat));
                Ok((target, size))
            })
            .await?;
        let weight = if size > LIGHT_EDIT_BYTES { Weight::Heavy } else { Weight::Light };
        let lane = self.inner.lanes.enter(target.lane()).await;
        self.blocking(weight, move |inner, stop| {
            let _lane = lane;
            inner.edit(key, &target, &edit, stop)
        })
        .await
    }
}

impl Inner {
    fn edit(&self, key: LedgerKey, target: &Target, edit: &Edit, stop: &Stop) -> Result<Edited, FileError> {
        let path = &target.path;
        if target.is_directory {
            return Err(target.not_regular(Kind::Directory));
        }
        let (old, stat) = target.open_regular()?;
        let Some((_, known)) = self.check_replaceable(key, target)? else {
            return Err(FileError::Stale { path: path.clone() });
        };
        let size = size_of(&stat);
        if size > HASHED_UP_TO_BYTES {
            return Err(FileError::TooLarge { what: "the file", size, limit: HASHED_UP_TO_BYTES });
        }
        let content = read_known(path, &old, size, stop)?;
        if Version::of_content(&content) != known {
            return Err(FileError::Stale { path: path.clone() });
        }
        let (edited, replacements) = edit.apply(path, &content)?;
        drop(content);
        let mut staged = self.stage.create_for(target)?;
        staged.append(path, &edited)?;
        staged.adopt(path, &stat)?;
        staged.keep_attributes(&old);
        staged.sync(path)?;
        ensure_current(target, known, stop)?;
        stop.check()?;
        let size = staged.size();
        self.stage.install(staged, target, Install::Replace)?;
        let version = Version::of_content(&edited);
        self.pool.ledger.record(key, version);
        let link_count = u32::try_from(stat.st_nlink).unwrap_or(u32::MAX);
        Ok(Edited { version, replacements, link_count, size })
    }
}

/// The content of an open file, as long as it was when it was opened.
fn read_known(
    path: &WorkspacePath,
    file: &std::os::fd::OwnedFd,
    size: u64,
    stop: &Stop,
) -> Result<Vec<u8>, FileError> {
    let mut content = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let mut n_read = 0;
    while n_read < content.len() {
        stop.check()?;
        let n = read_at(path, file, &mut content[n_read..], n_read as u64)?;
        if n == 0 {
            break;
        }
        n_read += n;
    }
    content.truncate(n_read);
    Ok(content)
}
