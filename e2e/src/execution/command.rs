//! Commands, run to their true end.

use std::time::Duration;

use mooring_proto::v1::{
    ArgumentVector, AttachRequest, AttachResponse, CommandEnd, StartRequest, StartResponse, Stream,
    attach_response::Event, command_end::End, start_request,
};
use mooring_proto::{detail_of, v1::ErrorCode};
use tonic::{Status, Streaming};

use super::{Executor, code};
use crate::fixture::await_condition;

/// From the end of a runner to the next one: the kubelet's restart of its container, on a busy machine.
const RUNNER_DEADLINE: Duration = Duration::from_mins(1);

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    what: start_request::Program,
    cwd: String,
    timeout: Duration,
}

/// A command that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// How, and after how long.
    pub end: CommandEnd,
    /// What it wrote to standard output, as far as it was kept.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, as far as it was kept.
    pub stderr: Vec<u8>,
}

impl Program {
    /// Text for the shell.
    pub fn shell(text: impl AsRef<str>) -> Self {
        Self::of(start_request::Program::ShellText(text.as_ref().as_bytes().to_vec().into()))
    }

    /// A program with its arguments.
    pub fn argv<const N: usize>(words: [&str; N]) -> Self {
        let arguments = words.iter().map(|word| word.as_bytes().to_vec().into()).collect();
        Self::of(start_request::Program::Argv(ArgumentVector { arguments }))
    }

    fn of(what: start_request::Program) -> Self {
        Self { what, cwd: String::new(), timeout: Duration::from_mins(2) }
    }

    /// In this folder of the workspace.
    #[must_use]
    pub fn within(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.cwd);
        self
    }

    /// For at most this long, up to an hour; two minutes unless it is said.
    #[must_use]
    pub fn lasting(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Finished {
    /// Standard output as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Both streams and the end, for a message.
    pub fn told(&self) -> String {
        format!("{:?}\n{}{}", self.end.end, self.text(), String::from_utf8_lossy(&self.stderr))
    }

    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.end.end == Some(End::Exited(0))
    }
}

impl Executor {
    /// Starts a command.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn start(&self, program: &Program) -> Result<StartResponse, Status> {
        let request = StartRequest {
            context: Some(self.context()),
            program: Some(program.what.clone()),
            cwd: program.cwd.clone(),
            timeout_millis: i64::try_from(program.timeout.as_millis()).unwrap_or(i64::MAX),
            ..StartRequest::default()
        };
        Ok(self.commands().start(request).await?.into_inner())
    }

    /// The output of a command from its beginning, and its end.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn attach(&self, command_id: &str) -> Result<Streaming<AttachResponse>, Status> {
        let request = AttachRequest {
            context: Some(self.context()),
            command_id: command_id.to_owned(),
            ..AttachRequest::default()
        };
        Ok(self.commands().attach(request).await?.into_inner())
    }

    /// Follows a command to its end.
    ///
    /// # Errors
    /// What the executor refuses it with, or what broke the connection.
    pub async fn follow(&self, command_id: &str) -> Result<Finished, Status> {
        let mut events = self.attach(command_id).await?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(message) = events.message().await? {
            match message.event {
                Some(Event::Output(frame)) if frame.stream() == Stream::Stderr => {
                    stderr.extend_from_slice(&frame.content);
                }
                Some(Event::Output(frame)) => stdout.extend_from_slice(&frame.content),
                Some(Event::End(end)) => return Ok(Finished { end, stdout, stderr }),
                Some(Event::Gap(_)) | None => {}
            }
        }
        Err(Status::data_loss("the stream of a command ended before its end was told"))
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// As [`Executor::start`] and [`Executor::follow`].
    pub async fn run(&self, program: &Program) -> Result<Finished, Status> {
        let started = self.start(program).await?;
        self.follow(&started.command_id).await
    }

    /// Runs a command to its end, asking again as long as there is no runner and the executor says that it may be tried again.
    /// Gives how often that was said, too.
    ///
    /// # Errors
    /// As [`Executor::run`], and when there is no runner for a minute.
    pub async fn run_once_possible(&self, program: &Program) -> anyhow::Result<(Finished, u32)> {
        let mut refusals = 0;
        let started = await_condition(RUNNER_DEADLINE, "a runner takes a command", async || {
            match self.start(program).await {
                Err(status) if is_without_runner(&status) => {
                    refusals += 1;
                    None
                }
                other => Some(other),
            }
        });
        let started = started.await??;
        Ok((self.follow(&started.command_id).await?, refusals))
    }
}

fn is_without_runner(status: &Status) -> bool {
    let retryable = detail_of(status).is_some_and(|detail| detail.retryable);
    retryable && code(status) == Some(ErrorCode::RunnerUnavailable)
}
