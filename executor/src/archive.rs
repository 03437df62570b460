//! Tar streams, without a file system: what arrives as bytes leaves as checked entries, and the other way round.
//!
//! ```text
//! files::unpack ──▶ Reader ──▶ Entry (path, kind, mode, mtime), content
//! files::pack   ──▶ header  ──▶ blocks
//! ```
//!
//! The layout of a block is the `tar` crate's. What the blocks mean is decided here, strictly: wherever two readers of tar
//! are known to differ, the archive is refused.

mod entry;
mod error;
mod number;
mod pax;
mod reader;
mod writer;

pub use self::entry::{Entry, EntryKind, Mtime, stays_inside};
pub use self::error::{ArchiveError, Refused, shown};
pub use self::reader::{Event, Reader};
pub use self::writer::{END, header, padding, resize};

/// Bytes of one block; everything in an archive is a multiple of it (POSIX.1-2024, pax).
pub const BLOCK_BYTES: usize = 512;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
