//! Reading an archive that arrives in pieces of any size.

use tar::Header;

use super::entry::{self, Entry, EntryKind, Mtime};
use super::error::{ArchiveError, Refused};
use super::{BLOCK_BYTES, number, pax};

/// The most bytes of extended records, or of one long name, before an entry.
const MAX_EXTENSION_BYTES: u64 = 1024 * 1024;

/// What comes next in an archive.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// An entry. Exactly as many bytes of content follow as it says, then the next entry.
    Entry(Entry),
    /// Content of the last entry, at least one byte.
    Content(&'a [u8]),
}

/// Takes the bytes of an archive and says what they mean. Holds one block, and extended records of a bounded size.
#[derive(Debug)]
pub struct Reader {
    state: State,
    block: [u8; BLOCK_BYTES],
    n_block: usize,
    /// Bytes taken so far.
    position: u64,
    next: Extensions,
    /// What a global record says of all entries after it.
    mtime: Option<Mtime>,
}

#[derive(Debug)]
enum State {
    Header,
    Extension {
        kind: Extension,
        text: Vec<u8>,
        left: u64,
        padding: u64,
    },
    Content {
        left: u64,
        padding: u64,
    },
    Padding {
        left: u64,
    },
    /// After the end mark, where nothing but zeros may follow.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    Records,
    GlobalRecords,
    LongName,
    LongLink,
}

/// What was said about the entry that is to come.
#[derive(Debug, Default)]
struct Extensions {
    records: Option<pax::Records>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl Extensions {
    fn is_empty(&self) -> bool {
        self.records.is_none() && self.long_name.is_none() && self.long_link.is_none()
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            state: State::Header,
            block: [0; BLOCK_BYTES],
            n_block: 0,
            position: 0,
            next: Extensions::default(),
            mtime: None,
        }
    }
}

impl Reader {
    /// Takes bytes from the front of `input` until something can be said; `None` when all of it was taken.
    ///
    /// # Errors
    /// [`ArchiveError`]. After one the reader is of no further use.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, ArchiveError> {
        while !input.is_empty() {
            match &mut self.state {
                State::Header => {
                    let Some(block) = self.take_block(input) else { break };
                    if let Some(entry) = self.header(&block)? {
                        return Ok(Some(Event::Entry(entry)));
                    }
                }
                State::Content { left, padding } => {
                    let content = split(input, *left);
                    *left -= content.len() as u64;
                    if *left == 0 {
                        self.state = State::after_content(*padding);
                    }
                    self.position += content.len() as u64;
                    return Ok(Some(Event::Content(content)));
                }
                State::Padding { left } => {
                    let taken = split(input, *left).len() as u64;
                    *left -= taken;
                    self.position += taken;
                    if *left == 0 {
                        self.state = State::Header;
                    }
                }
                State::Extension { kind, text, left, padding } => {
                    let piece = split(input, *left);
                    text.extend_from_slice(piece);
                    *left -= piece.len() as u64;
                    self.position += piece.len() as u64;
                    if *left == 0 {
                        let (kind, text, padding) = (*kind, std::mem::take(text), *padding);
                        self.state = State::after_content(padding);
                        self.extend(kind, text)?;
                    }
                }
                State::End => {
                    if input.iter().any(|byte| *byte != 0) {
                        return Err(self.malformed("something follows the end mark"));
                    }
                    self.position += input.len() as u64;
                    *input = &[];
                }
            }
        }
        Ok(None)
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// [`ArchiveError::Truncated`] when its end mark was not read.
    pub fn finish(&self) -> Result<(), ArchiveError> {
        match self.state {
            State::End => Ok(()),
            State::Header | State::Extension { .. } | State::Content { .. } | State::Padding { .. } => {
                Err(ArchiveError::Truncated { at: self.position })
            }
        }
    }

    fn take_block(&mut self, input: &mut &[u8]) -> Option<[u8; BLOCK_BYTES]> {
        let piece = split(input, (BLOCK_BYTES - self.n_block) as u64);
        self.block[self.n_block..self.n_block + piece.len()].copy_from_slice(piece);
        self.n_block += piece.len();
        self.position += piece.len() as u64;
        if self.n_block < BLOCK_BYTES {
            return None;
        }
        self.n_block = 0;
        Some(self.block)
    }

    fn header(&mut self, block: &[u8; BLOCK_BYTES]) -> Result<Option<Entry>, ArchiveError> {
        if block.iter().all(|byte| *byte == 0) {
            if !self.next.is_empty() {
                return Err(self.malformed("records describe an entry that does not come"));
            }
            self.state = State::End;
            return Ok(None);
        }
        let header = Header::from_byte_slice(block);
        if checksum(block) != self.number(&header.as_old().cksum)? {
            return Err(self.malformed("a header's checksum is wrong (compressed archives are not taken)"));
        }
        let size = self.number(&header.as_old().size)?;
        let size = u64::try_from(size).map_err(|_| self.malformed("a negative size"))?;
        let extension = match header.entry_type().as_byte() {
            b'x' => Extension::Records,
            b'g' => Extension::GlobalRecords,
            b'L' => Extension::LongName,
            b'K' => Extension::LongLink,
            other => return self.entry(header, other, size).map(Some),
        };
        self.begin_extension(extension, size)?;
        Ok(None)
    }

    fn begin_extension(&mut self, kind: Extension, size: u64) -> Result<(), ArchiveError> {
        let is_second = match kind {
            Extension::Records => self.next.records.is_some(),
            Extension::LongName => self.next.long_name.is_some(),
            Extension::LongLink => self.next.long_link.is_some(),
            Extension::GlobalRecords => !self.next.is_empty(),
        };
        if is_second {
            return Err(self.malformed("two extensions of one kind describe one entry"));
        }
        if size > MAX_EXTENSION_BYTES {
            return Err(self.malformed("an extension of more than 1 MiB"));
        }
        if size == 0 {
            return self.extend(kind, Vec::new());
        }
        self.state = State::Extension { kind, text: Vec::new(), left: size, padding: padding_of(size) };
        Ok(())
    }

    fn extend(&mut self, kind: Extension, mut text: Vec<u8>) -> Result<(), ArchiveError> {
        match kind {
            Extension::Records | Extension::GlobalRecords => {
                let records =
                    pax::parse(&text).ok_or_else(|| self.malformed("an extended record is not sound"))?;
                if kind == Extension::Records {
                    self.next.records = Some(records);
                } else if records.path.is_some()
                    || records.link_path.is_some()
                    || records.size.is_some()
                    || records.is_sparse
                {
                    return Err(self.malformed("a global record names all entries or their size"));
                } else if records.mtime.is_some() {
                    self.mtime = records.mtime;
                }
            }
            Extension::LongName | Extension::LongLink => {
                if text.last() == Some(&0) {
                    text.pop();
                }
                let place = if kind == Extension::LongName {
                    &mut self.next.long_name
                } else {
                    &mut self.next.long_link
                };
                *place = Some(text);
            }
        }
        Ok(())
    }

    fn entry(&mut self, header: &Header, flag: u8, size: u64) -> Result<Entry, ArchiveError> {
        let Extensions { records, long_name, long_link } = std::mem::take(&mut self.next);
        let records = records.unwrap_or_default();
        if long_name.is_some() && records.path.is_some() || long_link.is_some() && records.link_path.is_some()
        {
            return Err(self.malformed("an entry is named in two ways"));
        }
        let name = long_name.or(records.path).unwrap_or_else(|| header.path_bytes().into_owned());
        if records.is_sparse {
            return Err(ArchiveError::entry(&name, Refused::Sparse));
        }
        let size = records.size.unwrap_or(size);
        if i64::try_from(size).is_err() {
            return Err(self.malformed("a size of more than 2^63-1"));
        }
        let target = || long_link.or(records.link_path).unwrap_or_else(|| link_name(header));
        let (path, kind) = self.kind(&name, flag, size, target)?;
        if !matches!(kind, EntryKind::File { .. }) && size != 0 {
            return Err(self.malformed("an entry that is no file has content"));
        }
        if path.is_empty() && kind != EntryKind::Directory {
            return Err(ArchiveError::entry(&name, Refused::Empty));
        }
        // Only the low bits mean anything, whatever stands above them.
        let mode = u32::try_from(self.number(&header.as_old().mode)? & 0o7777).unwrap_or(0);
        let is_directory = kind == EntryKind::Directory;
        let mode = if is_directory { entry::directory_mode(mode) } else { entry::file_mode(mode) };
        let mtime = match records.mtime.or(self.mtime) {
            Some(mtime) => mtime,
            None => Mtime { seconds: self.number(&header.as_old().mtime)?, nanos: 0 },
        };
        if size > 0 {
            self.state = State::Content { left: size, padding: padding_of(size) };
        }
        Ok(Entry { path, kind, mode, mtime })
    }

    /// The path and the kind of the entry `name` by its type flag.
    fn kind(
        &self,
        name: &[u8],
        flag: u8,
        size: u64,
        target: impl FnOnce() -> Vec<u8>,
    ) -> Result<(Vec<u8>, EntryKind), ArchiveError> {
        let (path, is_slashed) = entry::path(name)?;
        let kind = match flag {
            // Archives older than POSIX mark a directory by its name alone.
            b'0' | 0 if is_slashed && size == 0 => EntryKind::Directory,
            b'0' | b'7' | 0 if is_slashed => {
                return Err(self.malformed("a file with the name of a directory"));
            }
            b'0' | b'7' | 0 => EntryKind::File { size },
            b'1' => EntryKind::HardLink { target: entry::path(&target())?.0 },
            b'2' => EntryKind::Link { target: entry::link_target(name, target())? },
            b'3' | b'4' | b'6' => return Err(ArchiveError::entry(name, Refused::Special)),
            b'5' => EntryKind::Directory,
            b'S' => return Err(ArchiveError::entry(name, Refused::Sparse)),
            other => return Err(ArchiveError::entry(name, Refused::UnknownType(other))),
        };
        Ok((path, kind))
    }

    fn number(&self, field: &[u8]) -> Result<i64, ArchiveError> {
        number::field(field).ok_or_else(|| self.malformed("a header's field is no number"))
    }

    /// About the block that was read last.
    fn malformed(&self, reason: &'static str) -> ArchiveError {
        ArchiveError::Malformed {
            reason,
            at: self.position.saturating_sub(1) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64,
        }
    }
}

impl State {
    fn after_content(padding: u64) -> Self {
        if padding == 0 { Self::Header } else { Self::Padding { left: padding } }
    }
}

fn link_name(header: &Header) -> Vec<u8> {
    header.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// The sum of all bytes, with those of the checksum itself counted as blanks.
fn checksum(block: &[u8; BLOCK_BYTES]) -> i64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(*byte)).sum::<i64>();
    sum(&block[..148]) + 8 * 32 + sum(&block[156..])
}

/// At most `n_bytes` from the front of `input`.
fn split<'a>(input: &mut &'a [u8], n_bytes: u64) -> &'a [u8] {
    let n_taken = usize::try_from(n_bytes).map_or(input.len(), |n_bytes| n_bytes.min(input.len()));
    let (taken, rest) = input.split_at(n_taken);
    *input = rest;
    taken
}

/// Bytes after content of `size` bytes, up to a whole block.
fn padding_of(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK_BYTES as u64
}
