//! Error details in a gRPC status, both ways.

use std::collections::HashMap;

use prost::Message as _;
use tonic::{Code, Status};

use crate::v1::{ErrorCode, ErrorDetail};

/// What follows from an error code alone.
pub trait ErrorCodeExt {
    /// The gRPC code it travels under.
    fn grpc_code(self) -> Code;
    /// Whether the same call may succeed later without any change by the caller.
    #[expect(clippy::wrong_self_convention, reason = "the one type that has this trait is Copy")]
    fn is_retryable(self) -> bool;
    /// The code as documents and JSON spell it: `stale_version`.
    fn name(self) -> String;
}

impl ErrorCodeExt for ErrorCode {
    fn grpc_code(self) -> Code {
        match self {
            Self::InvalidArgument | Self::PathEscapes | Self::NameTooLong | Self::NotUtf8 => {
                Code::InvalidArgument
            }
            Self::NotFound => Code::NotFound,
            Self::AlreadyExists => Code::AlreadyExists,
            Self::NotRegularFile
            | Self::IsDirectory
            | Self::NotEmpty
            | Self::Unread
            | Self::StaleVersion
            | Self::AmbiguousMatch
            | Self::NoMatch
            | Self::EmptyWorkspace
            | Self::ReadOnly
            | Self::OperationConflict
            | Self::OperationForgotten
            | Self::NoResolver => Code::FailedPrecondition,
            Self::TooLarge | Self::NoSpace | Self::Busy => Code::ResourceExhausted,
            Self::StaleEpoch | Self::StaleLease => Code::Aborted,
            // The answer for an unknown environment and for a foreign one is the same.
            Self::WrongEnvironment => Code::NotFound,
            Self::Draining | Self::RunnerUnavailable | Self::NotReady => Code::Unavailable,
            Self::Unsupported => Code::Unimplemented,
            Self::PermissionDenied => Code::PermissionDenied,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::Internal | Self::Unspecified => Code::Internal,
        }
    }

    fn is_retryable(self) -> bool {
        matches!(self, Self::Busy | Self::Draining | Self::RunnerUnavailable | Self::NotReady)
    }

    fn name(self) -> String {
        self.as_str_name().trim_start_matches("ERROR_CODE_").to_ascii_lowercase()
    }
}

/// A refusal: `message` for people, `code` and `fields` for programs.
pub fn refusal(
    code: ErrorCode,
    message: impl Into<String>,
    fields: impl IntoIterator<Item = (&'static str, String)>,
) -> Status {
    let fields: HashMap<_, _> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let detail = ErrorDetail { code: code.into(), retryable: code.is_retryable(), fields };
    let message = message.into();
    let rich = RichStatus {
        code: code.grpc_code().into(),
        message: message.clone(),
        details: vec![Packed { type_url: DETAIL_TYPE.to_owned(), value: detail.encode_to_vec() }],
    };
    Status::with_details(code.grpc_code(), message, rich.encode_to_vec().into())
}

/// What gRPC libraries of all languages expect of `grpc-status-details-bin`: `google.rpc.Status` (AIP-193), of which a detail
/// is a `google.protobuf.Any`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Packed>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Packed {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Names [`ErrorDetail`] in an `Any`.
const DETAIL_TYPE: &str = "type.googleapis.com/mooring.execution.v1.ErrorDetail";

/// The detail of a refusal, or `None` when the status did not come from an executor (a broken connection, a proxy).
pub fn detail_of(status: &Status) -> Option<ErrorDetail> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let packed = rich.details.into_iter().find(|packed| packed.type_url == DETAIL_TYPE)?;
    ErrorDetail::decode(packed.value.as_slice()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_detail_across_the_wire() {
        let status = refusal(ErrorCode::AmbiguousMatch, "2 matches", [("match_count", "2".to_owned())]);
        let detail = detail_of(&status).expect("detail");
        assert_eq!(detail.code(), ErrorCode::AmbiguousMatch);
        assert_eq!(detail.fields["match_count"], "2");
        assert!(!detail.retryable);
        assert_eq!(status.code(), Code::FailedPrecondition);
    }

    #[test]
    fn details_are_a_status_as_other_libraries_read_it() {
        let rich = RichStatus::decode(refusal(ErrorCode::NotFound, "gone", []).details()).expect("a status");
        assert_eq!((rich.code, rich.message.as_str()), (5, "gone"));
        assert_eq!(rich.details.len(), 1);
        // Somebody else's details are not ours.
        let other = Packed { type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(), value: vec![] };
        let rich = RichStatus { details: vec![other], ..rich };
        let status = Status::with_details(Code::NotFound, "gone", rich.encode_to_vec().into());
        assert_eq!(detail_of(&status), None);
    }

    #[test]
    fn a_status_without_detail_is_not_one_of_ours() {
        assert_eq!(detail_of(&Status::unavailable("connection reset")), None);
    }

    #[test]
    fn codes_are_spelt_as_in_the_documents() {
        assert_eq!(ErrorCode::StaleVersion.name(), "stale_version");
    }
}
