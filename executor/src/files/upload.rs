//! Content that arrives in frames, before its target is touched.

use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::stage::Staged;
use super::{FileError, Files, Weight};
use crate::path::WorkspacePath;

/// Content up to this size waits in memory, above it in the stage folder.
const IN_MEMORY_BYTES: usize = mooring_proto::MAX_FRAME_BYTES;

/// Content on its way in. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Upload {
    files: Files,
    path: WorkspacePath,
    hasher: Sha256,
    size: u64,
    place: Place,
}

#[derive(Debug)]
pub(super) enum Place {
    Memory(Vec<u8>),
    Stage(Staged),
}

/// Content that has arrived whole and is what was sent.
#[derive(Debug)]
pub struct Uploaded {
    pub(super) place: Place,
    pub(super) size: u64,
    pub(super) sha256: [u8; 32],
}

impl Uploaded {
    /// Bytes of content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// SHA-256 of the content.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }
}

impl Files {
    /// Begins to take content for `path`. The path is not touched before [`Files::write`].
    pub fn upload(&self, path: WorkspacePath) -> Upload {
        let place = Place::Memory(Vec::new());
        Upload { files: self.clone(), path, hasher: Sha256::new(), size: 0, place }
    }
}

impl Upload {
    /// Takes the next piece.
    ///
    /// # Errors
    /// A system error of the stage folder, such as no space.
    pub async fn push(&mut self, piece: Bytes) -> Result<(), FileError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.size += piece.len() as u64;
        if let Place::Memory(held) = &mut self.place
            && held.len() + piece.len() <= IN_MEMORY_BYTES
        {
            self.hasher.update(&piece);
            held.extend_from_slice(&piece);
            return Ok(());
        }
        let place = std::mem::replace(&mut self.place, Place::Memory(Vec::new()));
        let mut hasher = std::mem::take(&mut self.hasher);
        let path = self.path.clone();
        let (staged, hasher) = self
            .files
            .blocking(Weight::Light, move |inner, _| {
                let mut staged = match place {
                    Place::Stage(staged) => staged,
                    Place::Memory(held) => {
                        let mut staged = inner.stage.create(&path)?;
                        staged.append(&path, &held)?;
                        staged
                    }
                };
                staged.append(&path, &piece)?;
                hasher.update(&piece);
                Ok((staged, hasher))
            })
            .await?;
        self.place = Place::Stage(staged);
        self.hasher = hasher;
        Ok(())
    }

    /// Ends the content and holds it against what the sender announced.
    ///
    /// # Errors
    /// [`FileError::Transfer`] when size or digest differ.
    pub fn finish(self, size: u64, sha256: &[u8]) -> Result<Uploaded, FileError> {
        if size != self.size {
            return Err(FileError::Transfer { what: "size" });
        }
        let digest: [u8; 32] = self.hasher.finalize().into();
        if digest != sha256 {
            return Err(FileError::Transfer { what: "digest" });
        }
        Ok(Uploaded { place: self.place, size, sha256: digest })
    }
}
