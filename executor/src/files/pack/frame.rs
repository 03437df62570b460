//! The bytes of an archive, cut into frames.

use std::os::fd::OwnedFd;

use mooring_proto::MAX_FRAME_BYTES;
use prost::bytes::Bytes;
use rustix::buffer::spare_capacity;
use sha2::{Digest as _, Sha256};

use super::{PackEnd, PackFrame, PackReport};
use crate::archive::{self, BLOCK_BYTES, Entry};
use crate::files::FileError;
use crate::files::stop::Stop;
use crate::path::WorkspacePath;

/// A frame, and room for the headers and the padding that cross its edge.
const FRAME_CAPACITY: usize = MAX_FRAME_BYTES + 16 * 1024;

/// The frame that is being filled, and the file whose content fills it.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: Vec<u8>,
    file: Option<Source>,
    hasher: Sha256,
    total: u64,
}

/// A file that is being read.
#[derive(Debug)]
struct Source {
    path: WorkspacePath,
    file: OwnedFd,
    /// As the header says.
    size: u64,
    n_read: u64,
    /// Where its header lies, as long as that is in the buffer.
    header_at: Option<usize>,
}

impl Frames {
    /// Makes room for one frame, and for what crosses its edge.
    pub(super) fn begin(&mut self) {
        self.buffer.reserve_exact(FRAME_CAPACITY.saturating_sub(self.buffer.len()));
    }

    /// Whether a frame is full.
    pub(super) fn is_full(&self) -> bool {
        self.buffer.len() >= MAX_FRAME_BYTES
    }

    /// Appends an entry without content.
    pub(super) fn entry(&mut self, entry: &Entry) {
        archive::header(&mut self.buffer, entry);
    }

    /// Appends the header of `entry` and takes its content of `size` bytes from `file`, in this frame and the next ones.
    pub(super) fn file(&mut self, entry: &Entry, path: WorkspacePath, file: OwnedFd, size: u64) {
        let header_at = Some(archive::header(&mut self.buffer, entry));
        self.file = Some(Source { path, file, size, n_read: 0, header_at });
    }

    /// Reads from the current file until the frame is full or the file is over; then its bytes are in `report`.
    pub(super) fn fill(&mut self, report: &mut PackReport, stop: &Stop) -> Result<(), FileError> {
        while let Some(mut source) = self.file.take() {
            stop.check()?;
            let left = source.size - source.n_read;
            if left == 0 {
                self.complete(&source, report);
                return Ok(());
            }
            if self.is_full() {
                self.file = Some(source);
                return Ok(());
            }
            let n_read = self.read(&source, left)?;
            source.n_read += n_read;
            if n_read == 0 {
                self.shorten(&mut source)?;
            }
            self.file = Some(source);
        }
        Ok(())
    }

    fn read(&mut self, source: &Source, left: u64) -> Result<u64, FileError> {
        let room = MAX_FRAME_BYTES - self.buffer.len();
        let wanted = usize::try_from(left).map_or(room, |left| left.min(room));
        let before = self.buffer.len();
        let offset = source.n_read;
        loop {
            match rustix::io::pread(&source.file, spare_capacity(&mut self.buffer), offset) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(FileError::system(&source.path, errno)),
            }
        }
        // The room may have been more than was wanted, and the file may have grown.
        self.buffer.truncate(before + wanted);
        Ok((self.buffer.len() - before) as u64)
    }

    /// The file is shorter than its header says: the header is corrected when it has not left yet.
    fn shorten(&mut self, source: &mut Source) -> Result<(), FileError> {
        let block = source.header_at.and_then(|at| self.buffer.get_mut(at..at + BLOCK_BYTES));
        if !block.is_some_and(|block| archive::resize(block, source.size, source.n_read)) {
            return Err(FileError::Changed { path: source.path.clone() });
        }
        source.size = source.n_read;
        Ok(())
    }

    fn complete(&mut self, source: &Source, report: &mut PackReport) {
        archive::padding(&mut self.buffer, source.size);
        report.files += 1;
        report.bytes += source.size;
    }

    /// The frame that is full.
    pub(super) fn take(&mut self) -> PackFrame {
        // A header that crossed the edge goes on in the next frame.
        let rest = self.buffer.split_off(MAX_FRAME_BYTES.min(self.buffer.len()));
        let bytes = self.cut(rest);
        if let Some(source) = &mut self.file {
            source.header_at = None;
        }
        PackFrame { bytes, end: None }
    }

    fn cut(&mut self, rest: Vec<u8>) -> Bytes {
        let bytes = Bytes::from(std::mem::replace(&mut self.buffer, rest));
        self.hasher.update(&bytes);
        self.total += bytes.len() as u64;
        bytes
    }

    /// Ends the archive.
    pub(super) fn push_end(&mut self) {
        self.buffer.extend_from_slice(&archive::END);
    }

    /// The last frame.
    pub(super) fn take_last(&mut self, report: PackReport) -> PackFrame {
        let bytes = self.cut(Vec::new());
        let sha256 = std::mem::take(&mut self.hasher).finalize().into();
        PackFrame { bytes, end: Some(PackEnd { total_bytes: self.total, sha256, report }) }
    }
}
