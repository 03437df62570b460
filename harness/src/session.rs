//! The words of a session, shared by the store, the agent loop and the HTTP API.
//!
//! Nothing here does IO. What leaves the process has its own wire structs at the edge; the exception is
//! [`Event`], whose stored form and wire form are one and the same by design: what is replayed is what was sent.

mod approval;
mod event;
mod id;
mod item;
mod run;
mod words;

pub use approval::{Answer, Approval, ApprovalState, NewApproval};
pub use event::{Event, StoredEvent};
pub use id::{ApprovalId, OperationId, ParseIdError, RunId, SessionId};
pub use item::{Item, StoredItem, ToolCall};
pub use run::{Counts, LimitKind, Limits, Outcome, Run, RunState, Usage};
pub use words::{
    Mode, Origin, Profile, mode_from_text, origin_from_text, origin_text, profile_from_text, profile_text,
};

use std::collections::BTreeSet;

use jiff::Timestamp;

/// One agent conversation over one execution environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its name, for life.
    pub id: SessionId,
    /// Which tools exist in it, fixed for life.
    pub profile: Profile,
    /// How much may be done without asking.
    pub mode: Mode,
    /// Whether the person vouches for the contents of the workspace. False: what is read from it is taint.
    pub trusted: bool,
    /// Whether its owner wants it asleep. A suspended session takes no message and starts no run.
    pub suspended: bool,
    /// Model to ask, `None`: the configured default.
    pub model: Option<String>,
    /// Bounds of each of its runs.
    pub limits: Limits,
    /// Tokens used by all its runs together.
    pub usage: Usage,
    /// Words for what it has read that is not its owner's; never shrinks.
    pub taints: BTreeSet<String>,
    /// The environment it is bound to. `None` (a snapshot without a reference) resolves to *unknown*, never to a default.
    pub environment: Option<EnvironmentRef>,
    /// Who made it.
    pub creator: Creator,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its description last changed.
    pub updated_at: Timestamp,
    /// The state of its open run, or idle.
    pub state: SessionState,
}

/// What a new session starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Chosen by the caller, so that a `none` environment can carry it.
    pub id: SessionId,
    /// See [`Session::profile`].
    pub profile: Profile,
    /// See [`Session::mode`].
    pub mode: Mode,
    /// See [`Session::model`].
    pub model: Option<String>,
    /// See [`Session::limits`].
    pub limits: Limits,
    /// See [`Session::environment`]. A new session always has one.
    pub environment: EnvironmentRef,
    /// See [`Session::creator`].
    pub creator: Creator,
}

/// Changes to a session's description. `None` leaves a field as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionPatch {
    /// See [`Session::mode`].
    pub mode: Option<Mode>,
    /// See [`Session::suspended`].
    pub suspended: Option<bool>,
    /// See [`Session::trusted`].
    pub trusted: Option<bool>,
}

/// What a session is doing, derived from its open run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// No run is open.
    Idle,
    /// A run is queued or at work.
    Running,
    /// A run waits for an answer of the person.
    Waiting,
}

closed_text! {
    /// Who made a session.
    Creator {
        /// The person, by the token of the state folder.
        Person = "person",
        /// A process of the person's user that showed no token.
        SameUser = "sameUser",
    }
}

closed_text! {
    /// What kind of environment a reference names.
    EnvironmentKind {
        /// A folder of this machine.
        Local = "local",
        /// A pod over a volume.
        Kubernetes = "kubernetes",
        /// None at all: a session without files.
        None = "none",
    }
}

/// Exact identity of an environment. All three parts are compared, always.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnvironmentRef {
    /// What it is.
    pub kind: EnvironmentKind,
    /// `local`: the canonical root. `none`: the session id.
    pub id: String,
    /// Which life of it: random for `local`, [`EnvironmentRef::NONE_REVISION`] for `none`.
    pub revision: String,
}

impl EnvironmentRef {
    /// The only revision of a `none` environment.
    pub const NONE_REVISION: &'static str = "0";

    /// The reference of a session without files.
    pub fn none(session: SessionId) -> Self {
        Self {
            kind: EnvironmentKind::None,
            id: session.to_string(),
            revision: Self::NONE_REVISION.to_owned(),
        }
    }
}

/// A message of a session's chat: somebody's own words, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Rising by one within the session, from 1.
    pub number: i64,
    /// Whose words they are.
    pub origin: Origin,
    /// The words.
    pub text: String,
    /// The run that was started by it, or that it steers.
    pub run: RunId,
    /// Whether it was said while its run was at work.
    pub steers: bool,
    /// Whether the model conversation holds it already.
    pub delivered: bool,
    /// When it was stored.
    pub created_at: Timestamp,
}
