//! Paths as callers spell them, parsed once at the edge.
//!
//! A [`WorkspacePath`] holds bytes relative to a workspace root. It is never cleaned: what `d/../x` means is decided by the
//! kernel when the path is resolved beneath the root, because only the kernel knows whether `d` is a link.

use std::fmt::{self, Write as _};

use mooring_proto::v1::ErrorCode;

#[cfg(test)]
mod tests;

/// The longest path, in bytes after escapes are undone.
pub const MAX_PATH_BYTES: usize = 4096;

/// The longest component: `NAME_MAX` of every Linux file system in use.
pub const MAX_NAME_BYTES: usize = 255;

/// A path below one workspace root, as bytes without a leading slash. Empty: the root itself.
///
/// [`Display`](fmt::Display) writes the escaped form that [`WorkspacePath::parse`] reads back to the same bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath {
    bytes: Vec<u8>,
}

/// Why a path cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A NUL byte cannot be part of a path.
    #[error("the path holds a NUL byte")]
    Nul,
    /// More bytes than [`MAX_PATH_BYTES`], or a component of more than [`MAX_NAME_BYTES`].
    #[error(
        "the path or one of its names is too long: at most {MAX_PATH_BYTES} bytes, {MAX_NAME_BYTES} in one name"
    )]
    TooLong,
    /// An absolute path that is not below the workspace root.
    #[error("the absolute path {path} is not in the workspace; paths are relative to the workspace root")]
    Absolute {
        /// The path as it was given.
        path: String,
    },
}

impl PathError {
    /// The stable code of this refusal.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Nul => ErrorCode::InvalidArgument,
            Self::TooLong => ErrorCode::NameTooLong,
            Self::Absolute { .. } => ErrorCode::PathEscapes,
        }
    }
}

/// The last name of a path and the folder that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The folder, still unresolved.
    pub parent: WorkspacePath,
    /// One component: neither empty nor `.` nor `..`, without a slash.
    pub name: Vec<u8>,
    /// The path ended in a slash, so it can only mean a directory.
    pub is_directory: bool,
}

impl WorkspacePath {
    /// The workspace root.
    pub fn root() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Parses what a caller sent.
    ///
    /// `\xHH` (upper case, HH in 80..FF or 5C) stands for that one byte; every other backslash is itself, and nothing else is
    /// decoded: `%2e`, `~` and `$HOME` are plain names. An absolute path is accepted when it equals `visible_root`, the root
    /// as commands see it, up to a component boundary; the rest is then relative.
    ///
    /// # Errors
    /// [`PathError`]; whether the path leaves the root through `..` or links is found out by [`Root`](crate::root::Root).
    pub fn parse(text: &str, visible_root: &[u8]) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES * 4 {
            return Err(PathError::TooLong);
        }
        let bytes = unescape(text);
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        if bytes.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        let relative = if bytes.first() == Some(&b'/') {
            below(&bytes, visible_root).ok_or_else(|| PathError::Absolute { path: text.to_owned() })?
        } else {
            &bytes
        };
        Self::from_bytes(relative)
    }

    /// Takes bytes that are relative already, such as a path that a walk met.
    ///
    /// # Errors
    /// [`PathError`] as in [`WorkspacePath::parse`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        if bytes.first() == Some(&b'/') {
            return Err(PathError::Absolute { path: escape(bytes) });
        }
        if bytes.len() > MAX_PATH_BYTES
            || bytes.split(|byte| *byte == b'/').any(|name| name.len() > MAX_NAME_BYTES)
        {
            return Err(PathError::TooLong);
        }
        Ok(if bytes == b"." { Self::root() } else { Self { bytes: bytes.to_vec() } })
    }

    /// The bytes without a leading slash; empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What to hand to a system call that is relative to the root: `.` for the root itself.
    pub fn as_system(&self) -> &[u8] {
        if self.bytes.is_empty() { b"." } else { &self.bytes }
    }

    /// The components that are neither empty nor `.`, in order; `..` is one of them.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.bytes.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".")
    }

    /// The same path without empty and `.` components, which name nothing whatever the links are. `..` stays. One spelling
    /// for tables that are keyed by path.
    #[must_use]
    pub fn without_dots(&self) -> Self {
        Self { bytes: self.names().collect::<Vec<_>>().join(&b'/') }
    }

    /// Splits off the last name. `None` when there is none to act on: the root, and paths that end in `.` or `..`.
    pub fn leaf(&self) -> Option<Leaf> {
        let end = self.bytes.iter().rposition(|byte| *byte != b'/')? + 1;
        let trimmed = &self.bytes[..end];
        let start = trimmed.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let name = &trimmed[start..];
        if name == b"." || name == b".." {
            return None;
        }
        let parent = Self { bytes: trimmed[..start].to_vec() };
        Some(Leaf { parent, name: name.to_vec(), is_directory: end < self.bytes.len() })
    }

    /// This path and one more name below it.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = self.bytes.clone();
        if !bytes.is_empty() && bytes.last() != Some(&b'/') {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self { bytes }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(self.as_system()))
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WorkspacePath({:?})", escape(&self.bytes))
    }
}

/// The part of `bytes` below `visible_root`, when that is a prefix up to a component boundary.
fn below<'a>(bytes: &'a [u8], visible_root: &[u8]) -> Option<&'a [u8]> {
    let mut root = visible_root;
    while let Some((&b'/', shorter)) = root.split_last() {
        root = shorter;
    }
    let rest = bytes.strip_prefix(root)?;
    if !rest.is_empty() && rest[0] != b'/' {
        return None;
    }
    let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
    Some(&rest[start..])
}

/// The text form of a name or path: UTF-8 as it is, every other byte as `\xHH`, and a backslash as `\x5C` where it would
/// otherwise read as an escape.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (at, character) in valid.char_indices() {
            if character == '\\' && escaped_byte(&valid.as_bytes()[at..]).is_some() {
                text.push_str("\\x5C");
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

/// Undoes [`escape`].
pub fn unescape(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(byte) = escaped_byte(rest) {
            bytes.push(byte);
            rest = &rest[4..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    bytes
}

/// The byte that an escape at the start of `bytes` stands for.
fn escaped_byte(bytes: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let byte = digit(*high)? << 4 | digit(*low)?;
    (byte >= 0x80 || byte == b'\\').then_some(byte)
}
