//! A tree as a tar stream, and the stream as frames.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use indicatif::ProgressBar;
use mooring_proto::MAX_FRAME_BYTES;
use mooring_proto::v1::{ImportHeader, ImportRequest, TransferEnd};
use rustix::fs::{CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;

use super::tree::{Entry, Kind, Tree};
use crate::error::Error;

/// Why a stream was not finished.
#[derive(Debug)]
pub(crate) enum PackError {
    /// Nobody takes it any more.
    Unwanted,
    /// Something here failed.
    Failed(Error),
}

impl From<Error> for PackError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Streams a tree.
///
/// # Errors
/// When a file cannot be read or became shorter meanwhile, and when nobody takes the stream.
pub(crate) fn pack(tree: &Tree, frames: Frames, progress: &ProgressBar) -> Result<(), PackError> {
    let mut archive = Builder::new(BufWriter::with_capacity(MAX_FRAME_BYTES / 2, frames));
    for entry in &tree.entries {
        let appended = append(&mut archive, tree, entry, progress);
        appended.map_err(|error| failed(&format!("read {}", entry.path.display()), error))?;
    }
    let end = |error| failed("end the archive", error);
    let buffer = archive.into_inner().map_err(end)?;
    let frames = buffer.into_inner().map_err(|error| end(error.into_error()))?;
    frames.finish().map_err(end)
}

fn failed(what: &str, error: io::Error) -> PackError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return PackError::Unwanted;
    }
    PackError::Failed(Error::local(what, error))
}

fn append(
    archive: &mut Builder<BufWriter<Frames>>,
    tree: &Tree,
    entry: &Entry,
    progress: &ProgressBar,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_mtime(u64::try_from(entry.mtime).unwrap_or(0));
    match &entry.kind {
        Kind::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_size(0);
            archive.append_data(&mut header, &entry.path, io::empty())
        }
        Kind::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            archive.append_link(&mut header, &entry.path, target)
        }
        Kind::File(_) => {
            // What was a file may be a link or a pipe by now.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file =
                File::from(rustix::fs::openat(CWD, tree.root.join(&entry.path), flags, Mode::empty())?);
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::other("it is no file any more"));
            }
            header.set_entry_type(EntryType::Regular);
            header.set_size(found.len());
            let exactly = Exactly { file, left: found.len(), progress };
            archive.append_data(&mut header, &entry.path, exactly)
        }
    }
}

/// As many bytes of a file as its header says: what is appended meanwhile is left out.
struct Exactly<'a> {
    file: File,
    left: u64,
    progress: &'a ProgressBar,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let n_bytes = self.file.read(&mut buffer[..most])?;
        if n_bytes == 0 {
            return Err(io::Error::other("it became shorter while it was read"));
        }
        self.left -= n_bytes as u64;
        self.progress.inc(n_bytes as u64);
        Ok(n_bytes)
    }
}

/// Makes a frame of every write.
pub(crate) struct Frames {
    header: Option<ImportHeader>,
    sender: mpsc::Sender<ImportRequest>,
    digest: Sha256,
    bytes: u64,
}

impl Frames {
    /// Frames of which the first has the header.
    pub(crate) fn new(header: ImportHeader, sender: mpsc::Sender<ImportRequest>) -> Self {
        Self { header: Some(header), sender, digest: Sha256::new(), bytes: 0 }
    }

    fn send(&mut self, content: &[u8], end: Option<TransferEnd>) -> io::Result<()> {
        let frame = ImportRequest { header: self.header.take(), content: content.to_vec().into(), end };
        self.sender.blocking_send(frame).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn finish(mut self) -> io::Result<()> {
        let sha256 = std::mem::take(&mut self.digest).finalize().to_vec().into();
        let end = TransferEnd { total_bytes: self.bytes, sha256 };
        self.send(&[], Some(end))
    }
}

impl Write for Frames {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let content = &content[..content.len().min(MAX_FRAME_BYTES)];
        self.digest.update(content);
        self.bytes += content.len() as u64;
        self.send(content, None)?;
        Ok(content.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
