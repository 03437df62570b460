//! Messages of the link and their translation. Small ones travel in packets, the body of a start in a sealed memory file.

use std::time::Duration;

use super::spec::{Capabilities, End, EndKind, LinkVersion, NotStarted};

/// Bytes of the largest packet in either direction.
pub(super) const MAX_PACKET_BYTES: usize = 256;
/// Bytes of the largest start body: arguments, environment and paths.
pub(super) const MAX_BODY_BYTES: usize = 16 << 20;

/// From the serve side to the runner.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Request {
    /// Chosen by the serve side, never used twice on one link.
    #[prost(uint64, tag = "1")]
    pub(super) command: u64,
    #[prost(oneof = "Order", tags = "2, 3, 4")]
    pub(super) order: Option<Order>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub(super) enum Order {
    /// Carries descriptors: body, stdout, stderr, then stdin and text when announced.
    #[prost(message, tag = "2")]
    Start(StartOrder),
    #[prost(message, tag = "3")]
    Cancel(Empty),
    #[prost(uint32, tag = "4")]
    Signal(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct StartOrder {
    #[prost(bool, tag = "1")]
    pub(super) stdin: bool,
    #[prost(bool, tag = "2")]
    pub(super) text: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct Empty {}

/// The big part of a start.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct StartBody {
    /// Empty when a text is given.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) arguments: Vec<Vec<u8>>,
    /// `NAME=value` each.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) environment: Vec<Vec<u8>>,
    #[prost(bool, tag = "3")]
    pub(super) bash: bool,
    #[prost(uint64, optional, tag = "4")]
    pub(super) timeout_millis: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) process_limit: Option<u32>,
    #[prost(bool, tag = "6")]
    pub(super) background: bool,
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub(super) read_write: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) read_only: Vec<Vec<u8>>,
    /// Path, device and inode of the folder to start in.
    #[prost(bytes = "vec", tag = "9")]
    pub(super) folder: Vec<u8>,
    #[prost(uint64, tag = "10")]
    pub(super) folder_device: u64,
    #[prost(uint64, tag = "11")]
    pub(super) folder_inode: u64,
}

/// From the runner to the serve side, and from a supervisor to the runner (there without `command`).
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Event {
    #[prost(uint64, tag = "1")]
    pub(super) command: u64,
    #[prost(oneof = "News", tags = "2, 3, 4, 5, 6")]
    pub(super) news: Option<News>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub(super) enum News {
    #[prost(message, tag = "2")]
    Hello(Hello),
    /// The program runs.
    #[prost(message, tag = "3")]
    Started(Empty),
    #[prost(message, tag = "4")]
    Ended(Ended),
    /// Nothing of the command lives.
    #[prost(message, tag = "5")]
    Gone(Empty),
    #[prost(uint32, tag = "6")]
    Processes(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct Hello {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(uint32, tag = "2")]
    pub(super) landlock_abi: u32,
    #[prost(bool, tag = "3")]
    pub(super) scoped: bool,
    #[prost(bool, tag = "4")]
    pub(super) memory_counter: bool,
    #[prost(bool, tag = "5")]
    pub(super) seccomp: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct Ended {
    #[prost(oneof = "Cause", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) cause: Option<Cause>,
    #[prost(uint64, tag = "8")]
    pub(super) duration_micros: u64,
    #[prost(uint32, tag = "9")]
    pub(super) survivors_killed: u32,
    #[prost(bool, tag = "10")]
    pub(super) memory_events: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Oneof)]
pub(super) enum Cause {
    #[prost(uint32, tag = "1")]
    Exited(u32),
    #[prost(uint32, tag = "2")]
    Signalled(u32),
    #[prost(uint64, tag = "3")]
    TimedOutMillis(u64),
    #[prost(message, tag = "4")]
    Cancelled(Empty),
    #[prost(message, tag = "5")]
    OutOfMemory(Empty),
    #[prost(uint32, tag = "6")]
    ProcessLimit(u32),
    #[prost(enumeration = "Reason", tag = "7")]
    NotStarted(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Reason {
    Internal = 0,
    NotFound = 1,
    NotExecutable = 2,
    TooLarge = 3,
}

impl Event {
    pub(super) fn new(command: u64, news: News) -> Self {
        Self { command, news: Some(news) }
    }
}

impl From<&End> for Ended {
    fn from(end: &End) -> Self {
        Self {
            cause: cause_of(end.kind),
            duration_micros: micros(end.duration),
            survivors_killed: end.survivors_killed,
            memory_events: end.memory_events,
        }
    }
}

/// `None` for the one kind that no runner can report about itself.
fn cause_of(kind: EndKind) -> Option<Cause> {
    Some(match kind {
        EndKind::Exited(code) => Cause::Exited(code.into()),
        EndKind::Signalled(signal) => Cause::Signalled(signal.into()),
        EndKind::TimedOut { timeout } => Cause::TimedOutMillis(micros(timeout) / 1000),
        EndKind::Cancelled => Cause::Cancelled(Empty {}),
        EndKind::OutOfMemory => Cause::OutOfMemory(Empty {}),
        EndKind::ProcessLimit { limit } => Cause::ProcessLimit(limit),
        EndKind::NotStarted(reason) => Cause::NotStarted(Reason::from(reason).into()),
        EndKind::RunnerLost => return None,
    })
}

impl From<Ended> for End {
    /// A message without a known cause is a runner that cannot be believed: the command counts as lost.
    fn from(ended: Ended) -> Self {
        Self {
            kind: ended.cause.and_then(kind_of).unwrap_or(EndKind::RunnerLost),
            duration: Duration::from_micros(ended.duration_micros),
            survivors_killed: ended.survivors_killed,
            memory_events: ended.memory_events,
        }
    }
}

fn kind_of(cause: Cause) -> Option<EndKind> {
    Some(match cause {
        Cause::Exited(code) => EndKind::Exited(code.try_into().ok()?),
        Cause::Signalled(signal) => EndKind::Signalled(signal.try_into().ok()?),
        Cause::TimedOutMillis(millis) => EndKind::TimedOut { timeout: Duration::from_millis(millis) },
        Cause::Cancelled(Empty {}) => EndKind::Cancelled,
        Cause::OutOfMemory(Empty {}) => EndKind::OutOfMemory,
        Cause::ProcessLimit(limit) => EndKind::ProcessLimit { limit },
        Cause::NotStarted(reason) => EndKind::NotStarted(Reason::try_from(reason).ok()?.into()),
    })
}

impl From<NotStarted> for Reason {
    fn from(reason: NotStarted) -> Self {
        match reason {
            NotStarted::NotFound => Self::NotFound,
            NotStarted::NotExecutable => Self::NotExecutable,
            NotStarted::TooLarge => Self::TooLarge,
            NotStarted::Internal => Self::Internal,
        }
    }
}

impl From<Reason> for NotStarted {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::NotFound => Self::NotFound,
            Reason::NotExecutable => Self::NotExecutable,
            Reason::TooLarge => Self::TooLarge,
            Reason::Internal => Self::Internal,
        }
    }
}

impl From<Capabilities> for Hello {
    fn from(capabilities: Capabilities) -> Self {
        Self {
            version: LinkVersion::CURRENT.0,
            landlock_abi: capabilities.landlock_abi,
            scoped: capabilities.scoped,
            memory_counter: capabilities.memory_counter,
            seccomp: capabilities.seccomp,
        }
    }
}

impl From<Hello> for Capabilities {
    fn from(hello: Hello) -> Self {
        Self {
            landlock_abi: hello.landlock_abi,
            scoped: hello.scoped,
            memory_counter: hello.memory_counter,
            seccomp: hello.seccomp,
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
