//! Calls that have no result yet: decided, asked about, carried out, told.

use futures::StreamExt as _;
use mooring_authority::{Decision, Question};
use mooring_proto::v1;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::judge::{Facts, UNTRUSTED_WORKSPACE, denied, digest, judge, question_json, reads_workspace};
use super::stream::store_events;
use super::work::{Cut, View, Work};
use crate::environment::{Environment, Executor, ResolveError};
use crate::session::{
    Approval, ApprovalId, ApprovalState, Counts, Event, Message, NewApproval, OperationId, RunState, ToolCall,
};
use crate::store::{Operation, OperationState};
use crate::tools::{Call, Performed, Printed, Scene, parse, perform};

/// Reads of one turn that run at the same time.
const AT_ONCE: usize = 8;
/// Approvals of the session that are looked through for the one of a call; it is among the newest.
const LOOK_BACK: u32 = 200;

/// One call with what came of it.
struct Settled<'a> {
    made: &'a ToolCall,
    performed: Performed,
    operation: Option<OperationId>,
    reads: bool,
}

impl Work<'_> {
    /// Gives the first of `calls` its result, and reads that directly follow it theirs; or puts the question about it, or
    /// waits for the answer. The caller looks again afterwards.
    pub(super) async fn settle(&self, view: &View, calls: &[ToolCall]) -> Result<(), Cut> {
        let Some(made) = calls.first() else { return Ok(()) };
        let call = match parse(view.session.profile, &made.name, &made.arguments) {
            Ok(call) => call,
            // The catalogue has changed since the call was stored.
            Err(error) => return self.tell(view, made, format!("{error}.")).await,
        };
        let operations = self.parts.store.operations(self.session, self.run).await?;
        if let Some(operation) = operations.iter().find(|operation| operation.call == made.id) {
            return self.find_again(view, &call, made, operation).await;
        }
        let messages = self.messages().await?;
        match self.judge(view, &messages, &call, made) {
            decision @ Decision::Deny { .. } => self.tell(view, made, denied(call.tool(), &decision)).await,
            Decision::Ask { question, .. } => self.ask(view, &call, made, &question).await,
            Decision::Allow { .. } if call.is_read() => {
                let reads = self.reads_from(view, &messages, calls);
                self.carry_out_reads(view, reads).await
            }
            Decision::Allow { .. } => self.carry_out(view, &call, made, None).await,
        }
    }

    fn judge(&self, view: &View, messages: &[Message], call: &Call, made: &ToolCall) -> Decision {
        let facts = Facts {
            session: &view.session,
            run: &view.run,
            messages,
            items: &view.items,
            environment: &self.environment,
            protected: &self.parts.protected,
        };
        judge(call, made, &facts)
    }

    /// The allowed reads at the beginning of `calls`, within what the run may still call.
    fn reads_from<'c>(
        &self,
        view: &View,
        messages: &[Message],
        calls: &'c [ToolCall],
    ) -> Vec<(Call, &'c ToolCall)> {
        let left = view.session.limits.tool_calls.saturating_sub(view.run.counts.tool_calls).max(1);
        calls
            .iter()
            .take(usize::try_from(left).unwrap_or(usize::MAX))
            .map_while(|made| {
                let call = parse(view.session.profile, &made.name, &made.arguments).ok()?;
                let may = call.is_read() && self.judge(view, messages, &call, made).is_allow();
                may.then_some((call, made))
            })
            .collect()
    }

    async fn carry_out_reads(&self, view: &View, reads: Vec<(Call, &ToolCall)>) -> Result<(), Cut> {
        let executor = match self.executor().await {
            Ok(executor) => executor,
            Err(error) => {
                return {
                    let calls = reads.into_iter().map(|(_, made)| made).collect();
                    self.without_executor(view, calls, &error).await
                };
            }
        };
        let mut write = self.parts.store.write(self.lease).await?;
        write.set_first_boot(executor.boot_id()).await?;
        write.commit().await?;
        let (output, _watch) = mpsc::channel(1);
        let lease = self.wire_lease();
        let scene = Scene {
            executor: &executor,
            lease: &lease,
            operation: None,
            output: &output,
            cancel: &self.cancel,
        };
        let mut each = Vec::with_capacity(reads.len());
        for (call, made) in &reads {
            let scene = &scene;
            each.push(async move {
                Settled { made, performed: perform(call, scene).await, operation: None, reads: true }
            });
        }
        let work = futures::stream::iter(each).buffered(AT_ONCE).collect::<Vec<_>>();
        let settled = self.until_cut(view, work).await?;
        self.store_results(view, settled).await
    }

    /// Carries out a call with an effect, alone. Its operation is stored first, with the use of the permission if the
    /// person gave one, so that neither can be used twice.
    async fn carry_out(
        &self,
        view: &View,
        call: &Call,
        made: &ToolCall,
        approval: Option<&Approval>,
    ) -> Result<(), Cut> {
        let executor = match self.executor().await {
            Ok(executor) => executor,
            Err(error) => return self.without_executor(view, vec![made], &error).await,
        };
        let operation = OperationId::new();
        let mut write = self.parts.store.write(self.lease).await?;
        if let Some(approval) = approval {
            write
                .consume_approval(approval.id, &digest(&view.run, made, view.session.environment.as_ref()))
                .await?;
        }
        write.record_operation(operation, self.run, &made.id, executor.boot_id()).await?;
        write.set_first_boot(executor.boot_id()).await?;
        write.commit().await?;
        self.perform_effect(view, call, made, operation, &executor).await
    }

    /// Goes on with an operation that was stored before: the same executor answers for it by its id, any other never knew
    /// it, and then nobody knows whether it took place.
    async fn find_again(
        &self,
        view: &View,
        call: &Call,
        made: &ToolCall,
        operation: &Operation,
    ) -> Result<(), Cut> {
        let current = match &self.environment {
            Environment::Local(local) => local.current().await,
            Environment::None => None,
        };
        match current {
            Some(executor)
                if executor.boot_id() == operation.boot_id && operation.state == OperationState::Sent =>
            {
                self.perform_effect(view, call, made, operation.id, &executor).await
            }
            Some(_) | None => {
                let is_open = operation.state == OperationState::Sent;
                let settled = Settled {
                    made,
                    performed: Performed::lost(),
                    operation: is_open.then_some(operation.id),
                    reads: false,
                };
                self.store_results(view, vec![settled]).await
            }
        }
    }

    async fn perform_effect(
        &self,
        view: &View,
        call: &Call,
        made: &ToolCall,
        operation: OperationId,
        executor: &Executor,
    ) -> Result<(), Cut> {
        let (output, pieces) = mpsc::channel(64);
        let lease = self.wire_lease();
        let stop = self.cancel.child_token();
        let work = async {
            let scene =
                Scene { executor, lease: &lease, operation: Some(operation), output: &output, cancel: &stop };
            let performed = perform(call, &scene).await;
            drop(output);
            performed
        };
        let (run, id) = (self.run.to_string(), made.id.clone());
        let stored = async {
            let stored = store_events(
                &self.parts.store,
                self.lease,
                pieces,
                |printed: Printed| (printed.stream, printed.text),
                |stream, text| Event::ToolOutput {
                    run: run.clone(),
                    call: id.clone(),
                    stream: stream.to_owned(),
                    text,
                },
            )
            .await;
            if stored.is_err() {
                stop.cancel();
            }
            stored
        };
        let time_is_up = async {
            sleep_until(self.deadline(view)).await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        let (performed, stored) = tokio::select! {
            done = async { tokio::join!(work, stored) } => done,
            () = time_is_up => return Err(Cut::Again),
        };
        stored?;
        let reads = reads_workspace(call);
        self.store_results(view, vec![Settled { made, performed, operation: Some(operation), reads }]).await
    }

    /// Puts the question about one exact call, or goes on by its answer.
    async fn ask(&self, view: &View, call: &Call, made: &ToolCall, question: &Question) -> Result<(), Cut> {
        let digest = digest(&view.run, made, view.session.environment.as_ref());
        let approvals = self.parts.store.approvals(Some(self.session), None, LOOK_BACK).await?;
        let found = approvals.into_iter().find(|approval| {
            approval.run == self.run && approval.call == made.id && approval.digest == digest
        });
        let Some(approval) = found else {
            let expires_at = self.parts.store.now().saturating_add(self.parts.settings.approval_expiry);
            let mut write = self.parts.store.write(self.lease).await?;
            let new = NewApproval {
                run: self.run,
                call: made.id.clone(),
                tool: made.name.clone(),
                arguments: made.arguments.clone(),
                digest,
                question: question_json(question),
                expires_at: expires_at.unwrap_or(jiff::Timestamp::MAX),
            };
            write.create_approval(&new).await?;
            write.set_waiting(self.run, true).await?;
            write.commit().await?;
            return Ok(());
        };
        let tool = call.tool();
        match approval.state {
            ApprovalState::Pending => self.wait(view, approval.id).await,
            ApprovalState::Allowed => self.carry_out(view, call, made, Some(&approval)).await,
            ApprovalState::Denied => {
                let text = format!(
                    "The person said no to this {tool} call. It was not executed. Do not look for another way to do it; go on without it or say what you would need."
                );
                self.tell(view, made, text).await
            }
            ApprovalState::Expired => {
                let text = format!(
                    "Nobody answered the question about this {tool} call in time. It was not executed."
                );
                self.tell(view, made, text).await
            }
            // Used in the same transaction that stores the operation; without one nobody knows what became of it.
            ApprovalState::Consumed => self.tell(view, made, Performed::lost().text).await,
        }
    }

    /// Waits until the question is answered or too late. The run is marked as waiting meanwhile.
    async fn wait(&self, view: &View, approval: ApprovalId) -> Result<(), Cut> {
        let store = &self.parts.store;
        let mut changes = store.watch(self.session);
        if view.run.state != RunState::Waiting {
            let mut write = store.write(self.lease).await?;
            write.set_waiting(self.run, true).await?;
            write.commit().await?;
        }
        loop {
            let found = store.approval(approval).await?;
            if found.state != ApprovalState::Pending {
                store.expire_due_approvals().await?;
                let mut write = store.write(self.lease).await?;
                write.set_waiting(self.run, false).await?;
                write.commit().await?;
                return Ok(());
            }
            let left = found.expires_at.duration_since(store.now());
            let until = Instant::now() + std::time::Duration::try_from(left).unwrap_or_default();
            self.until_cut(view, async {
                tokio::select! {
                    () = changes.changed() => {}
                    () = sleep_until(until) => {}
                }
            })
            .await?;
            if store.session(self.session).await?.suspended {
                return Err(Cut::Suspended);
            }
        }
    }

    async fn executor(&self) -> Result<Executor, ResolveError> {
        match &self.environment {
            Environment::Local(local) => local.executor().await,
            // No tool of this profile needs one; a call that would is refused before.
            Environment::None => Err(ResolveError::NotReady { source: None }),
        }
    }

    /// There is no executor for these calls: told to the model when it may pass, the end of the run when it will not.
    async fn without_executor(
        &self,
        view: &View,
        calls: Vec<&ToolCall>,
        error: &ResolveError,
    ) -> Result<(), Cut> {
        if !error.is_retryable() {
            let end = RunState::Failed { code: error.code().to_owned(), message: error.to_string() };
            return self.end(&end, &error.to_string()).await;
        }
        let text = format!("{}: {error}. Nothing was executed.", error.code());
        let mut settled = Vec::with_capacity(calls.len());
        for made in calls {
            let performed = Performed { text: text.clone(), is_error: true, is_lost: false };
            settled.push(Settled { made, performed, operation: None, reads: false });
        }
        self.store_results(view, settled).await
    }

    /// Answers a call that is not carried out.
    async fn tell(&self, view: &View, made: &ToolCall, text: String) -> Result<(), Cut> {
        let performed = Performed { text, is_error: true, is_lost: false };
        self.store_results(view, vec![Settled { made, performed, operation: None, reads: false }]).await
    }

    /// Stores results, the end of their operations, and the taint they bring, all before anything else is decided.
    async fn store_results(&self, view: &View, settled: Vec<Settled<'_>>) -> Result<(), Cut> {
        let all_failed = settled.iter().all(|one| one.performed.is_error);
        let counts = view.run.counts;
        let counts = Counts {
            tool_calls: counts.tool_calls.saturating_add(u32::try_from(settled.len()).unwrap_or(u32::MAX)),
            failures: if all_failed { counts.failures.saturating_add(1) } else { 0 },
            ..counts
        };
        let mut write = self.parts.store.write(self.lease).await?;
        let is_untrusted = matches!(self.environment, Environment::Local(_)) && !view.session.trusted;
        if is_untrusted && settled.iter().any(|one| one.reads) {
            write.add_taint(UNTRUSTED_WORKSPACE).await?;
        }
        for one in &settled {
            self.append_result(&mut write, one.made, &one.performed.text, one.performed.is_error).await?;
            if let Some(operation) = one.operation {
                let state =
                    if one.performed.is_lost { OperationState::Lost } else { OperationState::Finished };
                write.finish_operation(operation, state).await?;
            }
        }
        write.set_counts(self.run, counts).await?;
        write.commit().await?;
        Ok(())
    }

    fn wire_lease(&self) -> v1::Lease {
        v1::Lease { session_id: self.session.to_string(), lease_epoch: self.lease.epoch() }
    }
}
