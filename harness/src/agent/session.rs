//! The owner task of one session: holds its lease and works on its runs, oldest first.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;

use super::runs::AgentParts;
use super::work::{Cut, Work};
use crate::session::{Run, RunId, RunState, SessionId};
use crate::store::{Changes, Lease, Store, StoreError};

/// How often a failing store is tried again before the session is left until it is woken.
const REPEATS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Works until the session has no open run, is suspended or is taken over by another.
pub(super) async fn work_on(parts: &Arc<AgentParts>, session: SessionId) {
    let mut failures = 0;
    loop {
        let error = match Box::pin(hold(parts, session)).await {
            Ok(()) => return,
            Err(error) => error,
        };
        match error {
            StoreError::NoSuchSession | StoreError::LeaseLost => {
                tracing::info!(%session, code = error.code(), "session is no longer ours");
                return;
            }
            StoreError::LeaseHeld { until } => {
                let left = until.duration_since(parts.store.now());
                sleep(Duration::try_from(left).unwrap_or_default().max(PAUSE)).await;
            }
            other @ (StoreError::NoSuchRun
            | StoreError::NoSuchApproval
            | StoreError::NoSuchOperation
            | StoreError::Suspended
            | StoreError::NoOpenRun
            | StoreError::TooManyRuns { .. }
            | StoreError::RunEnded
            | StoreError::NotPending { .. }
            | StoreError::NotAllowed { .. }
            | StoreError::OtherCall
            | StoreError::OperationExists
            | StoreError::Corrupt { .. }
            | StoreError::Database(_)
            | StoreError::Migrate(_)) => {
                failures += 1;
                tracing::error!(%session, error = &other as &dyn std::error::Error, failures, "work on a session failed");
                if failures > REPEATS {
                    return;
                }
                sleep(PAUSE * 2u32.pow(failures)).await;
            }
        }
    }
}

async fn hold(parts: &Arc<AgentParts>, session: SessionId) -> Result<(), StoreError> {
    let store = &parts.store;
    if store.next_run(session).await?.is_none() {
        return Ok(());
    }
    let lease = store.acquire_lease(session, &parts.settings.holder, parts.settings.lease).await?;
    let worked = tokio::select! {
        worked = runs(parts, &lease) => worked,
        error = renew(store, &lease, parts.settings.lease) => Err(error),
    };
    match store.release_lease(&lease).await {
        Ok(()) | Err(StoreError::LeaseLost) => worked,
        Err(error) => worked.and(Err(error)),
    }
}

async fn renew(store: &Store, lease: &Lease, time: Duration) -> StoreError {
    let mut tick = interval(time / 3);
    loop {
        tick.tick().await;
        if let Err(error) = store.renew_lease(lease, time).await {
            return error;
        }
    }
}

async fn runs(parts: &Arc<AgentParts>, lease: &Lease) -> Result<(), StoreError> {
    while let Some(run) = parts.store.next_run(lease.session()).await? {
        match Box::pin(one_run(parts, lease, &run)).await {
            Ok(()) => {}
            Err(Cut::Suspended) => return Ok(()),
            Err(Cut::Store(error)) => return Err(error),
            // Consumed by the steps of the run.
            Err(Cut::Again) => {}
        }
    }
    Ok(())
}

async fn one_run(parts: &Arc<AgentParts>, lease: &Lease, run: &Run) -> Result<(), Cut> {
    let session = parts.store.session(lease.session()).await?;
    if session.suspended {
        return Err(Cut::Suspended);
    }
    let environment = match parts.resolver.resolve(session.id, session.environment.as_ref()).await {
        Ok(environment) => environment,
        Err(error) => {
            tracing::warn!(session = %session.id, code = error.code(), "no environment");
            let end = RunState::Failed { code: error.code().to_owned(), message: error.to_string() };
            let mut write = parts.store.write(lease).await?;
            write.end_run(run.id, &end).await?;
            write.commit().await?;
            return Ok(());
        }
    };
    let changes = parts.store.watch(session.id);
    let cancel = CancellationToken::new();
    let work = Work { parts, lease, session: session.id, run: run.id, environment, cancel: cancel.clone() };
    tokio::select! {
        worked = work.steps() => worked,
        () = watch_for_interrupt(&parts.store, changes, (session.id, run.id), &cancel) => Ok(()),
    }
}

/// Cancels when the person interrupts the run or the session is gone; never ends by itself.
async fn watch_for_interrupt(
    store: &Store,
    mut changes: Changes,
    (session, run): (SessionId, RunId),
    cancel: &CancellationToken,
) {
    loop {
        match store.run(session, run).await {
            Ok(run) if !run.interrupt_requested => {}
            Ok(_) | Err(StoreError::NoSuchRun) => cancel.cancel(),
            // The work itself will meet it.
            Err(_) => {}
        }
        changes.changed().await;
    }
}
