//! Refusals in the words of the protocol.

use mooring_proto::v1::ErrorCode;
use mooring_proto::{detail_of, refusal};
use tonic::{Code, Status};

use crate::caller::CallerError;
use crate::environment::{NotReady, ResolveError};
use crate::telemetry::story;

/// The answer for a session that is not there and for somebody else's: nothing tells them apart.
pub(super) fn unknown() -> Status {
    refusal(ErrorCode::WrongEnvironment, "there is no such session of yours", [])
}

pub(super) fn invalid(message: impl Into<String>) -> Status {
    refusal(ErrorCode::InvalidArgument, message, [])
}

pub(super) fn without_files() -> Status {
    refusal(ErrorCode::Unsupported, "a session without files and commands", [])
}

pub(super) fn unauthenticated(message: &'static str) -> Status {
    refusal(ErrorCode::Unauthenticated, message, [])
}

pub(super) fn of_caller(error: &CallerError) -> Status {
    match error {
        CallerError::Unauthenticated => unauthenticated("the token is not valid"),
        CallerError::Unchecked(cause) => {
            tracing::warn!(error = story(cause), "a token was not checked");
            not_ready("TokenUnchecked", "tokens cannot be checked at the moment")
        }
    }
}

pub(super) fn of_environment(error: &ResolveError) -> Status {
    match error {
        ResolveError::Unknown | ResolveError::NotInside => unknown(),
        ResolveError::Mismatch => {
            refusal(ErrorCode::WrongEnvironment, "that is not the environment of this session", [])
        }
        ResolveError::EmptyWorkspace => {
            refusal(ErrorCode::EmptyWorkspace, "the workspace of this session is lost", [])
        }
        ResolveError::NoResolver { kind } => {
            refusal(ErrorCode::NoResolver, format!("environments of kind {kind} are not served here"), [])
        }
        ResolveError::NotReady { source: Some(NotReady::Standing { reason, message }) } => {
            not_ready(reason, message)
        }
        ResolveError::NotReady { source } => {
            let told = source.as_ref().map_or_else(String::new, |cause| story(cause));
            tracing::warn!(error = told, "an executor is not reached");
            not_ready("Unreachable", "the executor is not reached")
        }
        ResolveError::Store(_) => refusal(ErrorCode::Internal, "the store failed", []),
    }
}

pub(super) fn not_ready(reason: &str, message: &str) -> Status {
    let fields = [("reason", reason.to_owned()), ("message", message.chars().take(1024).collect())];
    refusal(ErrorCode::NotReady, format!("not ready, {reason}: {message}"), fields)
}

/// What an executor answered, with nothing but what is the caller's: no metadata, no words of the transport.
pub(super) fn passed_on(status: &Status) -> Status {
    if detail_of(status).is_some() {
        return Status::with_details(status.code(), status.message(), status.details().to_vec().into());
    }
    if status.code() == Code::DeadlineExceeded {
        return Status::deadline_exceeded("the deadline of the call is over");
    }
    if status.code() == Code::Cancelled {
        return Status::cancelled("the call was cancelled");
    }
    tracing::debug!(code = ?status.code(), message = status.message(), "a call to an executor broke");
    Status::unavailable("the connection to the executor broke; whether the call took effect is not known")
}

#[cfg(test)]
mod tests {
    use mooring_proto::ErrorCodeExt as _;

    use super::*;
    use crate::session::EnvironmentKind;

    #[test]
    fn every_error_of_an_environment_has_its_code() {
        let standing =
            || NotReady::Standing { reason: "PodPending".to_owned(), message: "an image".to_owned() };
        for (error, code) in [
            (ResolveError::Unknown, ErrorCode::WrongEnvironment),
            (ResolveError::Mismatch, ErrorCode::WrongEnvironment),
            (ResolveError::EmptyWorkspace, ErrorCode::EmptyWorkspace),
            (ResolveError::NoResolver { kind: EnvironmentKind::Local }, ErrorCode::NoResolver),
            (ResolveError::NotReady { source: Some(standing()) }, ErrorCode::NotReady),
            (ResolveError::NotReady { source: None }, ErrorCode::NotReady),
        ] {
            let status = of_environment(&error);
            let detail = detail_of(&status).expect("a detail");
            assert_eq!((detail.code(), status.code()), (code, code.grpc_code()), "{error:?}");
        }
        let detail = detail_of(&of_environment(&ResolveError::NotReady { source: Some(standing()) }));
        assert_eq!(detail.expect("a detail").fields["reason"], "PodPending");
    }

    #[test]
    fn what_a_transport_says_is_not_passed_on() {
        let status = passed_on(&Status::unknown("connect to 10.1.2.3: refused"));
        assert_eq!(status.code(), Code::Unavailable);
        assert!(!status.message().contains("10.1.2.3"));
        let own = refusal(ErrorCode::Unread, "read it first", []);
        assert_eq!(detail_of(&passed_on(&own)), detail_of(&own));
    }
}
