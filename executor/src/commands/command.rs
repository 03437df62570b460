//! One command: its output, its end, and the task that follows both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mooring_proto::v1::{self, command_end};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::input::Input;
use super::output::Output;
use crate::environment::WorkspaceId;
use crate::operation::OperationId;
use crate::runner::{Control, End, EndKind, NotStarted, Running};

/// How long output is still read after the end of the main process while something else holds the pipes.
const DRAIN: Duration = Duration::from_millis(500);
/// The most that is read from a pipe at once: what a pipe holds by default (pipe(7)).
const READ_BYTES: usize = 64 * 1024;

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

impl Stream {
    /// Both, in the order of their descriptors.
    pub const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// As it travels.
    pub fn to_wire(self) -> v1::Stream {
        match self {
            Self::Stdout => v1::Stream::Stdout,
            Self::Stderr => v1::Stream::Stderr,
        }
    }
}

/// A command that was handed to the runner, from then until its result is let go.
pub struct Command {
    /// 32 lower-case hexadecimal digits.
    pub id: String,
    /// The workspace it runs in.
    pub workspace: WorkspaceId,
    /// Of the Start that made it.
    pub operation_id: OperationId,
    /// Whether survivors of its main process live on.
    pub background: bool,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_unix_millis: i64,
    /// Its standard input.
    pub input: Input,
    control: Control,
    processes: watch::Receiver<u32>,
    outputs: [Mutex<Output>; 2],
    progress: watch::Sender<Progress>,
}

/// How far a command has come. Changes with every piece of output.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Set when the main process has ended and what it wrote was read.
    pub end: Option<Arc<End>>,
    /// Nothing of the command lives, and nothing more will be written.
    pub gone: bool,
}

/// What makes a command beside what the runner gave.
pub struct Origin {
    /// 32 lower-case hexadecimal digits.
    pub id: String,
    /// The workspace it runs in.
    pub workspace: WorkspaceId,
    /// Of the Start that made it.
    pub operation_id: OperationId,
    /// Whether survivors of its main process live on.
    pub background: bool,
    /// Milliseconds since 1970-01-01 UTC.
    pub started_unix_millis: i64,
    /// Bytes kept of each stream.
    pub output_bytes: usize,
}

impl Command {
    /// The command that `running` is, and the part of `running` that [`Command::follow`] needs.
    pub fn new(origin: Origin, running: Running) -> (Arc<Self>, Life) {
        let Running { stdout, stderr, stdin, started: _, processes, ended, gone, control } = running;
        let command = Self {
            id: origin.id,
            workspace: origin.workspace,
            operation_id: origin.operation_id,
            background: origin.background,
            started_unix_millis: origin.started_unix_millis,
            input: Input::new(stdin),
            control,
            processes,
            outputs: [(); 2].map(|()| Mutex::new(Output::new(origin.output_bytes))),
            progress: watch::Sender::new(Progress::default()),
        };
        (Arc::new(command), Life { stdout, stderr, ended, gone })
    }

    /// Reads output until nothing of the command lives, and records its end on the way.
    ///
    /// The end of the main process is recorded as soon as both pipes are at their end, or [`DRAIN`] later when something
    /// else holds them. Survivors of a background command are read on.
    pub async fn follow(&self, life: Life) {
        let Life { stdout, stderr, ended, gone } = life;
        let mut gone = std::pin::pin!(gone);
        let pumping = async {
            tokio::join!(self.pump(Stream::Stdout, stdout), self.pump(Stream::Stderr, stderr));
        };
        // Dropped, and the pipes with it, as soon as nothing is read any more.
        let mut pumping = Box::pin(pumping);
        let mut ended = std::pin::pin!(ended);
        let (end, mut is_read) = tokio::select! {
            end = &mut ended => (end, false),
            () = &mut pumping => ((&mut ended).await, true),
        };
        if !is_read {
            is_read = tokio::time::timeout(DRAIN, &mut pumping).await.is_ok();
        }
        self.record(end);
        if self.background && !is_read {
            tokio::select! {
                () = &mut gone => {
                    // What was written before the last process died is in the pipes.
                    let _ = tokio::time::timeout(DRAIN, &mut pumping).await;
                    self.settle();
                    return;
                }
                () = &mut pumping => {}
            }
        }
        drop(pumping);
        gone.await;
        self.settle();
    }

    async fn pump(&self, stream: Stream, mut pipe: pipe::Receiver) {
        let mut buffer = vec![0; READ_BYTES];
        // A pipe that cannot be read is at its end.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.output(stream).append(&buffer[..count]);
            self.progress.send_modify(|_| {});
        }
    }

    fn record(&self, end: End) {
        self.progress.send_modify(|progress| progress.end = Some(Arc::new(end)));
    }

    fn settle(&self) {
        for stream in Stream::BOTH {
            self.output(stream).settle();
        }
        self.input.close_now();
        self.progress.send_modify(|progress| progress.gone = true);
    }

    /// The kept output of `stream`. Held for no longer than a copy of one frame takes.
    pub fn output(&self, stream: Stream) -> MutexGuard<'_, Output> {
        let [stdout, stderr] = &self.outputs;
        let output = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes whenever there is more to see.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Whether something of it may live.
    pub fn is_live(&self) -> bool {
        !self.progress.borrow().gone
    }

    /// Reaches its processes.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Its end as it travels, once the main process has ended.
    pub fn end(&self) -> Option<v1::CommandEnd> {
        let end = self.progress.borrow().end.clone()?;
        let [stdout, stderr] = Stream::BOTH.map(|stream| {
            let output = self.output(stream);
            (output.total(), output.dropped())
        });
        Some(v1::CommandEnd {
            end: Some(cause_to_wire(end.kind)),
            duration_millis: millis(end.duration),
            stdout_bytes: stdout.0,
            stderr_bytes: stderr.0,
            stdout_dropped_bytes: stdout.1,
            stderr_dropped_bytes: stderr.1,
            memory_events: end.memory_events,
            survivors_killed: end.survivors_killed,
        })
    }

    /// Its state as it travels.
    pub fn to_wire(&self) -> v1::CommandState {
        v1::CommandState {
            command_id: self.id.clone(),
            operation_id: self.operation_id.as_str().to_owned(),
            background: self.background,
            started_unix_millis: self.started_unix_millis,
            end: self.end(),
            stdout_bytes: self.output(Stream::Stdout).total(),
            stderr_bytes: self.output(Stream::Stderr).total(),
            live_processes: if self.is_live() { *self.processes.borrow() } else { 0 },
        }
    }
}

/// What [`Command::follow`] reads and waits for.
pub struct Life {
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    ended: crate::runner::Ended,
    gone: crate::runner::Gone,
}

fn cause_to_wire(kind: EndKind) -> command_end::End {
    use command_end::End as Wire;
    match kind {
        EndKind::Exited(code) => Wire::Exited(code.into()),
        EndKind::Signalled(signal) => Wire::Signalled(signal.into()),
        EndKind::TimedOut { timeout } => Wire::TimedOut(v1::TimedOut { timeout_millis: millis(timeout) }),
        EndKind::Cancelled => Wire::Cancelled(v1::Cancelled {}),
        EndKind::OutOfMemory => Wire::OutOfMemory(v1::OutOfMemory {}),
        EndKind::RunnerLost => Wire::RunnerLost(v1::RunnerLost {}),
        EndKind::ProcessLimit { limit } => Wire::ProcessLimit(v1::ProcessLimit { limit }),
        EndKind::NotStarted(reason) => {
            let reason = match reason {
                NotStarted::NotFound => v1::NotStartedReason::NotFound,
                NotStarted::NotExecutable => v1::NotStartedReason::NotExecutable,
                NotStarted::TooLarge => v1::NotStartedReason::TooLarge,
                NotStarted::Internal => v1::NotStartedReason::Internal,
            };
            Wire::NotStarted(v1::NotStarted { reason: reason.into() })
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
