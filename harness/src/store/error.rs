//! What can be wrong with a call of the store.

use jiff::Timestamp;

use crate::session::ApprovalState;

/// Why the store refused or failed. `code()` is the stable, public part.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such session, or not the caller's.
    #[error("no such session")]
    NoSuchSession,
    /// No such run in this session.
    #[error("no such run")]
    NoSuchRun,
    /// No such approval.
    #[error("no such approval")]
    NoSuchApproval,
    /// No such operation in this session.
    #[error("no such operation")]
    NoSuchOperation,
    /// Another holder has the session, or the session is gone. Nothing was written.
    #[error("the lease of this session is lost")]
    LeaseLost,
    /// Another holder has the session and its lease has not expired.
    #[error("the session is held until {until}")]
    LeaseHeld {
        /// When it may be taken over.
        until: Timestamp,
    },
    /// The session is suspended.
    #[error("the session is suspended")]
    Suspended,
    /// Nothing is at work in this session.
    #[error("the session has no open run")]
    NoOpenRun,
    /// The session has as many open runs as it may.
    #[error("the session has {limit} open runs")]
    TooManyRuns {
        /// How many it may have.
        limit: i64,
    },
    /// The run has ended; it cannot change any more.
    #[error("the run has ended")]
    RunEnded,
    /// The question can no longer be answered.
    #[error("the approval is {state}")]
    NotPending {
        /// What it is instead.
        state: ApprovalState,
    },
    /// There is no permission to use: not allowed, or used before.
    #[error("the approval is {state}, not allowed")]
    NotAllowed {
        /// What it is instead.
        state: ApprovalState,
    },
    /// The permission was given for another call.
    #[error("the approval is for another call")]
    OtherCall,
    /// An operation id was stored twice.
    #[error("the operation is stored already")]
    OperationExists,
    /// A stored value does not read back.
    #[error("column {column} holds a value that this version cannot read")]
    Corrupt {
        /// Its column.
        column: &'static str,
    },
    /// The database failed.
    #[error("the store cannot be read or written")]
    Database(#[from] sqlx::Error),
    /// The schema is not what this program knows.
    #[error("the schema of the store cannot be brought up to date")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

impl StoreError {
    /// The stable word for it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoSuchSession => "session_not_found",
            Self::NoSuchRun => "run_not_found",
            Self::NoSuchApproval => "approval_not_found",
            Self::NoSuchOperation => "operation_not_found",
            Self::LeaseLost => "lease_lost",
            Self::LeaseHeld { .. } => "lease_held",
            Self::Suspended => "session_suspended",
            Self::NoOpenRun => "no_open_run",
            Self::TooManyRuns { .. } => "too_many_runs",
            Self::RunEnded => "run_ended",
            Self::NotPending { .. } => "approval_not_pending",
            Self::NotAllowed { .. } => "approval_not_allowed",
            Self::OtherCall => "approval_for_other_call",
            Self::OperationExists => "operation_exists",
            Self::Corrupt { .. } | Self::Database(_) | Self::Migrate(_) => "store_failed",
        }
    }

    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::LeaseHeld { .. } | Self::TooManyRuns { .. } | Self::Database(_) => true,
            Self::NoSuchSession
            | Self::NoSuchRun
            | Self::NoSuchApproval
            | Self::NoSuchOperation
            | Self::LeaseLost
            | Self::Suspended
            | Self::NoOpenRun
            | Self::RunEnded
            | Self::NotPending { .. }
            | Self::NotAllowed { .. }
            | Self::OtherCall
            | Self::OperationExists
            | Self::Corrupt { .. }
            | Self::Migrate(_) => false,
        }
    }
}
