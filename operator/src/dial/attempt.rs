//! One attempt: connect, prove who we are, check who answers, Bind.

use std::net::SocketAddr;
use std::time::Duration;

use mooring_operator_api::condition::SessionReason;
use mooring_proto::certificate::{self, EXECUTOR_PORT};
use mooring_proto::v1::workspace_service_client::WorkspaceServiceClient;
use mooring_proto::v1::{BindRequest, BindResponse, ErrorCode, ErrorDetail};
use mooring_proto::{ErrorCodeExt as _, MAX_MESSAGE_BYTES, detail_of};
use secrecy::ExposeSecret as _;
use tonic::Status;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::{Answer, BindRefusal, Target};
use crate::certificate::Credential;
use crate::session::Cause;

/// For the TCP handshake: a pod that is there answers at once, with a refusal if need be.
const CONNECT: Duration = Duration::from_secs(2);
/// For TCP and TLS together.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Bind tries the confinement on this very machine, and writes to a volume that may be slow.
const BIND: Duration = Duration::from_secs(30);
/// Before an executor is asked again that was reached and would not.
const ASKED_AGAIN: Duration = Duration::from_secs(10);

/// Why an attempt did not bind.
#[derive(Debug)]
pub(super) enum Failure {
    /// It is tried again, after the usual pause or after this one.
    Again {
        /// Why it failed.
        cause: Cause,
        /// Instead of the usual pause.
        after: Option<Duration>,
    },
    /// It is not.
    Refused(BindRefusal),
}

impl Failure {
    /// The operator itself is ending, or cannot issue its own certificate.
    pub(super) fn closed() -> Self {
        Self::later(SessionReason::Binding, "the operator has no certificate of its own")
    }

    pub(super) fn later(reason: SessionReason, message: impl Into<String>) -> Self {
        Self::Again { cause: Cause::new(reason, message), after: Some(ASKED_AGAIN) }
    }

    fn soon(message: impl Into<String>) -> Self {
        Self::Again { cause: Cause::new(SessionReason::Binding, message), after: None }
    }
}

/// Binds the executor at the other end, over a connection that is closed with it.
pub(super) async fn bind(channel: Channel, request: BindRequest) -> Result<Answer, Failure> {
    let mut workspaces = WorkspaceServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    match tokio::time::timeout(BIND, workspaces.bind(request)).await {
        Err(_) => Err(Failure::soon(format!("the executor did not answer within {} s", BIND.as_secs()))),
        Ok(Err(status)) => Err(refusal(&status)),
        Ok(Ok(response)) => Ok(answer(response.into_inner())),
    }
}

/// Reaches the executor of `target` and proves that it is the one.
pub(super) async fn connect(
    target: &Target,
    namespace: &str,
    trust: &str,
    own: &Credential,
) -> Result<Channel, Failure> {
    let address = SocketAddr::new(target.address, EXECUTOR_PORT);
    let tls = ClientTlsConfig::new()
        .domain_name(certificate::executor(&target.pod, namespace))
        .ca_certificate(Certificate::from_pem(trust))
        .identity(Identity::from_pem(&own.certificate, own.key.expose_secret()));
    let endpoint = Endpoint::from_shared(format!("https://{address}"))
        .and_then(|endpoint| endpoint.connect_timeout(CONNECT).tls_config(tls))
        .map_err(|error| {
            Failure::soon(format!("cannot prepare a connection to {address}: {}", story(&error)))
        })?;
    match tokio::time::timeout(HANDSHAKE, endpoint.connect()).await {
        Err(_) => Err(Failure::soon(format!("{address} does not answer"))),
        Ok(Err(error)) => Err(Failure::soon(format!("cannot reach {address}: {}", story(&error)))),
        Ok(Ok(channel)) => Ok(channel),
    }
}

fn answer(response: BindResponse) -> Answer {
    let confinement = response.confinement.unwrap_or_default();
    let landlock = if confinement.files_confined { confinement.landlock_abi } else { 0 };
    Answer { boot_id: response.boot_id, landlock: i32::try_from(landlock).unwrap_or(i32::MAX) }
}

fn refusal(status: &Status) -> Failure {
    let Some(detail) = detail_of(status) else {
        // Not the executor's own words: the connection broke.
        return Failure::soon(format!("the call broke: {:?}", status.code()));
    };
    let code = detail.code();
    match code {
        ErrorCode::StaleEpoch => Failure::Refused(BindRefusal::StaleEpoch { current: current(&detail) }),
        ErrorCode::OperationConflict => Failure::Refused(BindRefusal::OtherArguments),
        ErrorCode::EmptyWorkspace => Failure::Refused(BindRefusal::EmptyWorkspace),
        // The volume may be exchanged under a pod that runs, and back.
        ErrorCode::WrongEnvironment => Failure::later(
            SessionReason::WorkspaceMismatch,
            "the executor found another environment on the volume",
        ),
        ErrorCode::Busy | ErrorCode::Draining | ErrorCode::RunnerUnavailable => {
            Failure::soon(format!("the executor answers {}", code.name()))
        }
        ErrorCode::Unspecified
        | ErrorCode::InvalidArgument
        | ErrorCode::PathEscapes
        | ErrorCode::NotFound
        | ErrorCode::AlreadyExists
        | ErrorCode::NotRegularFile
        | ErrorCode::IsDirectory
        | ErrorCode::NotEmpty
        | ErrorCode::Unread
        | ErrorCode::StaleVersion
        | ErrorCode::AmbiguousMatch
        | ErrorCode::NoMatch
        | ErrorCode::TooLarge
        | ErrorCode::NameTooLong
        | ErrorCode::NotUtf8
        | ErrorCode::NoSpace
        | ErrorCode::ReadOnly
        | ErrorCode::StaleLease
        | ErrorCode::OperationForgotten
        | ErrorCode::Unsupported
        | ErrorCode::Internal
        | ErrorCode::PermissionDenied
        | ErrorCode::Unauthenticated
        | ErrorCode::NotReady
        | ErrorCode::NoResolver => Failure::later(
            SessionReason::BindRefused,
            format!("the executor answers {}: {}", code.name(), status.message()),
        ),
    }
}

/// The epoch that the volume has seen. Without the fact the next one is tried.
fn current(detail: &ErrorDetail) -> i64 {
    detail.fields.get("current").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The last cause of an error, which says what happened.
fn story(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use mooring_proto::refusal as status;

    use super::*;

    fn of(code: ErrorCode) -> String {
        match refusal(&status(code, "words", [("current", "7".to_owned()), ("have", "3".to_owned())])) {
            Failure::Refused(refusal) => format!("{refusal:?}"),
            Failure::Again { cause, after } => {
                format!("{} {} {after:?}", cause.reason.as_str(), cause.message)
            }
        }
    }

    #[test]
    fn an_executor_s_refusal_is_final_or_worth_another_attempt() {
        for (code, expected) in [
            (ErrorCode::StaleEpoch, "StaleEpoch { current: 7 }"),
            (ErrorCode::OperationConflict, "OtherArguments"),
            (ErrorCode::EmptyWorkspace, "EmptyWorkspace"),
            (
                ErrorCode::WrongEnvironment,
                "WorkspaceMismatch the executor found another environment on the volume Some(10s)",
            ),
            (ErrorCode::RunnerUnavailable, "Binding the executor answers runner_unavailable None"),
            (ErrorCode::NoSpace, "BindRefused the executor answers no_space: words Some(10s)"),
        ] {
            assert_eq!(of(code), expected);
        }
    }

    #[test]
    fn a_status_that_is_not_the_executor_s_is_a_broken_call() {
        let Failure::Again { cause, after: None } = refusal(&Status::unknown("whatever a proxy says")) else {
            panic!("tried again soon")
        };
        assert_eq!(cause, Cause::new(SessionReason::Binding, "the call broke: Unknown"));
    }

    #[test]
    fn commands_that_nothing_confines_have_no_landlock() {
        let confinement = mooring_proto::v1::Confinement { landlock_abi: 7, ..Default::default() };
        let response = BindResponse { confinement: Some(confinement), ..BindResponse::default() };
        assert_eq!(answer(response).landlock, 0);
    }
}
