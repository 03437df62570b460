//! Bringing a tree of files in, all or nothing.
//!
//! ```text
//!  pieces ──▶ Import ──▶ archive::Reader ──▶ Unpacked, in the stage folder    nothing in the tree has changed
//!  Unpacked ──▶ Files::bring_in: sync, check everything, then rename entry by entry, then sync
//! ```
//!
//! What is new takes its place by one rename, whole directories at once. A file or link that replaces one changes places
//! with it, so that the old one waits in the stage folder until all went well; after an error everything changes back.
//! What a crash in between leaves is the tree with some of the entries in place, each whole, the old ones lost with the stage.

mod error;
mod place;
mod switch;
mod unpack;

use std::sync::Arc;
use std::time::Duration;

use prost::bytes::Bytes;

pub use self::error::ImportError;
use self::switch::Switch;
#[cfg(test)]
pub(super) use self::switch::exchange_by_link;
use self::unpack::Unpacking;
use super::{FileError, Files, Weight};
use crate::path::WorkspacePath;
use crate::root::Fault;

/// How much an Import may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportBudget {
    /// Bytes of content of regular files.
    pub bytes: u64,
    /// Entries of every kind, directories that no entry names included.
    pub entries: u64,
    /// Time from the first byte to the last.
    pub time: Duration,
}

/// What an Import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Regular files; a hard link is one.
    pub files: u64,
    /// Bytes of their content, that of hard links counted once.
    pub bytes: u64,
}

/// An archive on its way into the stage folder. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Import {
    files: Files,
    unpacking: Box<Unpacking>,
}

/// An archive that arrived whole and waits in the stage folder. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Unpacked(Box<Unpacking>);

impl Files {
    /// Begins to take an archive for the folder `path`, which is made when it is absent.
    ///
    /// # Errors
    /// [`FileError::Invalid`] when `path` holds `..`; [`FileError::Resolve`] when a part of it is a link or a file.
    pub async fn import(&self, path: WorkspacePath, budget: ImportBudget) -> Result<Import, ImportError> {
        let unpacking = self
            .blocking(Weight::Light, move |inner, _| Unpacking::new(&inner.root, &inner.stage, &path, budget))
            .await?;
        Ok(Import { files: self.clone(), unpacking: Box::new(unpacking) })
    }

    /// Gives what was unpacked its place in the tree: all of it, or nothing after an error. What was replaced is removed from the
    /// stage folder soon after.
    ///
    /// Directories that are there stay and are added to. A file or link that is there is replaced by one of its kind, read
    /// before or not: for whoever read it, it has changed. One Import at a time for each workspace.
    ///
    /// # Errors
    /// [`ImportError::Kind`] when something of another kind is in the place of an entry; any system error. Nothing has
    /// changed then, unless the error is that of the last sync or [`ImportError::Torn`].
    pub async fn bring_in(&self, unpacked: Unpacked) -> Result<Imported, ImportError> {
        let turn = Arc::clone(&self.inner.switching).lock_owned().await;
        let permit =
            Arc::clone(&self.inner.pool.switches).acquire_owned().await.map_err(|_| FileError::Cancelled)?;
        let inner = Arc::clone(&self.inner);
        let switching = tokio::task::spawn_blocking(move || {
            let _turn = (turn, permit);
            let Unpacking { tree, place, imported, .. } = *unpacked.0;
            let switched = Switch::new(&inner.lanes, &place, &tree).run();
            match switched {
                // What was replaced is in the folder now; nobody waits for its end.
                Ok(()) => tree.release(),
                Err(_) => tree.remove(),
            }
            switched.map(|()| imported)
        });
        switching.await.unwrap_or(Err(ImportError::File(FileError::Internal)))
    }
}

impl Import {
    /// Takes the next pieces.
    ///
    /// # Errors
    /// [`ImportError::Archive`], [`ImportError::Budget`], or a system error such as no space. The stage folder is empty then.
    pub async fn push(self, pieces: Vec<Bytes>) -> Result<Self, ImportError> {
        let Self { files, mut unpacking } = self;
        let unpacking = files
            .blocking(Weight::Light, move |_, stop| {
                let pushed = pieces.iter().try_for_each(|piece| unpacking.push(piece, stop));
                Ok(unpacking.or_nothing(pushed))
            })
            .await??;
        Ok(Self { files, unpacking })
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// [`ImportError::Archive`] when the archive is not at its end. The stage folder is empty then.
    pub async fn finish(self) -> Result<Unpacked, ImportError> {
        let Self { files, unpacking } = self;
        let unpacking = files
            .blocking(Weight::Light, move |_, _| {
                let finished = unpacking.finish();
                Ok(unpacking.or_nothing(finished))
            })
            .await??;
        Ok(Unpacked(unpacking))
    }

    /// Removes what was unpacked so far, and waits for that.
    pub async fn abandon(self) {
        let Self { files, unpacking } = self;
        // That is all there is to know: what cannot be removed is told in the log, and the next start removes it.
        let _ = files
            .blocking(Weight::Light, move |_, _| {
                unpacking.tree.remove();
                Ok(())
            })
            .await;
    }
}

impl Unpacked {
    /// As [`Import::abandon`].
    pub async fn abandon(self, files: &Files) {
        Import { files: files.clone(), unpacking: self.0 }.abandon().await;
    }
}

/// What a system call said about a path that something else holds or has made meanwhile.
fn is_taken(fault: Fault) -> bool {
    matches!(fault, Fault::AlreadyExists | Fault::NotEmpty | Fault::NotFound | Fault::NotDirectory)
}
