//! Why an Import was refused or failed.

use mooring_proto::v1::ErrorCode;

use crate::archive::ArchiveError;
use crate::files::{FileError, Kind};
use crate::path::WorkspacePath;

/// Why an Import was refused or failed. Nothing was changed, unless a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The archive, or an entry of it, is refused.
    #[error("{0}; nothing was changed")]
    Archive(#[from] ArchiveError),
    /// The folder is refused, or the system failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// More than the budget allows.
    #[error("the archive brings more than its budget of {limit} {what}; nothing was changed")]
    Budget {
        /// Name of the bound in `ForkBudget`.
        field: &'static str,
        /// What was counted, in the plural.
        what: &'static str,
        /// How much there may be.
        limit: u64,
    },
    /// Something of another kind is where an entry is to be.
    #[error(
        "{path} is {} in the workspace and {} in the archive; nothing was changed: move or remove what is there first",
        .present.noun(), .brought.noun()
    )]
    Kind {
        /// Where.
        path: WorkspacePath,
        /// What is there.
        present: Kind,
        /// What was to be there.
        brought: Kind,
    },
    /// Somebody changed the place of an entry while entries took their places. Everything is as before.
    #[error(
        "{path} was changed while the archive was brought in; nothing was changed by the archive: try again"
    )]
    Changed {
        /// Where.
        path: WorkspacePath,
    },
    /// Entries took their places, then the system failed, and some could not be taken back.
    #[error(
        "{path} and possibly others were brought in, then the system failed, and they could not be taken back"
    )]
    Torn {
        /// One of them.
        path: WorkspacePath,
    },
}

impl ImportError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Archive(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Budget { .. } => ErrorCode::TooLarge,
            Self::Kind { .. } => ErrorCode::AlreadyExists,
            Self::Changed { .. } => ErrorCode::Busy,
            Self::Torn { .. } => ErrorCode::Internal,
        }
    }

    /// Facts for programs.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Archive(ArchiveError::Entry { name, .. }) => vec![("entry", name.clone())],
            Self::Archive(ArchiveError::Malformed { at, .. } | ArchiveError::Truncated { at }) => {
                vec![("offset_bytes", at.to_string())]
            }
            Self::File(error) => error.fields(),
            Self::Budget { field, limit, .. } => {
                vec![("budget", (*field).to_owned()), ("limit", limit.to_string())]
            }
            Self::Kind { .. } | Self::Changed { .. } | Self::Torn { .. } => Vec::new(),
        }
    }
}
