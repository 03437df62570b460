//! Exit codes.

use mooring_proto::v1::{NotStartedReason, command_end::End};

use crate::progress::bytes;

/// Whatever was not the command's own doing.
pub(crate) const OWN_FAILURE: u8 = 125;
/// The command is there and cannot be executed, as shells have it (POSIX, "Exit Status for Commands").
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// There is no such command, as shells have it.
pub(crate) const NOT_FOUND: u8 = 127;
/// Added to the number of a signal.
pub(crate) const SIGNALLED: u8 = 128;
/// SIGHUP.
pub(crate) const HANG_UP: u8 = 1;
/// SIGINT.
pub(crate) const INTERRUPT: u8 = 2;
/// SIGQUIT.
pub(crate) const QUIT: u8 = 3;
/// SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 13;
/// SIGTERM.
pub(crate) const TERMINATE: u8 = 15;

/// What a command's end is for whoever called us: its code, and a sentence where the code alone does not say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The exit code.
    pub(crate) code: u8,
    /// For standard error.
    pub(crate) told: Option<String>,
    /// What can be done about it.
    pub(crate) hint: Option<&'static str>,
}

impl Outcome {
    fn own(told: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self { code: OWN_FAILURE, told: Some(told.into()), hint }
    }

    /// The same, when so many bytes of the output are missing: whoever reads it must not take it for whole.
    pub(crate) fn without(self, lost: u64) -> Self {
        if lost == 0 {
            return self;
        }
        let Self { code, told, .. } = self;
        let own = told.unwrap_or_else(|| format!("its code is {code}"));
        let lost = bytes(lost);
        Self::own(
            format!("{lost} of the command's output are lost: it wrote faster than was read ({own})"),
            Some("write it to a file of the workspace, and bring that here with files read or pull"),
        )
    }

    /// The command went with its executor or its runner.
    pub(crate) fn lost(what: &str) -> Self {
        let told = format!("{what} lost: whether the command did its work is not known");
        Self::own(told, Some("look at what it changed before you run it again"))
    }
}

/// The outcome of an end. `own_signal` is the signal that we cancelled the command for.
pub(crate) fn of(end: Option<&End>, own_signal: Option<u8>) -> Outcome {
    let plain = |code| Outcome { code, told: None, hint: None };
    match end {
        Some(End::Exited(code)) => match u8::try_from(*code) {
            Ok(code) => plain(code),
            Err(_) => Outcome::own(format!("the command's exit code {code} is none"), None),
        },
        Some(End::Signalled(signal)) => match u8::try_from(*signal) {
            Ok(signal @ 1..=64) => plain(SIGNALLED + signal),
            Ok(_) | Err(_) => Outcome::own(format!("the command's signal {signal} is none"), None),
        },
        Some(End::TimedOut(limit)) => Outcome::own(
            format!("the command was ended after {} s", limit.timeout_millis / 1000),
            Some("give it longer with --timeout"),
        ),
        Some(End::Cancelled(_)) => match own_signal {
            Some(signal) => plain(SIGNALLED + signal),
            None => Outcome::own("somebody cancelled the command", None),
        },
        Some(End::OutOfMemory(_)) => Outcome::own(
            "the command ran out of memory",
            Some("run less at once, or raise the class's memory limit"),
        ),
        Some(End::RunnerLost(_)) => Outcome::lost("runner"),
        Some(End::ExecutorLost(_)) => Outcome::lost("executor"),
        Some(End::NotStarted(not_started)) => match not_started.reason() {
            NotStartedReason::NotFound => Outcome {
                code: NOT_FOUND,
                told: Some("there is no such program".to_owned()),
                hint: Some("its name is looked for on the class's PATH; a shell's words need --shell"),
            },
            NotStartedReason::NotExecutable => Outcome {
                code: NOT_EXECUTABLE,
                told: Some("the program cannot be executed".to_owned()),
                hint: None,
            },
            NotStartedReason::TooLarge => Outcome::own("arguments and variables are too large", None),
            NotStartedReason::Internal | NotStartedReason::Unspecified => {
                Outcome::own("the command could not be started", None)
            }
        },
        Some(End::ProcessLimit(limit)) => Outcome::own(
            format!("the command had more than {} processes, and all were killed", limit.limit),
            Some("run less at once, or raise the class's limit"),
        ),
        None => Outcome::own("the command ended, and how was not told", None),
    }
}

#[cfg(test)]
mod tests {
    use mooring_proto::v1;

    use super::*;

    #[test]
    fn a_code_is_the_command_s_own_or_says_what_else_happened() {
        let not_started =
            |reason: NotStartedReason| End::NotStarted(v1::NotStarted { reason: reason.into() });
        for (end, own_signal, code, is_told) in [
            (Some(End::Exited(0)), None, 0, false),
            (Some(End::Exited(3)), None, 3, false),
            (Some(End::Exited(255)), None, 255, false),
            (Some(End::Exited(256)), None, 125, true),
            (Some(End::Signalled(9)), None, 137, false),
            (Some(End::Signalled(64)), None, 192, false),
            (Some(End::Signalled(0)), None, 125, true),
            (Some(End::TimedOut(v1::TimedOut { timeout_millis: 5000 })), None, 125, true),
            (Some(End::Cancelled(v1::Cancelled {})), Some(INTERRUPT), 130, false),
            (Some(End::Cancelled(v1::Cancelled {})), None, 125, true),
            (Some(End::Exited(0)), Some(INTERRUPT), 0, false),
            (Some(End::OutOfMemory(v1::OutOfMemory {})), None, 125, true),
            (Some(End::RunnerLost(v1::RunnerLost {})), None, 125, true),
            (Some(End::ExecutorLost(v1::ExecutorLost {})), None, 125, true),
            (Some(not_started(NotStartedReason::NotFound)), None, 127, true),
            (Some(not_started(NotStartedReason::NotExecutable)), None, 126, true),
            (Some(not_started(NotStartedReason::TooLarge)), None, 125, true),
            (Some(not_started(NotStartedReason::Internal)), None, 125, true),
            (Some(End::ProcessLimit(v1::ProcessLimit { limit: 9 })), None, 125, true),
            (None, None, 125, true),
        ] {
            let outcome = of(end.as_ref(), own_signal);
            assert_eq!((outcome.code, outcome.told.is_some()), (code, is_told), "{end:?}");
        }
    }

    #[test]
    fn output_that_is_not_whole_is_no_success() {
        assert_eq!(of(Some(&End::Exited(0)), None).without(0).code, 0);
        let lost = of(Some(&End::Exited(0)), None).without(2048);
        let told = "2.00 KiB of the command's output are lost: it wrote faster than was read (its code is 0)";
        assert_eq!((lost.code, lost.told.as_deref()), (OWN_FAILURE, Some(told)));
    }
}
