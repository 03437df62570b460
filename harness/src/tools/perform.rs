//! Carries out one call that was allowed, and says in words what came of it.

use std::time::Duration;

use mooring_proto::v1;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::call::Call;
use super::capture::Printed;
use super::refusal::{is_lost, sentence};
use super::{command, files};
use crate::environment::Executor;
use crate::session::OperationId;

/// How long a file call may take. Searches have a budget of their own below it.
const FILE_PATIENCE: Duration = Duration::from_mins(2);

/// Where and on whose behalf a call is carried out.
pub struct Scene<'a> {
    /// The executor that the call is meant for.
    pub executor: &'a Executor,
    /// The session and its lease.
    pub lease: &'a v1::Lease,
    /// Stored before; `Some` for every call that has an effect. The same id is never carried out twice by one executor, so
    /// a call whose answer was lost may be asked for again with it.
    pub operation: Option<OperationId>,
    /// Takes output of commands as it comes.
    pub output: &'a mpsc::Sender<Printed>,
    /// Ends a running command; the call then tells that it was cancelled.
    pub cancel: &'a CancellationToken,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    /// For the model: our words, and data between marks.
    pub text: String,
    /// It was refused, failed, or did not come to its own end.
    pub is_error: bool,
    /// The executor went away with the call in flight: nobody knows what it did.
    pub is_lost: bool,
}

impl Performed {
    pub(crate) fn done(text: String) -> Self {
        Self { text, is_error: false, is_lost: false }
    }

    pub(crate) fn refused(tool: &str, status: &Status) -> Self {
        Self { text: sentence(tool, status), is_error: true, is_lost: is_lost(status) }
    }

    /// The executor that held the call is gone.
    pub fn lost() -> Self {
        Self { text: super::refusal::LOST.to_owned(), is_error: true, is_lost: true }
    }
}

/// Carries out `call`. Every outcome is words for the model; none is a panic or a silent nothing.
///
/// Dropping the future leaves a command running; it is found again by its operation id.
pub async fn perform(call: &Call, scene: &Scene<'_>) -> Performed {
    let tool = call.tool();
    let result = match call {
        Call::Shell(shell) => return command::shell(shell, scene).await,
        Call::ShellStatus(status) => return command::status(status, scene).await,
        Call::Read(read) => within(files::read(read, scene)).await,
        Call::ListDir(list) => within(files::list(list, scene)).await,
        Call::Write(write) => within(files::write(write, scene)).await,
        Call::Edit(edit) => within(files::edit(edit, scene)).await,
        Call::Copy(copy) => within(files::copy(copy, scene)).await,
        Call::Move(moved) => within(files::rename(moved, scene)).await,
        Call::Remove(remove) => within(files::remove(remove, scene)).await,
        Call::Grep(grep) => within(files::grep(grep, scene)).await,
        Call::Glob(glob) => within(files::glob(glob, scene)).await,
    };
    match result {
        Ok(text) => Performed::done(text),
        Err(status) => Performed::refused(tool, &status),
    }
}

async fn within(work: impl Future<Output = Result<String, Status>>) -> Result<String, Status> {
    timeout(FILE_PATIENCE, work).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))
}
