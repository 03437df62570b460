//! What a directory entry is.

use rustix::fs::{FileType, Stat};

/// Kinds that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link, not what it points to.
    Link,
    /// FIFO, socket or device: listed, never opened.
    Special,
}

impl Kind {
    /// The kind that `stat` describes.
    pub fn of(stat: &Stat) -> Self {
        Self::of_type(FileType::from_raw_mode(stat.st_mode))
    }

    /// The kind of a file type; an unknown type is special, so it is never opened.
    pub fn of_type(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::Regular,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Special,
        }
    }

    /// In a sentence: `it is ...`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Regular => "a regular file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Special => "a FIFO, socket or device",
        }
    }
}
