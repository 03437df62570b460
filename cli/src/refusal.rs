//! Refusals of the gateway and the executor, for people.

use std::collections::HashMap;
use std::fmt;

use mooring_operator_api::condition::SessionReason;
use mooring_proto::v1::ErrorCode;
use mooring_proto::{ErrorCodeExt as _, detail_of};
use tonic::Status;

use crate::error::Error;

/// A typed refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Why.
    pub(crate) code: ErrorCode,
    /// Its words.
    pub(crate) message: String,
    /// Its facts.
    pub(crate) fields: HashMap<String, String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.fields.get("reason"), self.fields.get("message")) {
            (ErrorCode::NotReady, Some(reason), message) => {
                write!(f, "the session is not ready: {reason}")?;
                message
                    .filter(|message| !message.is_empty())
                    .map_or(Ok(()), |message| write!(f, ": {message}"))
            }
            _ if self.message.is_empty() => f.write_str(&self.code.name()),
            _ => write!(f, "{} ({})", self.message, self.code.name()),
        }
    }
}

impl Refusal {
    /// What a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self.code {
            ErrorCode::NotReady => {
                let reason = self.fields.get("reason").map_or("", String::as_str);
                return remedy(reason)
                    .map(str::to_owned)
                    .or_else(|| Some("try again in a moment".to_owned()));
            }
            ErrorCode::WrongEnvironment => {
                "there is no such session, or it is not yours: kubectl mooring session list, --namespace"
            }
            ErrorCode::Unauthenticated => {
                "your credential is not accepted by the harness: kubectl auth whoami"
            }
            ErrorCode::Unread => "read it first (session files read), then write it again: nothing was lost",
            ErrorCode::StaleVersion => "it changed after you read it: read it again",
            ErrorCode::AmbiguousMatch => "name more of the text around it, or give --all",
            ErrorCode::NoMatch => "the text is not in the file exactly so",
            ErrorCode::IsDirectory => "it is a folder",
            ErrorCode::NotEmpty => "remove what is in it first",
            ErrorCode::PathEscapes => "paths are relative to the workspace and stay in it",
            ErrorCode::TooLarge => "leave out what need not be there; see the limits in the message",
            ErrorCode::NoSpace => "the volume is full: remove files, or make the session with a larger one",
            ErrorCode::Busy | ErrorCode::Draining | ErrorCode::RunnerUnavailable => "try again in a moment",
            ErrorCode::StaleEpoch => "the executor was replaced meanwhile: try again",
            ErrorCode::EmptyWorkspace => "the volume lost its content: see the session's conditions",
            ErrorCode::Unsupported => "this kind of session, or this version of Mooring, cannot do it",
            ErrorCode::Internal => "the executor's log has the cause",
            ErrorCode::NoResolver => "the session has no files and no commands (profile no-fs)",
            ErrorCode::PermissionDenied => "the permission bits of the file or its folder forbid it",
            ErrorCode::Unspecified
            | ErrorCode::InvalidArgument
            | ErrorCode::NotFound
            | ErrorCode::AlreadyExists
            | ErrorCode::NotRegularFile
            | ErrorCode::NameTooLong
            | ErrorCode::NotUtf8
            | ErrorCode::ReadOnly
            | ErrorCode::StaleLease
            | ErrorCode::OperationConflict
            | ErrorCode::OperationForgotten => return None,
        };
        Some(hint.to_owned())
    }
}

/// What the documentation says about a reason of the condition Ready.
pub(crate) fn remedy(reason: &str) -> Option<&'static str> {
    let row = SessionReason::of(reason)?.row();
    // For who waits for it, the table's "Nothing." is no help.
    Some(if row.remedy == "Nothing." { "try again in a moment" } else { row.remedy })
}

/// A refusal, or a call that broke.
pub(crate) fn read(status: &Status) -> Error {
    match detail_of(status) {
        Some(detail) => {
            let code = detail.code();
            Error::Refused(Refusal { code, message: status.message().to_owned(), fields: detail.fields })
        }
        None => Error::Broken(cause(status)),
    }
}

fn cause(status: &Status) -> String {
    let mut deepest: &dyn std::error::Error = status;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let said = deepest.to_string();
    if status.message().is_empty() || !std::ptr::eq(deepest, status as &dyn std::error::Error) {
        return said;
    }
    status.message().to_owned()
}

#[cfg(test)]
mod tests {
    use mooring_proto::refusal;

    use super::*;

    #[test]
    fn a_session_that_is_not_ready_says_why_and_what_to_do() {
        let fields = [("reason", "Asleep".to_owned()), ("message", "suspended by ana".to_owned())];
        let error = read(&refusal(ErrorCode::NotReady, "not ready", fields));
        assert_eq!(error.line(), "the session is not ready: Asleep: suspended by ana");
        assert_eq!(error.hint().as_deref(), Some("Set `spec.suspended` to false."));
    }

    #[test]
    fn a_refusal_has_its_code_and_a_broken_call_its_cause() {
        let error = read(&refusal(ErrorCode::NotFound, "no file a", []));
        assert_eq!(error.line(), "no file a (not_found)");
        let error = read(&Status::unavailable("tcp reset"));
        assert_eq!(error.line(), "the connection to the gateway broke: tcp reset");
    }
}
