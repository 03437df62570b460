//! Reading a file, whole, by lines or by bytes, and recording what it was.

mod image;
mod lines;
mod streamed;

use prost::bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use self::lines::LineCollector;
pub use self::streamed::{Frame, Streamed};
use super::kind::Kind;
use super::ledger::LedgerKey;
use super::stop::Stop;
use super::version::{HASHED_UP_TO_BYTES, StatVersion, Version, read_at, size_of};
use super::{FILE_CHUNK_BYTES, FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;
use crate::root::Fault;

/// Files up to this size are read in one piece.
const ONE_PIECE_BYTES: u64 = mooring_proto::MAX_FRAME_BYTES as u64;
/// Images up to this size come whole: 10 MiB.
const IMAGE_BYTES: u64 = 10 * 1024 * 1024;
/// A NUL byte within so many bytes makes a file binary.
const BINARY_PROBE_BYTES: usize = 8 * 1024;

/// Which part of a file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Whole lines.
    Lines(LineRange),
    /// Bytes.
    Bytes(ByteRange),
}

/// Lines `offset..offset + limit`, as many as fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// First line, 1-based.
    pub offset: u64,
    /// Most lines.
    pub limit: u64,
    /// Most bytes. A line is cut only when it alone is longer.
    pub max_bytes: usize,
}

/// Bytes `offset..offset + limit`, as far as the file goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// From the start of the file.
    pub offset: u64,
    /// Most bytes; `None`: to the end of the file as it was when it was opened.
    pub limit: Option<u64>,
}

/// Which bound left something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncationReason {
    /// The number of lines, entries or matches.
    Count,
    /// Their bytes.
    Bytes,
    /// The time for a search.
    Time,
}

/// What a bounded answer left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Which bound was reached.
    pub reason: TruncationReason,
    /// How many there are in all, when known exactly.
    pub total: Option<u64>,
    /// How many are in the answer.
    pub sent: u64,
    /// The next line to read; 0 where nothing can be continued.
    pub next_offset: u64,
}

/// What was read.
#[derive(Debug)]
pub struct Reading {
    /// The version that is in the ledger now, or will be when a streamed content has come to its end.
    pub version: Version,
    /// Bytes of the whole file.
    pub size: u64,
    /// `image/png` and the like, when the content is a whole image.
    pub media_type: Option<&'static str>,
    /// Set when lines were left out.
    pub truncation: Option<Truncation>,
    /// A NUL byte is near the start.
    pub binary: bool,
    /// The part that was asked for.
    pub content: Content,
}

/// The bytes of a [`Reading`].
#[derive(Debug)]
pub enum Content {
    /// All of it, at most one frame.
    Whole {
        /// The bytes.
        bytes: Bytes,
        /// SHA-256 over `bytes`.
        sha256: [u8; 32],
    },
    /// More than one frame, read as it is sent.
    Streamed(Box<Streamed>),
}

/// A reading in the making: what every way of reading needs.
struct Opened<'a> {
    path: &'a WorkspacePath,
    file: std::os::fd::OwnedFd,
    stat: rustix::fs::Stat,
    size: u64,
    key: LedgerKey,
}

impl Files {
    /// Reads a regular file, following links that stay inside, and records its version for `actor`, also when only a part
    /// was asked for.
    ///
    /// The content is the file as it was long when it was opened: what is appended meanwhile is not part of it. Up to 64 MiB the
    /// whole file is read to know its version, above only what the range needs. An image of at most 10 MiB comes whole
    /// whatever the range says.
    ///
    /// # Errors
    /// [`FileError::NotRegular`] at once for directories, FIFOs, sockets and devices; [`FileError::Resolve`] when the path does not
    /// resolve beneath the root.
    pub async fn read(&self, actor: &str, path: WorkspacePath, range: Range) -> Result<Reading, FileError> {
        let key = self.inner.ledger_key(actor, &path);
        let files = self.clone();
        self.blocking(Weight::Light, move |inner, stop| inner.read(files, key, &path, range, stop)).await
    }
}

impl Inner {
    fn read(
        &self,
        files: Files,
        key: LedgerKey,
        path: &WorkspacePath,
        range: Range,
        stop: &Stop,
    ) -> Result<Reading, FileError> {
        let (file, stat) = self.open_for_reading(path)?;
        let size = size_of(&stat);
        let opened = Opened { path, file, stat, size, key };
        if size <= ONE_PIECE_BYTES {
            return self.read_small(&opened, range);
        }
        let mut probe = vec![0; BINARY_PROBE_BYTES];
        let n_probed = read_at(path, &opened.file, &mut probe, 0)?;
        let probe = &probe[..n_probed];
        let media_type = if size <= IMAGE_BYTES { image::media_type(probe) } else { None };
        let range =
            if media_type.is_some() { Range::Bytes(ByteRange { offset: 0, limit: None }) } else { range };
        let binary = probe.contains(&0);
        let reading = match range {
            Range::Lines(lines) => self.read_lines(&opened, lines, stop)?,
            Range::Bytes(bytes) => self.read_bytes(files, opened, bytes, stop)?,
        };
        Ok(Reading { media_type, binary, ..reading })
    }

    /// Opens a regular file for reading, following links that stay inside.
    pub(super) fn open_for_reading(
        &self,
        path: &WorkspacePath,
    ) -> Result<(std::os::fd::OwnedFd, rustix::fs::Stat), FileError> {
        let special = || FileError::NotRegular { path: path.clone(), kind: Kind::Special };
        let file = match self.root.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Err(error) if error.fault == Fault::Special => return Err(special()),
            other => other?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| FileError::system(path, errno))?;
        match Kind::of(&stat) {
            Kind::Regular => Ok((file, stat)),
            kind @ (Kind::Directory | Kind::Link | Kind::Special) => {
                Err(FileError::NotRegular { path: path.clone(), kind })
            }
        }
    }

    fn read_small(&self, opened: &Opened<'_>, range: Range) -> Result<Reading, FileError> {
        let content = read_whole(opened)?;
        let version = Version::of_content(&content);
        self.pool.ledger.record(opened.key, version);
        let binary = content[..content.len().min(BINARY_PROBE_BYTES)].contains(&0);
        let size = content.len() as u64;
        let media_type = image::media_type(&content);
        let content = Bytes::from(content);
        let (bytes, truncation) = match range {
            Range::Lines(_) | Range::Bytes(_) if media_type.is_some() => (content.clone(), None),
            Range::Lines(lines) => {
                let mut collector = LineCollector::new(lines);
                collector.feed(&content);
                let (bytes, truncation) = collector.finish(true);
                (Bytes::from(bytes), truncation)
            }
            Range::Bytes(bytes) => {
                let (start, end) = clip(bytes, size);
                // Both are at most `size`, which came from a length in memory.
                (content.slice(as_index(start)..as_index(end)), None)
            }
        };
        let sha256 = match version {
            Version::Content(digest) if bytes.len() as u64 == size => digest,
            Version::Content(_) | Version::Stat(_) => Sha256::digest(&bytes).into(),
        };
        let content = Content::Whole { bytes, sha256 };
        Ok(Reading { version, size, media_type, truncation, binary, content })
    }

    /// One pass: the lines, and the digest over the whole file when that is its version.
    fn read_lines(&self, opened: &Opened<'_>, lines: LineRange, stop: &Stop) -> Result<Reading, FileError> {
        let mut collector = LineCollector::new(lines);
        let hashed = opened.size <= HASHED_UP_TO_BYTES;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; FILE_CHUNK_BYTES];
        let mut offset = 0;
        while offset < opened.size && (hashed || !collector.is_done()) {
            stop.check()?;
            let n_read = read_at(opened.path, &opened.file, &mut buffer, offset)?;
            if n_read == 0 {
                break;
            }
            let left = usize::try_from(opened.size - offset).unwrap_or(usize::MAX);
            let chunk = &buffer[..n_read.min(left)];
            if hashed {
                hasher.update(chunk);
            }
            collector.feed(chunk);
            offset += chunk.len() as u64;
            if !hashed && !collector.is_collecting() && chunk.iter().all(|byte| *byte == 0) {
                offset = skip_hole(opened, offset);
            }
        }
        let version = if hashed {
            Version::Content(hasher.finalize().into())
        } else {
            Version::Stat(StatVersion::of(&opened.stat))
        };
        self.pool.ledger.record(opened.key, version);
        let (bytes, truncation) = collector.finish(offset >= opened.size);
        let sha256 = Sha256::digest(&bytes).into();
        let content = Content::Whole { bytes: Bytes::from(bytes), sha256 };
        let size = if hashed { offset } else { opened.size };
        Ok(Reading { version, size, media_type: None, truncation, binary: false, content })
    }

    /// One pass for the version when that is a digest; the range comes out of it when it fits in a frame, and is read again,
    /// frame by frame, when it does not.
    fn read_bytes(
        &self,
        files: Files,
        opened: Opened<'_>,
        range: ByteRange,
        stop: &Stop,
    ) -> Result<Reading, FileError> {
        let (start, end) = clip(range, opened.size);
        let version = Version::of_file(opened.path, &opened.file, &opened.stat, stop)?;
        let size = opened.size;
        let content = if end - start <= ONE_PIECE_BYTES {
            let mut bytes = vec![0; as_index(end - start)];
            fill(&opened, &mut bytes, start)?;
            self.pool.ledger.record(opened.key, version);
            Content::Whole { sha256: Sha256::digest(&bytes).into(), bytes: Bytes::from(bytes) }
        } else {
            let is_whole = start == 0 && end == size;
            Content::Streamed(Box::new(Streamed::new(files, opened, version, start..end, is_whole)))
        };
        Ok(Reading { version, size, media_type: None, truncation: None, binary: false, content })
    }
}

/// The content of a small file as it was long when it was opened, or shorter when it shrank.
fn read_whole(opened: &Opened<'_>) -> Result<Vec<u8>, FileError> {
    let mut content = vec![0; as_index(opened.size)];
    let n_read = fill_some(opened, &mut content, 0)?;
    content.truncate(n_read);
    Ok(content)
}

/// Reads exactly `bytes.len()` bytes at `offset`.
fn fill(opened: &Opened<'_>, bytes: &mut [u8], offset: u64) -> Result<(), FileError> {
    let wanted = bytes.len();
    if fill_some(opened, bytes, offset)? < wanted {
        return Err(FileError::Changed { path: opened.path.clone() });
    }
    Ok(())
}

/// Reads until `bytes` is full or the file ends.
fn fill_some(opened: &Opened<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, FileError> {
    let mut n_read = 0;
    while n_read < bytes.len() {
        let n = read_at(opened.path, &opened.file, &mut bytes[n_read..], offset + n_read as u64)?;
        if n == 0 {
            break;
        }
        n_read += n;
    }
    Ok(n_read)
}

/// Where data goes on after `offset`; holes hold no line ends.
fn skip_hole(opened: &Opened<'_>, offset: u64) -> u64 {
    match rustix::fs::seek(&opened.file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => data.clamp(offset, opened.size),
        Err(rustix::io::Errno::NXIO) => opened.size,
        // No such call on this file system: read on.
        Err(_) => offset,
    }
}

/// Start and end of a byte range within a file.
fn clip(range: ByteRange, size: u64) -> (u64, u64) {
    let start = range.offset.min(size);
    let end = range.limit.map_or(size, |limit| start.saturating_add(limit).min(size));
    (start, end)
}

/// A number that is known to be below the size of something in memory.
fn as_index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
