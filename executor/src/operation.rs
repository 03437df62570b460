//! Operations: calls with effects, each of which happens once however often it is asked for.
//!
//! A caller chooses an operation id and may repeat the call for as long as the executor process lives. The first call
//! does the work in a task of its own, so a caller that goes away does not leave half an effect behind; repeats wait for
//! it and get the same result.

mod forgotten;

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use mooring_proto::v1::ErrorCode;
use mooring_proto::{detail_of, refusal};
use prost::Message;
use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tonic::Status;

use forgotten::Forgotten;

/// Finished results kept per workspace.
pub const MAX_FINISHED: usize = 10_000;
/// Bytes of finished results kept per workspace: 64 MiB.
pub const MAX_FINISHED_BYTES: usize = 64 * 1024 * 1024;
/// Operations of one workspace that may run at one time.
pub const MAX_RUNNING: usize = 256;

/// What one entry costs beside its result: the id, the digest and its places in the tables, in bytes.
const ENTRY_BYTES: usize = 256;

/// A caller's name for one effect: 1–128 of `[A-Za-z0-9_-]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(Arc<str>);

impl OperationId {
    /// The id in `text`, or `None` when it has another length or another character.
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let is_id = (1..=128).contains(&text.len()) && text.bytes().all(is_allowed);
        is_id.then(|| Self(text.into()))
    }

    /// The id as the caller wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// SHA-256 of what an operation was asked to do, its context apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentsDigest([u8; 32]);

impl ArgumentsDigest {
    /// Of a request whose `context` was taken out. `call` is the name of the call, so that one id names one call.
    pub fn of(call: &'static str, request: &impl Message) -> Self {
        Self::builder(call).bytes(&request.encode_to_vec()).finish()
    }

    /// For arguments that arrive in pieces.
    pub fn builder(call: &'static str) -> ArgumentsDigestBuilder {
        ArgumentsDigestBuilder(Sha256::new()).bytes(call.as_bytes())
    }
}

/// Digests arguments piece by piece; every piece is framed by its length.
#[derive(Debug)]
pub struct ArgumentsDigestBuilder(Sha256);

impl ArgumentsDigestBuilder {
    /// Adds one piece.
    #[must_use]
    pub fn bytes(mut self, piece: &[u8]) -> Self {
        self.0.update((piece.len() as u64).to_le_bytes());
        self.0.update(piece);
        self
    }

    /// The digest of all pieces in order.
    pub fn finish(self) -> ArgumentsDigest {
        ArgumentsDigest(self.0.finalize().into())
    }
}

type Outcome = Result<Bytes, Status>;

/// The operations of one workspace within the life of this process.
#[derive(Debug)]
pub struct Operations {
    table: Mutex<Table>,
    tasks: TaskTracker,
    bounds: Bounds,
}

/// How many results are kept.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    finished: usize,
    finished_bytes: usize,
    running: usize,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<OperationId, Entry>,
    /// Finished ids, oldest first.
    finished: VecDeque<OperationId>,
    finished_bytes: usize,
    running: usize,
    forgotten: Forgotten,
}

#[derive(Debug)]
enum Entry {
    Running { digest: ArgumentsDigest, outcome: watch::Receiver<Option<Outcome>> },
    Finished { digest: ArgumentsDigest, outcome: Outcome },
}

/// What a look at the table says to do.
enum Turn {
    Wait(watch::Receiver<Option<Outcome>>),
    Work(watch::Sender<Option<Outcome>>),
    Done(Outcome),
}

impl Operations {
    /// An empty table. The work itself runs in `tasks`, whose owner waits for it when the process ends.
    pub fn new(tasks: TaskTracker) -> Arc<Self> {
        let bounds =
            Bounds { finished: MAX_FINISHED, finished_bytes: MAX_FINISHED_BYTES, running: MAX_RUNNING };
        Self::with_bounds(tasks, bounds)
    }

    fn with_bounds(tasks: TaskTracker, bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { table: Mutex::default(), tasks, bounds })
    }

    /// Does `work` unless the operation `id` was asked for before; then waits for that and returns its result.
    ///
    /// Results and refusals are kept. A refusal that says *try again* (`busy`, `draining`, `runner_unavailable`) is not:
    /// nothing was done, so a repeat does the work. Cancellation is safe: `work` runs on and its result is kept. A panic
    /// in `work` is answered, and kept, as `internal`.
    ///
    /// # Errors
    /// What `work` was refused with; `operation_conflict` when `id` was used with another digest; `operation_forgotten`
    /// when its result is no longer kept; `busy` when [`MAX_RUNNING`] operations run.
    pub async fn run<T, F>(
        self: &Arc<Self>,
        id: OperationId,
        digest: ArgumentsDigest,
        work: F,
    ) -> Result<T, Status>
    where
        T: Message + Default,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let outcome = match self.turn(&id, digest)? {
            Turn::Done(outcome) => outcome,
            Turn::Wait(receiver) => await_outcome(receiver).await,
            Turn::Work(sender) => {
                let receiver = sender.subscribe();
                let operations = Arc::clone(self);
                self.tasks.spawn(async move {
                    let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
                        Err(refusal(ErrorCode::Internal, "the operation failed unexpectedly", []))
                    });
                    let outcome = outcome.map(|result| Bytes::from(result.encode_to_vec()));
                    operations.finish(&id, digest, &outcome);
                    // Whoever waited may be gone; the table has the result.
                    let _ = sender.send(Some(outcome));
                });
                await_outcome(receiver).await
            }
        };
        outcome.and_then(|bytes| {
            T::decode(bytes).map_err(|_| refusal(ErrorCode::Internal, "a kept result cannot be read", []))
        })
    }

    /// Whether the operation `id` was asked for before, and was not refused with *try again*: then [`Operations::run`] does
    /// no work for it.
    pub fn has(&self, id: &OperationId) -> bool {
        let table = self.table();
        table.entries.contains_key(id) || table.forgotten.has(id)
    }

    fn turn(&self, id: &OperationId, digest: ArgumentsDigest) -> Result<Turn, Status> {
        let mut table = self.table();
        if let Some(entry) = table.entries.get(id) {
            let (known, turn) = match entry {
                Entry::Running { digest, outcome } => (*digest, Turn::Wait(outcome.clone())),
                Entry::Finished { digest, outcome } => (*digest, Turn::Done(outcome.clone())),
            };
            if known != digest {
                return Err(refusal(
                    ErrorCode::OperationConflict,
                    "this operation id was used with other arguments",
                    [],
                ));
            }
            return Ok(turn);
        }
        if table.forgotten.has(id) {
            return Err(refusal(
                ErrorCode::OperationForgotten,
                "the result of this operation is no longer kept; it was done once and is not done again",
                [],
            ));
        }
        if table.running >= self.bounds.running {
            return Err(refusal(
                ErrorCode::Busy,
                "too many operations run at one time",
                [("limit", self.bounds.running.to_string())],
            ));
        }
        let (sender, receiver) = watch::channel(None);
        table.running += 1;
        table.entries.insert(id.clone(), Entry::Running { digest, outcome: receiver });
        Ok(Turn::Work(sender))
    }

    fn finish(&self, id: &OperationId, digest: ArgumentsDigest, outcome: &Outcome) {
        let mut table = self.table();
        table.running -= 1;
        if outcome.as_ref().is_err_and(is_try_again) {
            table.entries.remove(id);
            return;
        }
        table.finished_bytes += cost(outcome);
        table.entries.insert(id.clone(), Entry::Finished { digest, outcome: outcome.clone() });
        table.finished.push_back(id.clone());
        while table.finished.len() > self.bounds.finished || table.finished_bytes > self.bounds.finished_bytes
        {
            let Some(oldest) = table.finished.pop_front() else { break };
            if let Some(Entry::Finished { outcome, .. }) = table.entries.remove(&oldest) {
                table.finished_bytes -= cost(&outcome);
            }
            table.forgotten.add(&oldest);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Every change of the table is complete before anything that could panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn await_outcome(mut receiver: watch::Receiver<Option<Outcome>>) -> Outcome {
    match receiver.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(ended_without_result())),
        Err(_) => Err(ended_without_result()),
    }
}

/// The task that worked is gone: the runtime is being shut down.
fn ended_without_result() -> Status {
    refusal(ErrorCode::Draining, "the executor is shutting down", [])
}

fn is_try_again(status: &Status) -> bool {
    detail_of(status).is_some_and(|detail| detail.retryable)
}

fn cost(outcome: &Outcome) -> usize {
    ENTRY_BYTES
        + match outcome {
            Ok(bytes) => bytes.len(),
            Err(status) => status.message().len() + status.details().len(),
        }
}

#[cfg(test)]
mod tests;
