//! Why a file call was refused or failed.

use mooring_proto::v1::ErrorCode;
use rustix::io::Errno;

use super::kind::Kind;
use crate::path::{PathError, WorkspacePath};
use crate::root::{Fault, ResolveError};

/// Why a file request was refused or failed. Nothing was changed, unless a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The path cannot be used at all.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path does not resolve beneath the root.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A system call on something that was resolved failed.
    #[error("{path}: {}", .fault.sentence())]
    System {
        /// What it was about.
        path: WorkspacePath,
        /// What the kernel said.
        fault: Fault,
    },
    /// Only a regular file can be read, written, edited or copied.
    #[error("{path} is {}, not a regular file{}", .kind.noun(), advice(*.kind))]
    NotRegular {
        /// The path that was asked for.
        path: WorkspacePath,
        /// What is there.
        kind: Kind,
    },
    /// Only a directory can be listed or searched by glob.
    #[error("{path} is not a directory")]
    NotDirectory {
        /// The path that was asked for.
        path: WorkspacePath,
    },
    /// The root, or a path that ends in `.` or `..`: there is no name to act on.
    #[error("{path} names no entry that could be {action}; the workspace root itself cannot")]
    NoEntry {
        /// The path that was asked for.
        path: WorkspacePath,
        /// Past participle: `written`, `moved`.
        action: &'static str,
    },
    /// The file exists and this actor has not read it in this live environment.
    #[error(
        "{path} exists and has not been read since this environment started; nothing was changed and no data was lost: \
         read the file, then write it again"
    )]
    Unread {
        /// The path that was asked for.
        path: WorkspacePath,
    },
    /// The file changed after this actor read it.
    #[error(
        "{path} has changed since it was read; nothing was changed and no data was lost: read it again, then repeat the \
         change on what it holds now"
    )]
    Stale {
        /// The path that was asked for.
        path: WorkspacePath,
    },
    /// The text to be replaced is not in the file.
    #[error(
        "the text to replace is not in {path}; it must match byte for byte, white space and line ends included"
    )]
    NoMatch {
        /// The path that was asked for.
        path: WorkspacePath,
    },
    /// The text to be replaced is in the file more than once.
    #[error("the text to replace is in {path} {matches} times; add surrounding lines to it, or replace all")]
    Ambiguous {
        /// The path that was asked for.
        path: WorkspacePath,
        /// How many places match.
        matches: u64,
    },
    /// A bound was exceeded.
    #[error("{what} is too large: {size} bytes, at most {limit}")]
    TooLarge {
        /// What was measured.
        what: &'static str,
        /// Bytes there are.
        size: u64,
        /// Bytes there may be.
        limit: u64,
    },
    /// An argument that is wrong whatever the workspace holds.
    #[error("{reason}")]
    Invalid {
        /// A sentence for the caller.
        reason: String,
    },
    /// The bytes that arrived are not the bytes that were sent.
    #[error("the content that arrived does not match the announced {what}; nothing was written")]
    Transfer {
        /// `size` or `digest`.
        what: &'static str,
    },
    /// The file changed while it was being sent.
    #[error("{path} changed while it was read; read it again")]
    Changed {
        /// The path that was asked for.
        path: WorkspacePath,
    },
    /// A move would have to copy.
    #[error("{path} is on another mount than the destination; copy the files and remove the source instead")]
    AnotherMount {
        /// The source of the move.
        path: WorkspacePath,
    },
    /// The caller went away or the executor is stopping.
    #[error("the call was cancelled")]
    Cancelled,
    /// A bug: the work ended without a result.
    #[error("the executor failed to do this")]
    Internal,
}

/// What a caller can do about a file that is not regular.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::Link => "; use the path of the file that it points to",
        Kind::Regular | Kind::Directory | Kind::Special => "",
    }
}

impl FileError {
    /// A failed system call on `path`.
    pub(super) fn system(path: &WorkspacePath, errno: Errno) -> Self {
        Self::System { path: path.clone(), fault: Fault::of(errno) }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Path(error) => error.code(),
            Self::Resolve(error) => error.code(),
            Self::System { fault, .. } => fault.code(),
            Self::NotRegular { kind: Kind::Directory, .. } => ErrorCode::IsDirectory,
            Self::NotRegular { .. } => ErrorCode::NotRegularFile,
            Self::NotDirectory { .. }
            | Self::NoEntry { .. }
            | Self::Invalid { .. }
            | Self::Transfer { .. } => ErrorCode::InvalidArgument,
            Self::Unread { .. } => ErrorCode::Unread,
            Self::Stale { .. } => ErrorCode::StaleVersion,
            Self::NoMatch { .. } => ErrorCode::NoMatch,
            Self::Ambiguous { .. } => ErrorCode::AmbiguousMatch,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Changed { .. } | Self::Cancelled => ErrorCode::Busy,
            Self::AnotherMount { .. } => ErrorCode::Unsupported,
            Self::Internal => ErrorCode::Internal,
        }
    }

    /// Facts for programs.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Ambiguous { matches, .. } => vec![("match_count", matches.to_string())],
            Self::NoMatch { .. } => vec![("match_count", "0".to_owned())],
            Self::TooLarge { size, limit, .. } => {
                vec![("size_bytes", size.to_string()), ("limit_bytes", limit.to_string())]
            }
            Self::Path(_)
            | Self::Resolve(_)
            | Self::System { .. }
            | Self::NotRegular { .. }
            | Self::NotDirectory { .. }
            | Self::NoEntry { .. }
            | Self::Unread { .. }
            | Self::Stale { .. }
            | Self::Invalid { .. }
            | Self::Transfer { .. }
            | Self::Changed { .. }
            | Self::AnotherMount { .. }
            | Self::Cancelled
            | Self::Internal => Vec::new(),
        }
    }
}
