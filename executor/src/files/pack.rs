//! Taking a tree of files out as an archive, frame by frame.
//!
//! The walk is depth first, by descriptors and without links, names in order of their bytes, so that equal trees give equal
//! archives. One directory is open at a time; what was read of the others is names alone.

mod frame;
mod walk;

use std::vec;

use prost::bytes::Bytes;
use rustix::fs::FileType;

use self::frame::Frames;
use super::{FileError, Files, Weight};
use crate::path::WorkspacePath;
use crate::root::Root;

/// Entries that a report names; further ones are counted.
pub const REPORTED_ENTRIES: usize = 1000;

/// What is in an archive, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackReport {
    /// Regular files.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// What was left out, at most [`REPORTED_ENTRIES`] of them: the path below the folder, and why.
    pub skipped: Vec<(Vec<u8>, Skipped)>,
    /// All that was left out.
    pub skipped_total: u64,
}

/// Why an entry is not in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// A symbolic link that leads out of the folder, or might.
    LinkLeaves,
    /// FIFO, socket or device.
    Special,
    /// The system refused to read it, or its path is too long to be named.
    Unreadable,
}

/// One frame of an archive.
#[derive(Debug)]
pub struct PackFrame {
    /// At most one frame's bytes.
    pub bytes: Bytes,
    /// With the last frame.
    pub end: Option<PackEnd>,
}

/// What can be said when all of an archive was made.
#[derive(Debug)]
pub struct PackEnd {
    /// Bytes of all frames.
    pub total_bytes: u64,
    /// SHA-256 of them.
    pub sha256: [u8; 32],
    /// What is in the archive.
    pub report: PackReport,
}

/// An archive in the making. Makes one frame each time it is asked, so that a slow reader holds neither a thread nor more
/// than one frame; dropped, it ends.
#[derive(Debug)]
pub struct Pack {
    files: Files,
    state: Option<Box<Packing>>,
}

#[derive(Debug)]
struct Packing {
    /// The folder.
    base: Root,
    /// Its path from the workspace root.
    start: WorkspacePath,
    /// The directories on the way, outermost first.
    levels: Vec<Level>,
    /// The directory that entries are being taken from.
    here: Option<Here>,
    frames: Frames,
    report: PackReport,
    /// The end mark is in the frames.
    is_ended: bool,
}

/// A directory, and the names in it that are still to come.
#[derive(Debug)]
struct Level {
    /// Below the folder.
    path: WorkspacePath,
    names: vec::IntoIter<(Vec<u8>, FileType)>,
}

/// The directory that is open.
#[derive(Debug)]
struct Here {
    depth: usize,
    directory: std::os::fd::OwnedFd,
}

impl Files {
    /// Begins an archive of the directory `path`. Links in the path are followed as long as they stay inside.
    ///
    /// # Errors
    /// [`FileError::NotDirectory`]; any error of opening it.
    pub async fn pack(&self, path: WorkspacePath) -> Result<Pack, FileError> {
        let state = self.blocking(Weight::Light, move |inner, _| Packing::new(&inner.root, path)).await?;
        Ok(Pack { files: self.clone(), state: Some(Box::new(state)) })
    }
}

impl Pack {
    /// The next frame; `None` after the last one.
    ///
    /// # Errors
    /// [`FileError::Changed`] when a file became shorter than what was announced of it; any system error that is not about
    /// one entry's permission.
    pub async fn next_frame(&mut self) -> Result<Option<PackFrame>, FileError> {
        let Some(mut state) = self.state.take() else { return Ok(None) };
        let (frame, state) = self
            .files
            .blocking(Weight::Light, move |_, stop| {
                let frame = state.step(stop)?;
                let state = frame.end.is_none().then_some(state);
                Ok((frame, state))
            })
            .await?;
        self.state = state;
        Ok(Some(frame))
    }
}
