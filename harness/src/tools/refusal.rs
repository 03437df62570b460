//! What an executor's refusal means, in words for the model.

use mooring_proto::detail_of;
use mooring_proto::v1::ErrorCode;
use tonic::{Code, Status};

use super::text::visible;

/// One or two sentences: what was refused and what to do about it. Never a host path or a transport's text.
pub(crate) fn sentence(tool: &str, status: &Status) -> String {
    let Some(detail) = detail_of(status) else { return without_detail(tool, status) };
    let field = |name: &str| detail.fields.get(name).map(|value| visible(value.as_bytes()));
    let text = match detail.code() {
        ErrorCode::Unread => {
            "the file exists and was not read yet in this environment; nothing was changed and no data was lost. Read it, then try again".to_owned()
        }
        ErrorCode::StaleVersion => {
            "the file changed after it was read; nothing was written. Read it again, then redo the change".to_owned()
        }
        ErrorCode::AmbiguousMatch => format!(
            "`old` matches {} times; nothing was changed. Give more surrounding text, or set replaceAll",
            field("match_count").unwrap_or_else(|| "several".to_owned())
        ),
        ErrorCode::NoMatch => {
            "`old` does not occur in the file exactly as given; nothing was changed. Read the file again and copy the text byte for byte".to_owned()
        }
        ErrorCode::PathEscapes => {
            "the path leads out of the workspace; only paths inside it can be used".to_owned()
        }
        ErrorCode::NotFound => "there is nothing at that path, or no such job".to_owned(),
        ErrorCode::AlreadyExists => "something is already at that path; nothing was changed".to_owned(),
        ErrorCode::NotRegularFile => {
            "that is not a regular file (a link, a pipe, a socket or a device); it was not touched".to_owned()
        }
        ErrorCode::IsDirectory => "that is a folder; use ListDir".to_owned(),
        ErrorCode::NotEmpty => "the folder is not empty; nothing was removed".to_owned(),
        ErrorCode::TooLarge => format!("too large (limit {} bytes)", field("limit_bytes").unwrap_or_else(|| "unknown".to_owned())),
        ErrorCode::NameTooLong => "a name in the path is too long".to_owned(),
        ErrorCode::NotUtf8 => "the text is not UTF-8".to_owned(),
        ErrorCode::NoSpace => "the disk is full; nothing was changed".to_owned(),
        ErrorCode::ReadOnly => "that place is read-only; nothing was changed".to_owned(),
        ErrorCode::PermissionDenied => "the system's permissions do not allow it".to_owned(),
        ErrorCode::Busy => "too many commands run at once; wait for one to end or end one with ShellStatus".to_owned(),
        ErrorCode::Draining => "the environment is shutting down; nothing was executed".to_owned(),
        ErrorCode::RunnerUnavailable => {
            "commands cannot be started at the moment; nothing was executed. Try again in a few seconds".to_owned()
        }
        ErrorCode::InvalidArgument => format!("the arguments were not accepted: {}", visible(status.message().as_bytes())),
        ErrorCode::Unsupported => "the environment does not offer this".to_owned(),
        ErrorCode::StaleEpoch | ErrorCode::WrongEnvironment | ErrorCode::EmptyWorkspace => {
            "the environment is not the one this session is bound to; nothing was executed".to_owned()
        }
        ErrorCode::StaleLease => "another process has taken this session over; nothing was executed".to_owned(),
        ErrorCode::OperationConflict | ErrorCode::OperationForgotten => {
            "the outcome of this call is no longer known; it was not executed again".to_owned()
        }
        ErrorCode::NotReady => "the environment is not ready; nothing was executed".to_owned(),
        // Words of the gateway, which no tool goes through.
        ErrorCode::Unauthenticated
        | ErrorCode::NoResolver
        | ErrorCode::Internal
        | ErrorCode::Unspecified => "the environment failed to carry it out".to_owned(),
    };
    format!("{tool} was refused ({}): {text}.", mooring_proto::ErrorCodeExt::name(detail.code()))
}

/// Whether the answer was lost rather than given: nobody knows what the call did.
pub(crate) fn is_lost(status: &Status) -> bool {
    detail_of(status).is_none()
        && match status.code() {
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Aborted | Code::Internal => true,
            Code::Ok
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::DataLoss
            | Code::Unauthenticated => false,
        }
}

fn without_detail(tool: &str, status: &Status) -> String {
    match status.code() {
        Code::DeadlineExceeded => {
            format!("{tool} took too long and was given up; whether it took effect is not known.")
        }
        Code::ResourceExhausted | Code::OutOfRange => {
            format!("{tool} was refused: the message is too large.")
        }
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => LOST.to_owned(),
    }
}

/// What the model is told when the executor went away with a call in flight.
pub(crate) const LOST: &str = "executor_lost: the environment's process went away while this call was under way. Whether it took effect is not known, it was not repeated, and commands it held have ended. Files count as unread again. Look at the current state before you go on.";

#[cfg(test)]
mod tests {
    use mooring_proto::refusal;

    use super::*;

    #[test]
    fn a_refusal_tells_what_to_do() {
        let status = refusal(ErrorCode::Unread, "x", []);
        assert_eq!(
            sentence("Write", &status),
            "Write was refused (unread): the file exists and was not read yet in this environment; nothing was changed and no data was lost. Read it, then try again."
        );
        let status = refusal(ErrorCode::AmbiguousMatch, "x", [("match_count", "2".to_owned())]);
        assert!(sentence("Edit", &status).contains("matches 2 times"));
    }

    #[test]
    fn a_broken_connection_is_lost_and_a_refusal_is_not() {
        assert!(is_lost(&Status::unavailable("connection reset by /host/path")));
        assert!(!sentence("Read", &Status::unavailable("connection reset by /host/path")).contains("/host"));
        for code in [ErrorCode::RunnerUnavailable, ErrorCode::Internal, ErrorCode::StaleLease] {
            assert!(!is_lost(&refusal(code, "x", [])));
        }
    }
}
