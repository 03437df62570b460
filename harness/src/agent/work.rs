//! One run: step by step from what is stored to its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::conversation::{Next, next, open_calls};
use super::runs::AgentParts;
use crate::environment::Environment;
use crate::session::{
    Event, Item, LimitKind, Message, Outcome, Run, RunId, RunState, Session, SessionId, StoredItem, ToolCall,
};
use crate::store::{Lease, OperationState, StoreError, Write};
use crate::tools::Performed;

/// What work on one run stands on.
pub(super) struct Work<'a> {
    pub(super) parts: &'a Arc<AgentParts>,
    pub(super) lease: &'a Lease,
    pub(super) session: SessionId,
    pub(super) run: RunId,
    pub(super) environment: Environment,
    /// Cancelled when the person interrupts the run or the session is gone.
    pub(super) cancel: CancellationToken,
}

/// Why a step was left before its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// The person interrupted, or time is up: look again.
    Again,
    /// The session is suspended: the run stays open.
    Suspended,
    /// The store failed, or the lease is lost.
    Store(StoreError),
}

/// What is stored, read together.
pub(super) struct View {
    pub(super) session: Session,
    pub(super) run: Run,
    pub(super) items: Vec<StoredItem>,
}

/// Another executor than the one the session worked with last.
pub(super) struct BootChange {
    /// Empty when none lives.
    pub(super) boot_id: String,
    pub(super) note: Option<String>,
}

impl Work<'_> {
    /// Works on the run until it has ended.
    ///
    /// Dropping the future is safe at any point: what is not stored is found missing and done, or told as lost, the next
    /// time.
    pub(super) async fn steps(&self) -> Result<(), Cut> {
        let mut write = self.parts.store.write(self.lease).await?;
        match write.start_run(self.run).await {
            Ok(()) => write.commit().await?,
            Err(StoreError::RunEnded) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        loop {
            let view = self.view().await?;
            if !view.run.state.is_open() {
                return Ok(());
            }
            match Box::pin(self.step(view)).await {
                Ok(()) | Err(Cut::Again) => {}
                Err(cut @ (Cut::Suspended | Cut::Store(_))) => return Err(cut),
            }
        }
    }

    async fn step(&self, view: View) -> Result<(), Cut> {
        if view.run.interrupt_requested {
            return self.end(&RunState::Interrupted, "the person interrupted the run").await;
        }
        if view.session.suspended {
            return Err(Cut::Suspended);
        }
        let what = next(&view.items, view.run.id);
        if let Some(kind) = self.limit_reached(&view, &what) {
            let reason = format!("the run came to its limit ({kind})");
            return self.end(&RunState::Finished(Outcome::LimitReached(kind)), &reason).await;
        }
        match what {
            Next::Settle(calls) => Box::pin(self.settle(&view, &calls)).await,
            Next::Ask => Box::pin(self.turn()).await,
            Next::Finish => self.finish().await,
        }
    }

    fn limit_reached(&self, view: &View, what: &Next) -> Option<LimitKind> {
        let (counts, limits) = (view.run.counts, view.session.limits);
        let (asks, settles) = match what {
            Next::Finish => return None,
            Next::Ask => (true, false),
            Next::Settle(_) => (false, true),
        };
        if self.time_left(view).is_zero() {
            Some(LimitKind::WallTime)
        } else if counts.failures >= limits.failures {
            Some(LimitKind::Failures)
        } else if counts.tokens >= limits.tokens {
            Some(LimitKind::Tokens)
        } else if asks && counts.turns >= limits.turns {
            Some(LimitKind::Turns)
        } else if settles && counts.tool_calls >= limits.tool_calls {
            Some(LimitKind::ToolCalls)
        } else {
            None
        }
    }

    /// Until the run's wall time is over.
    fn time_left(&self, view: &View) -> Duration {
        let started = view.run.started_at.unwrap_or(view.run.created_at);
        let used = self.parts.store.now().duration_since(started);
        view.session.limits.wall_time.saturating_sub(Duration::try_from(used).unwrap_or(Duration::ZERO))
    }

    pub(super) fn deadline(&self, view: &View) -> Instant {
        Instant::now() + self.time_left(view)
    }

    /// Does `work` until the person interrupts or the run's time is over.
    pub(super) async fn until_cut<T>(&self, view: &View, work: impl Future<Output = T>) -> Result<T, Cut> {
        tokio::select! {
            done = work => Ok(done),
            () = self.cancel.cancelled() => Err(Cut::Again),
            () = sleep_until(self.deadline(view)) => Err(Cut::Again),
        }
    }

    pub(super) async fn view(&self) -> Result<View, StoreError> {
        let store = &self.parts.store;
        let session = store.session(self.session).await?;
        let run = store.run(self.session, self.run).await?;
        let items = store.conversation(self.session).await?;
        Ok(View { session, run, items })
    }

    pub(super) async fn messages(&self) -> Result<Vec<Message>, StoreError> {
        self.parts.store.messages(self.session, 0).await
    }

    /// Ends the run with its answer, unless words came that the model has not got.
    async fn finish(&self) -> Result<(), Cut> {
        let mut write = self.parts.store.write(self.lease).await?;
        if write.take_words(self.run).await?.is_empty() {
            write.end_run(self.run, &RunState::Finished(Outcome::Answered)).await?;
        }
        write.commit().await?;
        Ok(())
    }

    /// Ends the run otherwise. Calls without a result get one that says why, so that the conversation can go on.
    pub(super) async fn end(&self, end: &RunState, reason: &str) -> Result<(), Cut> {
        let view = self.view().await?;
        let operations = self.parts.store.operations(self.session, self.run).await?;
        let mut write = self.parts.store.write(self.lease).await?;
        for call in open_calls(&view.items, self.run) {
            let sent = operations.iter().find(|operation| operation.call == call.id);
            if let Some(operation) = sent {
                if operation.state == OperationState::Sent {
                    write.finish_operation(operation.id, OperationState::Lost).await?;
                }
                self.append_result(&mut write, &call, &Performed::lost().text, true).await?;
            } else {
                self.append_result(&mut write, &call, &format!("Not executed: {reason}."), true).await?;
            }
        }
        write.append_item(self.run, &Item::Note { text: format!("The run was ended: {reason}.") }).await?;
        match write.end_run(self.run, end).await {
            Ok(()) => write.commit().await?,
            Err(StoreError::RunEnded) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Stores the result of one call, for the model and for those who watch.
    pub(super) async fn append_result(
        &self,
        write: &mut Write,
        call: &ToolCall,
        text: &str,
        is_error: bool,
    ) -> Result<(), StoreError> {
        let item = Item::ToolResult { call: call.id.clone(), text: text.to_owned(), is_error };
        write.append_item(self.run, &item).await?;
        write
            .append_event(&Event::ToolResult {
                run: self.run.to_string(),
                call: call.id.clone(),
                tool: call.name.clone(),
                text: text.to_owned(),
                is_error,
            })
            .await?;
        Ok(())
    }

    /// Whether the executor that the session worked with last is gone or replaced.
    pub(super) async fn lost_executor(&self) -> Result<Option<BootChange>, StoreError> {
        let Environment::Local(local) = &self.environment else { return Ok(None) };
        let last = self.parts.store.last_boot(self.session).await?.filter(|boot| !boot.is_empty());
        let now = local.current().await.map(|executor| executor.boot_id().to_owned());
        if last == now {
            return Ok(None);
        }
        let note = last.map(|_| {
            "The process that held this environment has ended and is replaced when it is needed. The files are as they \
             were left. Every file counts as unread again, and commands that ran in the background have ended. Nothing \
             was repeated."
                .to_owned()
        });
        Ok(Some(BootChange { boot_id: now.unwrap_or_default(), note }))
    }
}
