//! What to do about a call that did not go well.

use std::time::Duration;

use mooring_operator_api::condition::SessionReason;
use mooring_proto::v1::ErrorCode;
use tokio::time::Instant;

use crate::error::Error;
use crate::gateway::Gateway;

/// How long a command is looked for after its connection broke, since anything was last heard of it.
const PATIENCE: Duration = Duration::from_mins(2);
/// Before the first new attempt, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What a failed call says about the command that it was for.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It may go better with the next attempt.
    Again(Error),
    /// The executor that knew it is gone.
    Lost,
    /// It never will.
    Refused(Error),
}

/// Judges a failed call for a command that was started.
pub(crate) fn judge(error: Error) -> Verdict {
    let Error::Refused(refusal) = &error else {
        return Verdict::Again(error);
    };
    match refusal.code {
        // The present executor has never heard of the command, or is not the one that was meant, or is not there.
        ErrorCode::NotFound
        | ErrorCode::StaleEpoch
        | ErrorCode::WrongEnvironment
        | ErrorCode::EmptyWorkspace => Verdict::Lost,
        ErrorCode::NotReady => {
            let reason = refusal.fields.get("reason").map_or("", String::as_str);
            if SessionReason::of(reason).is_some_and(SessionReason::is_executor_gone) {
                Verdict::Lost
            } else {
                Verdict::Again(error)
            }
        }
        ErrorCode::Busy | ErrorCode::Draining | ErrorCode::RunnerUnavailable | ErrorCode::Unauthenticated => {
            Verdict::Again(error)
        }
        ErrorCode::Unspecified
        | ErrorCode::InvalidArgument
        | ErrorCode::PathEscapes
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
        | ErrorCode::OperationConflict
        | ErrorCode::OperationForgotten
        | ErrorCode::Unsupported
        | ErrorCode::Internal
        | ErrorCode::PermissionDenied
        | ErrorCode::NoResolver => Verdict::Refused(error),
    }
}

/// Attempts with pauses between them, until one is heard or patience ends.
pub(crate) struct Attempts {
    until: Instant,
    pause: Duration,
}

impl Attempts {
    /// From now on.
    pub(crate) fn new() -> Self {
        Self { until: Instant::now() + PATIENCE, pause: FIRST_PAUSE }
    }

    /// Something was heard.
    pub(crate) fn heard(&mut self) {
        *self = Self::new();
    }

    /// Pauses before the next attempt, over a new connection with a new token where the old one is of no use.
    ///
    /// # Errors
    /// `error`, when patience has ended.
    pub(crate) async fn pause(&mut self, gateway: &Gateway, error: Error) -> Result<(), Error> {
        if Instant::now() + self.pause > self.until {
            return Err(error);
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let is_line_useless =
            matches!(error, Error::Broken(_)) || error.code() == Some(ErrorCode::Unauthenticated);
        if is_line_useless {
            // A gateway that is away refuses the next attempt, too. A credential that is gone will not come back.
            if let Err(error @ Error::ApiServer { code: 401 | 403, .. }) = gateway.renew().await {
                return Err(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mooring_proto::refusal;
    use tonic::Status;

    use super::*;

    #[test]
    fn a_command_is_lost_with_its_executor_and_with_nothing_else() {
        let not_ready =
            |reason: &str| Error::from(refusal(ErrorCode::NotReady, "", [("reason", reason.to_owned())]));
        let of = |code| Error::from(refusal(code, "", []));
        for (error, expected) in [
            (of(ErrorCode::NotFound), "Lost"),
            (of(ErrorCode::StaleEpoch), "Lost"),
            (of(ErrorCode::WrongEnvironment), "Lost"),
            (not_ready("ExecutorLost"), "Lost"),
            (not_ready("Asleep"), "Lost"),
            (not_ready("NodeUnreachable"), "Again"),
            (not_ready(""), "Again"),
            (of(ErrorCode::Busy), "Again"),
            (of(ErrorCode::Unauthenticated), "Again"),
            (Error::from(Status::unavailable("reset")), "Again"),
            (of(ErrorCode::InvalidArgument), "Refused"),
        ] {
            let told = format!("{error}");
            assert!(format!("{:?}", judge(error)).starts_with(expected), "{told}");
        }
    }
}
