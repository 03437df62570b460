//! Why an archive is refused. Nothing is ever taken from an archive that is.

use mooring_proto::v1::ErrorCode;

use crate::path::escape;

/// The most bytes of a name that an error repeats.
const SHOWN_BYTES: usize = 512;

/// Why an archive, or one entry of it, is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// The bytes are no tar archive that can be read in one way only.
    #[error("the stream is not a sound tar archive: {reason} at byte {at}")]
    Malformed {
        /// What is wrong.
        reason: &'static str,
        /// Where the block begins, in bytes from the start of the stream.
        at: u64,
    },
    /// The stream is over before the archive is.
    #[error("the archive ends at byte {at}, before its end mark")]
    Truncated {
        /// Bytes that arrived.
        at: u64,
    },
    /// An entry that no archive may bring.
    #[error("the archive's entry {name}: {refused}")]
    Entry {
        /// The entry's name, escaped and cut.
        name: String,
        /// What about it.
        refused: Refused,
    },
}

/// What is wrong with one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A name that begins with a slash.
    #[error("its name is absolute")]
    Absolute,
    /// A name with a `..` in it.
    #[error("its name holds `..`")]
    DotDot,
    /// No name at all.
    #[error("its name is empty")]
    Empty,
    /// A NUL byte in a name or in the target of a link.
    #[error("a NUL byte is in its name or target")]
    Nul,
    /// A component or the whole of it is too long.
    #[error("its path or one of its names is too long: at most 4096 bytes, 255 in one name")]
    TooLong,
    /// A symbolic link whose target is not inside the tree, or climbs anywhere but at its beginning.
    #[error("it is a symbolic link that may lead out of the tree: {target}")]
    LinkLeaves {
        /// The target, escaped and cut.
        target: String,
    },
    /// A hard link to what this archive did not bring before, or to something that is no regular file.
    #[error("it is a hard link to {target}, which is no regular file that this archive brought before")]
    HardLink {
        /// The target, escaped and cut.
        target: String,
    },
    /// A device, FIFO or socket.
    #[error("it is a device, FIFO or socket")]
    Special,
    /// A sparse file in one of GNU's forms.
    #[error("it is a sparse file; archives are taken without --sparse")]
    Sparse,
    /// A type that is not known, as its byte.
    #[error("its type {0:#04x} is not known")]
    UnknownType(u8),
    /// The archive brings the same path twice.
    #[error("the archive brings this path twice")]
    Duplicate,
    /// A part of its path is a link or a file that this archive brought.
    #[error("a part of its path is a link or a file")]
    BelowNoDirectory,
}

impl ArchiveError {
    /// A refusal of the entry `name`.
    pub fn entry(name: &[u8], refused: Refused) -> Self {
        Self::Entry { name: shown(name), refused }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Malformed { .. } | Self::Truncated { .. } => ErrorCode::InvalidArgument,
            Self::Entry { refused, .. } => refused.code(),
        }
    }
}

impl Refused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Absolute
            | Self::DotDot
            | Self::LinkLeaves { .. }
            | Self::HardLink { .. }
            | Self::BelowNoDirectory => ErrorCode::PathEscapes,
            Self::Empty | Self::Nul => ErrorCode::InvalidArgument,
            Self::TooLong => ErrorCode::NameTooLong,
            Self::Special => ErrorCode::NotRegularFile,
            Self::Sparse | Self::UnknownType(_) => ErrorCode::Unsupported,
            Self::Duplicate => ErrorCode::AlreadyExists,
        }
    }
}

/// A name as a sentence may carry it: bytes that are not UTF-8 as `\xHH`, what does not print as `\u{..}`, cut when long.
pub fn shown(name: &[u8]) -> String {
    let cut = &name[..name.len().min(SHOWN_BYTES)];
    let mut text = String::with_capacity(cut.len());
    for character in escape(cut).chars() {
        match character {
            '\\' | '"' | '\'' => text.push(character),
            _ => text.extend(character.escape_debug()),
        }
        if text.len() > SHOWN_BYTES {
            break;
        }
    }
    if text.is_empty() {
        return "(without a name)".to_owned();
    }
    if cut.len() < name.len() || text.len() > SHOWN_BYTES {
        text.push('…');
    }
    text
}
