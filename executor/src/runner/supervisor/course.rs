//! What becomes of one command: a state that hears what happened and says what to do next. No clock, no system call.

use std::time::{Duration, Instant};

use super::super::kernel::Status;
use super::super::spec::{End, EndKind, NotStarted};
use super::super::wire::Ended;

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// An end waits so long for killed survivors to be gone, so that they can be counted. Longer takes only what sleeps
/// uninterruptibly.
const COUNTING: Duration = Duration::from_millis(500);
/// KILL is sent again so often until the tree is empty.
const AGAIN: Duration = Duration::from_millis(50);

/// What the supervisor does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Wait,
    Terminate,
    Kill,
}

/// Why everything is being ended, if it is. The first cause stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    TimedOut(Duration),
    Cancelled,
    ProcessLimit(u32),
    /// The main process of a foreground command has ended.
    Survivors,
    /// The runner is gone.
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// TERM is due, or was sent and KILL follows at that time.
    Terminating {
        until: Option<Instant>,
    },
    /// KILL is due, or was sent last at that time.
    Killing {
        sent: Option<Instant>,
    },
}

pub(super) struct Course {
    started: Instant,
    timeout: Option<Duration>,
    background: bool,
    phase: Phase,
    cause: Option<Cause>,
    not_started: Option<NotStarted>,
    main: Option<(Instant, Status)>,
    /// A KILL of ours, or one that the caller asked for, may be what ended the main process.
    kill_is_ours: bool,
    survivors_killed: u32,
    told: bool,
}

impl Course {
    pub(super) fn new(started: Instant, timeout: Option<Duration>, background: bool) -> Self {
        Self {
            started,
            timeout,
            background,
            phase: Phase::Running,
            cause: None,
            not_started: None,
            main: None,
            kill_is_ours: false,
            survivors_killed: 0,
            told: false,
        }
    }

    pub(super) fn main_lives(&self) -> bool {
        self.main.is_none()
    }

    pub(super) fn not_started(&mut self, reason: NotStarted) {
        self.not_started = Some(reason);
    }

    pub(super) fn main_ended(&mut self, now: Instant, status: Status) {
        self.main = Some((now, status));
        if !self.background && self.phase == Phase::Running {
            self.kill(Cause::Survivors);
        }
    }

    /// Another process ended. One that our ending took is a survivor; one that had ended before is not.
    pub(super) fn other_ended(&mut self, status: Status) {
        let by_us = match self.phase {
            Phase::Running | Phase::Terminating { until: None } | Phase::Killing { sent: None } => false,
            Phase::Terminating { until: Some(_) } => status == signalled(libc::SIGTERM),
            Phase::Killing { sent: Some(_) } => {
                status == signalled(libc::SIGKILL) || status == signalled(libc::SIGTERM)
            }
        };
        self.survivors_killed += u32::from(by_us);
    }

    pub(super) fn cancel(&mut self) {
        self.terminate(Cause::Cancelled);
    }

    pub(super) fn exceed(&mut self, limit: u32) {
        self.kill(Cause::ProcessLimit(limit));
    }

    pub(super) fn abandon(&mut self) {
        self.kill(Cause::Abandoned);
    }

    /// The caller had this signal sent to the main process.
    pub(super) fn note_signal(&mut self, signal: i32) {
        self.kill_is_ours |= signal == libc::SIGKILL;
    }

    fn terminate(&mut self, cause: Cause) {
        if self.phase == Phase::Running {
            self.cause = Some(cause);
            self.phase = Phase::Terminating { until: None };
        }
    }

    /// Overtakes a termination under way, whose cause then stays.
    fn kill(&mut self, cause: Cause) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.cause.get_or_insert(cause);
            self.phase = Phase::Killing { sent: None };
        }
    }

    /// What to do now. A move is given when it is to be made, and counts as made.
    pub(super) fn next_move(&mut self, now: Instant) -> Move {
        if self.phase == Phase::Running
            && let Some(timeout) = self.timeout.filter(|timeout| now >= self.started + *timeout)
        {
            self.terminate(Cause::TimedOut(timeout));
        }
        match self.phase {
            Phase::Running => Move::Wait,
            Phase::Terminating { until: None } => {
                self.phase = Phase::Terminating { until: Some(now + GRACE) };
                Move::Terminate
            }
            Phase::Terminating { until: Some(until) } if now < until => Move::Wait,
            Phase::Killing { sent: Some(sent) } if now < sent + AGAIN => Move::Wait,
            Phase::Terminating { .. } | Phase::Killing { .. } => {
                self.phase = Phase::Killing { sent: Some(now) };
                self.kill_is_ours |= self.main_lives();
                Move::Kill
            }
        }
    }

    /// When [`Course::next_move`] may say something new.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => self.timeout.map(|timeout| self.started + timeout),
            Phase::Terminating { until } => until.or(Some(self.started)),
            Phase::Killing { sent } => Some(sent.map_or(self.started, |sent| sent + AGAIN)),
        }
    }

    /// The end, once: of a background command when its main process has ended, of any other when nothing of it is left or
    /// its survivors take too long to die.
    pub(super) fn ended(
        &mut self,
        now: Instant,
        empty: bool,
        memory_kills: impl FnOnce() -> bool,
    ) -> Option<Ended> {
        let (at, status) = self.main?;
        let due =
            empty || self.background || now >= at + COUNTING && matches!(self.phase, Phase::Killing { .. });
        if self.told || !due {
            return None;
        }
        self.told = true;
        if let Some(reason) = self.not_started {
            return Some(not_started(reason));
        }
        let memory_kills = memory_kills();
        let kind = self.kind(status, memory_kills);
        Some(Ended::from(&End {
            kind,
            duration: at.saturating_duration_since(self.started),
            survivors_killed: self.survivors_killed,
            memory_events: memory_kills && kind != EndKind::OutOfMemory,
        }))
    }

    fn kind(&self, status: Status, memory_kills: bool) -> EndKind {
        match (self.cause, status) {
            (Some(Cause::TimedOut(timeout)), _) => EndKind::TimedOut { timeout },
            (Some(Cause::Cancelled), _) => EndKind::Cancelled,
            (Some(Cause::ProcessLimit(limit)), _) => EndKind::ProcessLimit { limit },
            (Some(Cause::Survivors | Cause::Abandoned) | None, Status::Exited(code)) => EndKind::Exited(code),
            (Some(Cause::Survivors | Cause::Abandoned) | None, status)
                if memory_kills && status == signalled(libc::SIGKILL) && !self.kill_is_ours =>
            {
                EndKind::OutOfMemory
            }
            (Some(Cause::Survivors | Cause::Abandoned) | None, Status::Signalled(signal)) => {
                EndKind::Signalled(signal)
            }
        }
    }
}

pub(super) fn not_started(reason: NotStarted) -> Ended {
    let kind = EndKind::NotStarted(reason);
    Ended::from(&End { kind, duration: Duration::ZERO, survivors_killed: 0, memory_events: false })
}

fn signalled(signal: i32) -> Status {
    Status::Signalled(u8::try_from(signal).unwrap_or(0))
}

#[cfg(test)]
mod tests;
