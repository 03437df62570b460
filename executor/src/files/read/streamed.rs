//! Content of more than one frame.

use std::ops::Range;
use std::os::fd::OwnedFd;

use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::super::ledger::LedgerKey;
use super::super::version::Version;
use super::super::{FileError, Files, Weight};
use super::{Opened, as_index, fill};
use crate::path::WorkspacePath;

/// Reads one frame each time it is asked, so that a slow reader holds neither a thread nor more than one frame.
#[derive(Debug)]
pub struct Streamed {
    files: Files,
    state: Option<State>,
}

#[derive(Debug)]
struct State {
    path: WorkspacePath,
    file: OwnedFd,
    stat: rustix::fs::Stat,
    key: LedgerKey,
    version: Version,
    left: Range<u64>,
    total: u64,
    is_whole: bool,
    hasher: Sha256,
}

/// One frame of a longer content.
#[derive(Debug)]
pub struct Frame {
    /// At most one frame's bytes.
    pub bytes: Bytes,
    /// Bytes and SHA-256 of all frames, with the last one.
    pub end: Option<(u64, [u8; 32])>,
}

impl Streamed {
    pub(super) fn new(
        files: Files,
        opened: Opened<'_>,
        version: Version,
        range: Range<u64>,
        is_whole: bool,
    ) -> Self {
        let total = range.end - range.start;
        let state = State {
            path: opened.path.clone(),
            file: opened.file,
            stat: opened.stat,
            key: opened.key,
            version,
            left: range,
            total,
            is_whole,
            hasher: Sha256::new(),
        };
        Self { files, state: Some(state) }
    }

    /// The next frame; `None` after the last one. With the last one the version is recorded in the ledger.
    ///
    /// # Errors
    /// [`FileError::Changed`] when the bytes are no longer those of the announced version.
    pub async fn next_frame(&mut self) -> Result<Option<Frame>, FileError> {
        let Some(state) = self.state.take() else { return Ok(None) };
        let (frame, state) =
            self.files.blocking(Weight::Light, move |inner, _| state.step(&inner.pool.ledger)).await?;
        self.state = state;
        Ok(Some(frame))
    }
}

impl State {
    fn step(mut self, ledger: &super::super::Ledger) -> Result<(Frame, Option<Self>), FileError> {
        let n_bytes = (self.left.end - self.left.start).min(mooring_proto::MAX_FRAME_BYTES as u64);
        let mut bytes = vec![0; as_index(n_bytes)];
        let opened = Opened { path: &self.path, file: self.file, stat: self.stat, size: 0, key: self.key };
        fill(&opened, &mut bytes, self.left.start)?;
        self.file = opened.file;
        self.hasher.update(&bytes);
        self.left.start += n_bytes;
        let bytes = Bytes::from(bytes);
        if self.left.start < self.left.end {
            return Ok((Frame { bytes, end: None }, Some(self)));
        }
        let digest: [u8; 32] = self.hasher.clone().finalize().into();
        self.verify(digest)?;
        ledger.record(self.key, self.version);
        Ok((Frame { bytes, end: Some((self.total, digest)) }, None))
    }

    /// Whether what was sent is what the header announced. A part of a file is held against its times, which an append
    /// changes as well.
    fn verify(&self, digest: [u8; 32]) -> Result<(), FileError> {
        let unchanged = match self.version {
            Version::Content(announced) if self.is_whole => announced == digest,
            Version::Content(_) => {
                let now =
                    rustix::fs::fstat(&self.file).map_err(|errno| FileError::system(&self.path, errno))?;
                (now.st_mtime, now.st_mtime_nsec) == (self.stat.st_mtime, self.stat.st_mtime_nsec)
            }
            // Whatever changed meanwhile changed the version too, so no later Write builds on it.
            Version::Stat(_) => true,
        };
        if unchanged { Ok(()) } else { Err(FileError::Changed { path: self.path.clone() }) }
    }
}
