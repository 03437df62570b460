//! Shell and ShellStatus: started once, followed to a true end, found again after a break.

use std::fmt::Write as _;
use std::time::Duration;

use mooring_proto::v1::{self, attach_response::Event, command_end::End};
use tokio::time::{Instant, sleep_until, timeout};
use tonic::Status;

use super::call::{Shell, ShellStatus};
use super::capture::Capture;
use super::fence::fenced;
use super::files::one_line;
use super::perform::{Performed, Scene};
use super::refusal::{LOST, is_lost};
use super::text::MAX_RESULT_BYTES;
use crate::session::OperationId;

/// The executor's own limit for a foreground command that names none.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// How much longer than its command an executor may take to say so: TERM, 2 s, KILL, and room.
const GRACE: Duration = Duration::from_secs(30);
/// For calls that answer at once.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a broken stream or a lost answer is asked for again from the same executor.
const REPEATS: u32 = 3;
/// Names of removed variables that a result lists.
const MAX_NAMES: usize = 20;
const WORDS: usize = 2_000;

/// Runs a command; in the background only its start is awaited.
pub(super) async fn shell(shell: &Shell, scene: &Scene<'_>) -> Performed {
    let started = match start(shell, scene).await {
        Ok(started) => started,
        Err(status) => return Performed::refused("Shell", &status),
    };
    let removed = removed(&started.removed_variables);
    if shell.background {
        return Performed::done(format!("Started in the background. job: {}\n{removed}", started.command_id));
    }
    let limit = shell.timeout_millis.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
    let mut capture = Capture::default();
    let until = Instant::now() + limit + GRACE;
    let how = Following { until, follows: true, is_ours: true };
    match follow(&started.command_id, scene, &mut capture, how).await {
        Followed::End(end) => {
            let mut performed = ended(&end, &capture);
            performed.text.push_str(&removed);
            performed
        }
        // The executor holds the command and does not end it: what it does is not known any more.
        Followed::Time | Followed::Lost => {
            Performed { text: with_output(LOST, &capture), is_error: true, is_lost: true }
        }
        Followed::Refused(status) => Performed::refused("Shell", &status),
    }
}

/// Looks at a background command.
pub(super) async fn status(status: &ShellStatus, scene: &Scene<'_>) -> Performed {
    if status.cancel
        && let Err(refused) = cancel(&status.job, scene, scene.operation).await
    {
        return Performed::refused("ShellStatus", &refused);
    }
    let mut capture = Capture::default();
    let wait = status.wait_millis.filter(|wait| *wait > 0).map(Duration::from_millis);
    let until = Instant::now() + wait.unwrap_or(PATIENCE);
    let how = Following { until, follows: wait.is_some() || status.cancel, is_ours: false };
    match follow(&status.job, scene, &mut capture, how).await {
        Followed::End(end) => ended(&end, &capture),
        Followed::Lost => Performed::lost(),
        Followed::Refused(refused) => Performed::refused("ShellStatus", &refused),
        Followed::Time => still_running(status, scene, &capture).await,
    }
}

async fn still_running(status: &ShellStatus, scene: &Scene<'_>, capture: &Capture) -> Performed {
    let request = v1::StatusRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        command_id: status.job.clone(),
    };
    let answer = timeout(PATIENCE, scene.executor.commands().status(request)).await;
    match answer.unwrap_or_else(|_| Err(Status::unavailable("no answer in time"))) {
        Err(refused) => Performed::refused("ShellStatus", &refused),
        Ok(answer) => match answer.into_inner().command.unwrap_or_default() {
            v1::CommandState { end: Some(end), .. } => ended(&end, capture),
            state => {
                let head = format!("Still running, {} processes.", state.live_processes);
                Performed::done(with_output(&head, capture))
            }
        },
    }
}

async fn start(shell: &Shell, scene: &Scene<'_>) -> Result<v1::StartResponse, Status> {
    let timeout_millis = shell.timeout_millis.unwrap_or(0);
    let request = v1::StartRequest {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        program: Some(v1::start_request::Program::ShellText(shell.command.clone().into_bytes().into())),
        timeout_millis: i64::try_from(timeout_millis).unwrap_or(i64::MAX),
        background: shell.background,
        ..Default::default()
    };
    let mut repeats = 0;
    loop {
        let answer = timeout(PATIENCE, scene.executor.commands().start(request.clone())).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::unavailable("no answer in time")));
        match answer {
            Ok(started) => return Ok(started.into_inner()),
            // The same operation id is the same command, so asking again starts nothing twice.
            Err(status) if is_lost(&status) && repeats < REPEATS && !scene.executor.is_gone() => repeats += 1,
            Err(status) => return Err(status),
        }
    }
}

enum Followed {
    End(v1::CommandEnd),
    /// The time was up, or all there is now was shown.
    Time,
    Lost,
    Refused(Status),
}

/// How far a command is followed.
#[derive(Clone, Copy)]
struct Following {
    /// At the latest until then.
    until: Instant,
    /// To its end; otherwise until all that is there now was shown.
    follows: bool,
    /// Whether the command is to end when the call is cut; a background command goes on.
    is_ours: bool,
}

async fn follow(command: &str, scene: &Scene<'_>, capture: &mut Capture, how: Following) -> Followed {
    let mut repeats = 0;
    loop {
        let status = match follow_once(command, scene, capture, how).await {
            Ok(followed) => return followed,
            Err(status) => status,
        };
        if !is_lost(&status) {
            return Followed::Refused(status);
        }
        repeats += 1;
        if repeats > REPEATS || scene.executor.is_gone() {
            return Followed::Lost;
        }
    }
}

async fn follow_once(
    command: &str,
    scene: &Scene<'_>,
    capture: &mut Capture,
    how: Following,
) -> Result<Followed, Status> {
    let (stdout_offset, stderr_offset) = capture.offsets();
    let request = v1::AttachRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        command_id: command.to_owned(),
        stdout_offset,
        stderr_offset,
        no_follow: !how.follows,
    };
    let attached = timeout(PATIENCE, scene.executor.commands().attach(request)).await;
    let mut events = attached.unwrap_or_else(|_| Err(Status::unavailable("no answer in time")))?.into_inner();
    loop {
        let event = tokio::select! {
            event = events.message() => event?,
            () = sleep_until(how.until) => return Ok(Followed::Time),
            () = scene.cancel.cancelled() => {
                if !how.is_ours {
                    return Ok(Followed::Time);
                }
                let end = cancel(command, scene, Some(OperationId::new())).await?;
                return Ok(Followed::End(end));
            }
        };
        match event.and_then(|event| event.event) {
            Some(Event::Output(frame)) => {
                if let Some(printed) = capture.take(&frame) {
                    // Nobody may be watching.
                    let _ = scene.output.send(printed).await;
                }
            }
            Some(Event::Gap(gap)) => capture.gap(&gap),
            Some(Event::End(end)) => return Ok(Followed::End(end)),
            None if how.follows => return Err(Status::unavailable("the stream ended without an end")),
            None => return Ok(Followed::Time),
        }
    }
}

async fn cancel(
    command: &str,
    scene: &Scene<'_>,
    operation: Option<OperationId>,
) -> Result<v1::CommandEnd, Status> {
    let request = v1::CancelRequest {
        context: Some(scene.executor.context(scene.lease, operation)),
        command_id: command.to_owned(),
    };
    let answer = timeout(PATIENCE, scene.executor.commands().cancel(request)).await;
    let answer = answer.unwrap_or_else(|_| Err(Status::unavailable("no answer in time")))?;
    answer.into_inner().end.ok_or_else(|| Status::unavailable("the executor named no end"))
}

fn ended(end: &v1::CommandEnd, capture: &Capture) -> Performed {
    let (words, is_error, is_lost) = match &end.end {
        Some(End::Exited(code)) => (format!("Exit code {code}"), false, false),
        Some(End::Signalled(number)) => (format!("Ended by {}", signal_name(*number)), true, false),
        Some(End::TimedOut(limit)) => (
            format!("Timed out after {} ms; it and everything it started were ended", limit.timeout_millis),
            true,
            false,
        ),
        Some(End::Cancelled(_)) => ("Cancelled; it and everything it started were ended".to_owned(), true, false),
        Some(End::OutOfMemory(_)) => ("Out of memory: the system ended it".to_owned(), true, false),
        Some(End::ProcessLimit(limit)) => {
            (format!("Ended: it started more than {} processes", limit.limit), true, false)
        }
        Some(End::NotStarted(not)) => (format!("Not started: {}", not_started(not.reason())), true, false),
        Some(End::RunnerLost(_)) => (
            "runner_lost: the process that holds commands went away. Whether the command did its work is not known, and it was not repeated. It ended".to_owned(),
            true,
            true,
        ),
        Some(End::ExecutorLost(_)) | None => (LOST.to_owned(), true, true),
    };
    let mut head = format!("{words}, after {:.1} s.", millis(end.duration_millis).as_secs_f64());
    if end.memory_events {
        head.push_str(" The environment ran out of memory meanwhile.");
    }
    if end.survivors_killed > 0 {
        let _ = write!(head, " {} processes it left behind were ended.", end.survivors_killed);
    }
    let dropped = end.stdout_dropped_bytes + end.stderr_dropped_bytes;
    if dropped > 0 {
        let _ = write!(
            head,
            " Of its output ({} and {} bytes) {dropped} bytes were not kept.",
            end.stdout_bytes, end.stderr_bytes
        );
    }
    Performed { text: with_output(&head, capture), is_error, is_lost }
}

fn with_output(head: &str, capture: &Capture) -> String {
    let (stdout, stderr) = capture.shown(MAX_RESULT_BYTES - WORDS);
    let mut text = format!("{head}\n");
    if stdout.is_empty() && stderr.is_empty() {
        text.push_str("No output.\n");
    }
    for (stream, content) in [("stdout", stdout), ("stderr", stderr)] {
        if !content.is_empty() {
            text.push_str(&fenced(stream, &content));
        }
    }
    text
}

fn removed(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| one_line(name)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let mut text = format!("Variables kept from the command: {}{more}.", shown.join(", "));
    text.truncate(text.floor_char_boundary(WORDS / 2));
    text + "\n"
}

fn not_started(reason: v1::NotStartedReason) -> &'static str {
    match reason {
        v1::NotStartedReason::NotFound => "the shell was not found",
        v1::NotStartedReason::NotExecutable => "the shell cannot be executed",
        v1::NotStartedReason::TooLarge => "arguments and environment are too large for the system",
        v1::NotStartedReason::Internal | v1::NotStartedReason::Unspecified => "the environment failed",
    }
}

fn signal_name(number: u32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {number}"),
    };
    format!("signal {number} ({name})")
}

fn millis(value: i64) -> Duration {
    Duration::from_millis(u64::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a table reads better without a reference in each row")]
    #[track_caller]
    fn check(end: End, expected: Expect) {
        let end = v1::CommandEnd { end: Some(end), duration_millis: 1234, ..Default::default() };
        let performed = ended(&end, &Capture::default());
        expected.assert_eq(&format!(
            "{} error={} lost={}",
            performed.text.trim_end(),
            performed.is_error,
            performed.is_lost
        ));
    }

    #[test]
    fn every_end_is_named_for_what_it_was() {
        check(
            End::Exited(0),
            expect![[r"
            Exit code 0, after 1.2 s.
            No output. error=false lost=false"]],
        );
        check(
            End::Exited(137),
            expect![[r"
            Exit code 137, after 1.2 s.
            No output. error=false lost=false"]],
        );
        check(
            End::Signalled(9),
            expect![[r"
            Ended by signal 9 (SIGKILL), after 1.2 s.
            No output. error=true lost=false"]],
        );
        check(
            End::TimedOut(v1::TimedOut { timeout_millis: 1000 }),
            expect![[r"
            Timed out after 1000 ms; it and everything it started were ended, after 1.2 s.
            No output. error=true lost=false"]],
        );
        check(
            End::RunnerLost(v1::RunnerLost {}),
            expect![[r"
            runner_lost: the process that holds commands went away. Whether the command did its work is not known, and it was not repeated. It ended, after 1.2 s.
            No output. error=true lost=true"]],
        );
    }

    #[test]
    fn an_end_that_was_not_told_is_never_a_success() {
        let performed = ended(&v1::CommandEnd::default(), &Capture::default());
        assert!(performed.is_error && performed.is_lost);
    }

    #[test]
    fn removed_variables_are_named_within_a_bound() {
        assert_eq!(removed(&[]), "");
        let names: Vec<String> = (0..22).map(|n| format!("A_TOKEN_{n}")).collect();
        let text = removed(&names);
        assert!(
            text.starts_with("Variables kept from the command: A_TOKEN_0, ")
                && text.ends_with(" and 2 more.\n")
        );
    }
}
