//! Reading the archive of an Export: ustar blocks with pax records before an entry, and nothing else.
//!
//! Stricter than a general reader, so that there is little to get wrong: what Export never writes is refused, whatever it would
//! mean. Memory is bounded whatever comes.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tar::Header;

use crate::error::Error;

const BLOCK_BYTES: usize = 512;
/// Records before one entry: two names of 4096 bytes, and times.
const MAX_RECORD_BYTES: u64 = 64 * 1024;
/// The longest path, and the longest name in it (Linux, PATH_MAX and NAME_MAX).
const MAX_PATH_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 255;
/// Where a header keeps its sum.
const SUM_FIELD: std::ops::Range<usize> = 148..156;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the folder, without `.` and `..`; empty for the folder itself.
    pub(crate) path: PathBuf,
    /// What it is.
    pub(crate) kind: Kind,
    /// Permission bits without set-id and sticky; the owner reads and writes, and enters folders; others never write.
    pub(crate) mode: u32,
    /// When it was last changed.
    pub(crate) mtime: SystemTime,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A folder.
    Directory,
    /// A file with so many bytes of content.
    File(u64),
    /// A symbolic link with its target, whichever that is.
    Link(Vec<u8>),
}

/// An archive that is read once.
pub(crate) struct Archive<R>(R);

/// What records say of the next entry.
#[derive(Default)]
struct Records {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
    mtime: Option<SystemTime>,
}

impl<R: Read> Archive<R> {
    /// The archive that `reader` gives.
    pub(crate) fn new(reader: R) -> Self {
        Self(reader)
    }

    /// The next entry, or `None` at the end. The content of a file is to be taken before the next one.
    ///
    /// # Errors
    /// [`Error::Hostile`], [`Error::NoArchive`].
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut records = None;
        loop {
            let block = self.block()?;
            if block.iter().all(|byte| *byte == 0) {
                if records.is_some() {
                    return Err(Error::NoArchive("records are about nothing"));
                }
                self.drain()?;
                return Ok(None);
            }
            let header = checked(&block)?;
            if header.entry_type().as_byte() != b'x' {
                return entry(&header, records.unwrap_or_default()).map(Some);
            }
            if records.is_some() {
                return Err(Error::NoArchive("records come twice"));
            }
            let size = header.entry_size().map_err(|_| Error::NoArchive("a size is no number"))?;
            if size > MAX_RECORD_BYTES {
                return Err(Error::NoArchive("records are too long"));
            }
            let mut text = Vec::new();
            self.content(size, &mut text).map_err(truncated)?;
            records = Some(parse(&text).ok_or(Error::NoArchive("records cannot be read"))?);
        }
    }

    /// The content of the file that was read last.
    ///
    /// # Errors
    /// What `sink` fails with; `UnexpectedEof` when the archive ends.
    pub(crate) fn content(&mut self, size: u64, sink: &mut impl Write) -> io::Result<()> {
        let n_copied = io::copy(&mut (&mut self.0).take(size), sink)?;
        if n_copied != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let n_padding = size.wrapping_neg() % BLOCK_BYTES as u64;
        let n_skipped = io::copy(&mut (&mut self.0).take(n_padding), &mut io::sink())?;
        if n_skipped == n_padding { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn block(&mut self) -> Result<[u8; BLOCK_BYTES], Error> {
        let mut block = [0; BLOCK_BYTES];
        self.0.read_exact(&mut block).map_err(truncated)?;
        Ok(block)
    }

    /// After the first empty block there is nothing but more of them.
    fn drain(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 4096];
        loop {
            match self.0.read(&mut buffer).map_err(truncated)? {
                0 => return Ok(()),
                n_bytes if buffer[..n_bytes].iter().all(|byte| *byte == 0) => {}
                _ => return Err(Error::NoArchive("something comes after its end")),
            }
        }
    }
}

fn truncated(_: io::Error) -> Error {
    Error::NoArchive("it ends early")
}

/// A header whose sum is right.
fn checked(block: &[u8; BLOCK_BYTES]) -> Result<Header, Error> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(block);
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| if SUM_FIELD.contains(&at) { 32 } else { u32::from(*byte) })
        .sum();
    if header.cksum().ok() != Some(sum) {
        return Err(Error::NoArchive("a header's sum is wrong"));
    }
    Ok(header)
}

fn entry(header: &Header, records: Records) -> Result<Entry, Error> {
    let name = records.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let hostile = |why| Error::Hostile { entry: String::from_utf8_lossy(&name).into_owned(), why };
    let path = path(&name).map_err(hostile)?;
    let size = match records.size {
        Some(size) => size,
        None => header.entry_size().map_err(|_| Error::NoArchive("a size is no number"))?,
    };
    let mode = header.mode().map_err(|_| Error::NoArchive("a mode is no number"))?;
    let kind = match header.entry_type().as_byte() {
        b'0' | 0 => Kind::File(size),
        b'5' => Kind::Directory,
        b'2' => {
            let target =
                records.target.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
            Kind::Link(target.unwrap_or_default())
        }
        b'1' => return Err(hostile("is a hard link")),
        b'3' | b'4' | b'6' => return Err(hostile("is a device or a pipe")),
        _ => return Err(hostile("is of a kind that no workspace has")),
    };
    if size != 0 && !matches!(kind, Kind::File(_)) {
        return Err(hostile("has content and is no file"));
    }
    if path.as_os_str().is_empty() && kind != Kind::Directory {
        return Err(hostile("has no name"));
    }
    let owner = if kind == Kind::Directory { 0o700 } else { 0o600 };
    let seconds = header.mtime().map_err(|_| Error::NoArchive("a time is no number"))?;
    let mtime = records.mtime.or_else(|| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    let mtime = mtime.unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(Entry { path, kind, mode: mode & 0o755 | owner, mtime })
}

/// A name as a path that stays where it is put.
fn path(name: &[u8]) -> Result<PathBuf, &'static str> {
    if name.is_empty() {
        return Err("has no name");
    }
    if name.contains(&0) {
        return Err("has a NUL in its name");
    }
    if name.starts_with(b"/") {
        return Err("has an absolute name");
    }
    let mut path = PathBuf::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err("has `..` in its name"),
            _ if part.len() > MAX_NAME_BYTES => return Err("has a name that is too long"),
            _ => path.push(OsStr::from_bytes(part)),
        }
    }
    if path.as_os_str().len() > MAX_PATH_BYTES { Err("has a path that is too long") } else { Ok(path) }
}

/// Extended records: `<length> <key>=<value>\n`, the length of the whole record in decimal (POSIX, pax).
fn parse(mut text: &[u8]) -> Option<Records> {
    let mut records = Records::default();
    while !text.is_empty() {
        let blank = text.iter().position(|byte| *byte == b' ')?;
        let length: usize = str::from_utf8(&text[..blank]).ok()?.parse().ok()?;
        let record = text.get(blank + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        match key {
            b"path" => records.path = Some(value.to_vec()),
            b"linkpath" => records.target = Some(value.to_vec()),
            b"size" => records.size = Some(str::from_utf8(value).ok()?.parse().ok()?),
            b"mtime" => records.mtime = time(str::from_utf8(value).ok()?),
            b"hdrcharset" => {}
            _ => return None,
        }
        text = &text[length..];
    }
    Some(records)
}

/// Seconds since 1970 with a fraction. A time before that is of no use to anybody here and becomes 1970.
fn time(text: &str) -> Option<SystemTime> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nanos: u32 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds.parse().ok()?, nanos))
}

#[cfg(test)]
mod tests;
