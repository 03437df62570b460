//! The commands of the environment: started once each, followed until nothing of them lives, kept until room is needed.
//!
//! ```text
//!   Start ─▶ Request (bounds) ─▶ Slot (64 live, 8 in the background) ─▶ runner::Link ─▶ Command
//!                                                                          │ pipes, end
//!   Attach ─▶ Follower ──pulls by offset──▶ Output ◀──appends── Command::follow
//! ```

mod command;
mod environment;
mod follower;
mod input;
mod output;
mod start;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mooring_proto::v1::{CommandEnd, CommandState, StartResponse};
use tokio_util::task::TaskTracker;

pub use command::Command;
pub use follower::Follower;
pub use start::Request;

use crate::environment::{BootId, Call, Limits, WorkspaceId};
use crate::operation::OperationId;
use crate::runner::{Capabilities, LinkSlot, StartError};
use command::{Origin, Progress, Stream};

/// Ended commands kept.
const MAX_KEPT: usize = 10_000;
/// Bytes of output of ended commands kept: 64 MiB, beside that of the last one.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
/// How long Cancel waits for the last process. The runner kills after 2 s; what is left then sleeps in the kernel.
const CANCEL_PATIENCE: Duration = Duration::from_secs(20);
/// When a caller may ask again after the runner was not there.
const RUNNER_RETRY: Duration = Duration::from_secs(1);
/// How long a Bind waits for a runner that is about to come.
const RUNNER_PATIENCE: Duration = Duration::from_secs(5);
/// Removed names that one answer tells.
const MAX_TOLD_NAMES: usize = 1000;

/// Why a call on commands was refused.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A field is absent or malformed.
    #[error("{0}")]
    Malformed(&'static str),
    /// The time limit is out of bounds.
    #[error("timeout_millis is 0..={max_millis}")]
    Timeout {
        /// The class's limit.
        max_millis: u64,
    },
    /// Something is longer than it may be.
    #[error("{what} over the limit of {limit_bytes} bytes")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// Asked for something this executor does not do.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The folder to start in is no path.
    #[error("cwd: {0}")]
    CwdPath(#[from] crate::path::PathError),
    /// The folder to start in cannot be opened beneath the root.
    #[error("cwd: {0}")]
    Cwd(#[from] crate::root::ResolveError),
    /// As many commands live as may.
    #[error("{limit} {which} live already")]
    Busy {
        /// Which commands.
        which: &'static str,
        /// How many may live.
        limit: usize,
    },
    /// No such command in this workspace.
    #[error("no such command")]
    NotFound,
    /// The main process has ended.
    #[error("the command has ended")]
    Ended,
    /// Standard input was never open, or is not any more.
    #[error("standard input is not open")]
    InputClosed,
    /// Some process sleeps where no signal reaches it yet.
    #[error("not everything of the command has ended yet")]
    StillEnding,
    /// No runner is connected.
    #[error("no runner is connected")]
    RunnerUnavailable {
        /// When to ask again.
        retry_after: Duration,
    },
    /// The command could not be prepared.
    #[error("cannot prepare the command")]
    Prepare(#[source] StartError),
    /// The system gave no random bytes or no descriptor.
    #[error("cannot prepare the command")]
    System(#[from] std::io::Error),
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::RunnerUnavailable => Self::RunnerUnavailable { retry_after: RUNNER_RETRY },
            StartError::Invalid(rule) => Self::Malformed(rule),
            StartError::Descriptors(_) => Self::Prepare(error),
        }
    }
}

/// All commands of this process.
pub struct Commands {
    link: LinkSlot,
    boot_id: BootId,
    tasks: TaskTracker,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<String, Arc<Command>>,
    /// Ids of all commands, oldest first.
    order: VecDeque<String>,
    /// Ids of ended commands, the one that ended first first, with the output bytes of each.
    ended: VecDeque<(String, usize)>,
    ended_bytes: usize,
    live: usize,
    live_background: HashMap<WorkspaceId, usize>,
}

impl Commands {
    /// No commands yet; they will be handed to the runner in `link` and followed in `tasks`.
    pub fn new(link: LinkSlot, boot_id: BootId, tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self { link, boot_id, tasks, table: Mutex::default() })
    }

    /// What the runner's kernel can do. Waits for a runner to come, for up to 5 s.
    ///
    /// # Errors
    /// [`CommandError::RunnerUnavailable`].
    pub async fn capabilities(&self) -> Result<Capabilities, CommandError> {
        Ok(self.link.capabilities(RUNNER_PATIENCE).await?)
    }

    /// Starts the command that `request` asks for. Must run to its end: see
    /// [`Operations::run`](crate::operation::Operations::run).
    ///
    /// # Errors
    /// [`CommandError`]; nothing was started then.
    pub async fn start(
        self: &Arc<Self>,
        call: &Call,
        operation_id: OperationId,
        request: Request,
    ) -> Result<StartResponse, CommandError> {
        let background = request.background;
        let slot = self.slot(&call.bound.limits, background.then_some(call.workspace.id))?;
        let (spec, mut removed_variables) = request.into_spec(call)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let running = self.link.current()?.start(spec).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = Origin {
            id: WorkspaceId::new(random).to_string(),
            workspace: call.workspace.id,
            operation_id,
            background,
            started_unix_millis: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            output_bytes: call.bound.limits.output_bytes,
        };
        let (command, life) = Command::new(origin, running);
        self.keep(&command);
        let command_id = command.id.clone();
        let commands = Arc::clone(self);
        self.tasks.spawn(async move {
            command.follow(life).await;
            commands.retire(&command);
            drop(slot);
        });
        removed_variables.truncate(MAX_TOLD_NAMES);
        Ok(StartResponse { command_id, boot_id: self.boot_id.as_str().to_owned(), removed_variables })
    }

    /// The command `id` of the caller's workspace.
    ///
    /// # Errors
    /// [`CommandError::NotFound`], the same for one that never was, was let go, or is another workspace's.
    pub fn find(&self, call: &Call, id: &str) -> Result<Arc<Command>, CommandError> {
        let found = self.table().by_id.get(id).cloned();
        found.filter(|command| command.workspace == call.workspace.id).ok_or(CommandError::NotFound)
    }

    /// The commands of the caller's workspace, oldest first.
    pub fn list(&self, call: &Call) -> Vec<CommandState> {
        let all: Vec<_> = {
            let table = self.table();
            table.order.iter().filter_map(|id| table.by_id.get(id).cloned()).collect()
        };
        let ours = all.iter().filter(|command| command.workspace == call.workspace.id);
        ours.map(|command| command.to_wire()).collect()
    }

    /// Ends `command` and everything it started, and returns its end once nothing of it lives.
    ///
    /// # Errors
    /// [`CommandError::StillEnding`] when something does after 20 s.
    pub async fn cancel(&self, command: &Command) -> Result<CommandEnd, CommandError> {
        // With the link broken the runner ends everything by itself.
        let _ = command.control().cancel().await;
        let mut progress = command.progress();
        let is_over = |progress: &Progress| progress.gone && progress.end.is_some();
        let waited = tokio::time::timeout(CANCEL_PATIENCE, progress.wait_for(is_over)).await;
        drop(waited.map_err(|_| CommandError::StillEnding)?);
        command.end().ok_or(CommandError::StillEnding)
    }

    /// Sends `signal` to the main process of `command`.
    ///
    /// # Errors
    /// [`CommandError::Ended`], [`CommandError::Malformed`] for a number out of 1..=64.
    pub async fn signal(&self, command: &Command, signal: u32) -> Result<(), CommandError> {
        if command.end().is_some() {
            return Err(CommandError::Ended);
        }
        Ok(command.control().signal(signal).await?)
    }

    /// Writes to standard input of `command`, waiting until it took everything or nothing of it lives.
    ///
    /// # Errors
    /// [`CommandError::InputClosed`]; a part may have been written then.
    pub async fn write_input(
        &self,
        command: &Command,
        content: &[u8],
        close: bool,
    ) -> Result<(), CommandError> {
        let mut progress = command.progress();
        tokio::select! {
            written = command.input.write(content, close) => written.map_err(|_| CommandError::InputClosed),
            _ = progress.wait_for(|progress| progress.gone) => Err(CommandError::InputClosed),
        }
    }

    /// Cancels everything that lives, and waits until nothing does or `patience` has passed.
    pub async fn cancel_all(&self, patience: Duration) {
        let live: Vec<_> = {
            let table = self.table();
            table.by_id.values().filter(|command| command.is_live()).cloned().collect()
        };
        let cancelled = futures::future::join_all(live.iter().map(|command| self.cancel(command)));
        // Whatever is left ends with the runner's link.
        let _ = tokio::time::timeout(patience, cancelled).await;
    }

    fn slot(
        self: &Arc<Self>,
        limits: &Limits,
        background_of: Option<WorkspaceId>,
    ) -> Result<Slot, CommandError> {
        let mut table = self.table();
        if table.live >= limits.live_commands {
            return Err(CommandError::Busy { which: "commands", limit: limits.live_commands });
        }
        if let Some(workspace) = background_of {
            let live = table.live_background.entry(workspace).or_default();
            if *live >= limits.background_commands {
                let limit = limits.background_commands;
                return Err(CommandError::Busy { which: "background commands", limit });
            }
            *live += 1;
        }
        table.live += 1;
        Ok(Slot { commands: Arc::clone(self), background_of })
    }

    fn keep(&self, command: &Arc<Command>) {
        let mut table = self.table();
        table.order.push_back(command.id.clone());
        table.by_id.insert(command.id.clone(), Arc::clone(command));
    }

    fn retire(&self, command: &Command) {
        let kept: usize = Stream::BOTH.iter().map(|stream| command.output(*stream).kept()).sum();
        let mut table = self.table();
        table.ended.push_back((command.id.clone(), kept));
        table.ended_bytes += kept;
        while table.ended.len() > MAX_KEPT || (table.ended_bytes > MAX_KEPT_BYTES && table.ended.len() > 1) {
            let Some((oldest, bytes)) = table.ended.pop_front() else { break };
            table.ended_bytes -= bytes;
            table.by_id.remove(&oldest);
            table.order.retain(|id| *id != oldest);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to be live, given back when dropped.
struct Slot {
    commands: Arc<Commands>,
    background_of: Option<WorkspaceId>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.commands.table();
        table.live -= 1;
        if let Some(live) = self.background_of.and_then(|workspace| table.live_background.get_mut(&workspace))
        {
            *live -= 1;
        }
    }
}
