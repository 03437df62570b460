//! Every error of the executor as a gRPC status: a stable code, one sentence, facts for programs. What the system said
//! goes to the log; a host path goes nowhere.

use mooring_proto::v1::ErrorCode;
use mooring_proto::{PROTOCOL, refusal};
use tonic::Status;

use crate::commands::CommandError;
use crate::environment::{BindError, EnterError, LeaseError};

impl From<EnterError> for Status {
    fn from(error: EnterError) -> Self {
        let message = error.to_string();
        match error {
            EnterError::Malformed(_) => refusal(ErrorCode::InvalidArgument, message, []),
            EnterError::WrongEnvironment => refusal(ErrorCode::WrongEnvironment, message, []),
            EnterError::StaleEpoch { have, current } => stale_epoch(message, have, current),
            EnterError::UnknownWorkspace => refusal(ErrorCode::NotFound, message, []),
            EnterError::Draining => refusal(ErrorCode::Draining, message, []),
            EnterError::Lease(error) => error.into(),
        }
    }
}

impl From<LeaseError> for Status {
    fn from(error: LeaseError) -> Self {
        let message = error.to_string();
        match error {
            LeaseError::Stale { have } => {
                refusal(ErrorCode::StaleLease, message, [("have", have.to_string())])
            }
            LeaseError::TooManySessions => refusal(ErrorCode::TooLarge, message, []),
            LeaseError::Keep(source) => system(&source, message),
            LeaseError::Damaged => refusal(ErrorCode::Internal, message, []),
        }
    }
}

impl From<BindError> for Status {
    fn from(error: BindError) -> Self {
        let message = error.to_string();
        match error {
            BindError::Malformed(_) => refusal(ErrorCode::InvalidArgument, message, []),
            BindError::Readmitted(_) => refusal(ErrorCode::InvalidArgument, message, []),
            BindError::Protocol => refusal(
                ErrorCode::Unsupported,
                message,
                [("protocol_min", PROTOCOL.min.to_string()), ("protocol_max", PROTOCOL.max.to_string())],
            ),
            BindError::Unsupported(_) => refusal(ErrorCode::Unsupported, message, []),
            BindError::WrongEnvironment => refusal(ErrorCode::WrongEnvironment, message, []),
            BindError::EmptyWorkspace => refusal(ErrorCode::EmptyWorkspace, message, []),
            BindError::StaleEpoch { have, current } => stale_epoch(message, have, current),
            BindError::Conflict => refusal(ErrorCode::OperationConflict, message, []),
            BindError::Held => refusal(ErrorCode::Busy, message, []),
            BindError::NoFolder(_) => refusal(ErrorCode::NotFound, message, []),
            BindError::Draining => refusal(ErrorCode::Draining, message, []),
            BindError::Damaged => refusal(ErrorCode::Internal, message, []),
            BindError::Lease(error) => error.into(),
            BindError::Prepare(source) => system(&source, message),
        }
    }
}

impl From<CommandError> for Status {
    fn from(error: CommandError) -> Self {
        let message = error.to_string();
        match error {
            CommandError::Malformed(_) => refusal(ErrorCode::InvalidArgument, message, []),
            CommandError::Timeout { max_millis } => {
                refusal(ErrorCode::InvalidArgument, message, [("max_timeout_millis", max_millis.to_string())])
            }
            CommandError::TooLarge { what: _, limit_bytes } => {
                refusal(ErrorCode::TooLarge, message, [("limit_bytes", limit_bytes.to_string())])
            }
            CommandError::Unsupported(_) => refusal(ErrorCode::Unsupported, message, []),
            CommandError::CwdPath(error) => refusal(error.code(), message, []),
            CommandError::Cwd(error) => refusal(error.code(), message, []),
            CommandError::Busy { which: _, limit } => {
                refusal(ErrorCode::Busy, message, [("limit", limit.to_string())])
            }
            CommandError::NotFound | CommandError::Ended | CommandError::InputClosed => {
                refusal(ErrorCode::NotFound, message, [])
            }
            CommandError::StillEnding => refusal(ErrorCode::Busy, message, []),
            CommandError::RunnerUnavailable { retry_after } => refusal(
                ErrorCode::RunnerUnavailable,
                message,
                [("retry_after_millis", retry_after.as_millis().to_string())],
            ),
            CommandError::Prepare(source) => {
                tracing::warn!(error = %source, "{message}");
                refusal(ErrorCode::Internal, message, [])
            }
            CommandError::System(source) => system(&source, message),
        }
    }
}

fn stale_epoch(message: String, have: u64, current: u64) -> Status {
    refusal(ErrorCode::StaleEpoch, message, [("have", have.to_string()), ("current", current.to_string())])
}

/// An error of the system, told by its kind alone.
fn system(source: &std::io::Error, message: String) -> Status {
    use std::io::ErrorKind;

    tracing::warn!(error = %source, "{message}");
    let kind = source.kind();
    let code = if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
        ErrorCode::NoSpace
    } else if kind == ErrorKind::ReadOnlyFilesystem {
        ErrorCode::ReadOnly
    } else if kind == ErrorKind::PermissionDenied {
        ErrorCode::PermissionDenied
    } else {
        ErrorCode::Internal
    };
    refusal(code, message, [])
}
