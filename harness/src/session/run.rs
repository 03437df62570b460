//! Runs: what one message sets going.

use std::time::Duration;

use jiff::Timestamp;

use super::{RunId, SessionId};

/// The work that one message of the person set going. Runs of a session go one after the other, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// Whose it is.
    pub session: SessionId,
    /// The message that started it.
    pub message: i64,
    /// Where it stands.
    pub state: RunState,
    /// The person asked for it to stop. The lease holder ends it as [`RunState::Interrupted`].
    pub interrupt_requested: bool,
    /// What it has used so far; survives a restart, so limits hold across it.
    pub counts: Counts,
    /// When its message was stored.
    pub created_at: Timestamp,
    /// When work on it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Behind another run, or not picked up yet.
    Queued,
    /// At work.
    Running,
    /// Waiting for an answer of the person.
    Waiting,
    /// Ended by itself.
    Finished(Outcome),
    /// Ended by the person.
    Interrupted,
    /// Ended by an error. `code` is stable, `message` one sentence without secrets.
    Failed {
        /// Stable word.
        code: String,
        /// One sentence.
        message: String,
    },
}

impl RunState {
    /// Whether work may still happen in it.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting => true,
            Self::Finished(_) | Self::Interrupted | Self::Failed { .. } => false,
        }
    }

    /// The word for it, without the details of an end.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Finished(_) => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
        }
    }
}

/// How a run ended that ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model gave its answer.
    Answered,
    /// A limit was reached.
    LimitReached(LimitKind),
}

impl Outcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::LimitReached(LimitKind::Turns) => "limitReached:turns",
            Self::LimitReached(LimitKind::ToolCalls) => "limitReached:toolCalls",
            Self::LimitReached(LimitKind::Tokens) => "limitReached:tokens",
            Self::LimitReached(LimitKind::Failures) => "limitReached:failures",
            Self::LimitReached(LimitKind::WallTime) => "limitReached:wallTime",
        }
    }

    /// Reads the word back.
    pub fn from_text(text: &str) -> Option<Self> {
        let limits = LimitKind::ALL.iter().copied().map(Self::LimitReached);
        std::iter::once(Self::Answered).chain(limits).find(|outcome| outcome.as_str() == text)
    }
}

closed_text! {
    /// Which limit of a run was reached.
    LimitKind {
        /// Model calls.
        Turns = "turns",
        /// Tool calls.
        ToolCalls = "toolCalls",
        /// Tokens in and out.
        Tokens = "tokens",
        /// Consecutive failed turns or tool calls.
        Failures = "failures",
        /// Time at work.
        WallTime = "wallTime",
    }
}

/// Bounds of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model calls, 1..=1000.
    pub turns: u32,
    /// Tool calls, 1..=10000.
    pub tool_calls: u32,
    /// Tokens in and out together, 1..=100000000.
    pub tokens: u64,
    /// Consecutive failures, 1..=100.
    pub failures: u32,
    /// Time from the start of the run, waiting for the person included; 1 s..=7 days.
    pub wall_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 100,
            tool_calls: 500,
            tokens: 4_000_000,
            failures: 5,
            wall_time: Duration::from_hours(24),
        }
    }
}

/// What a run has used of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Model calls.
    pub turns: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens in and out together.
    pub tokens: u64,
    /// Consecutive failures at this moment.
    pub failures: u32,
}

/// Tokens as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens sent to the model.
    pub input_tokens: u64,
    /// Tokens received from it.
    pub output_tokens: u64,
    /// Answered model calls.
    pub requests: u64,
}
