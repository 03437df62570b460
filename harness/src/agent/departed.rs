//! What a deleted session left running: ended by the operations that it had stored.

use std::time::Duration;

use mooring_proto::v1;
use tokio::time::timeout;
use tonic::Status;

use super::runs::AgentParts;
use crate::environment::{Environment, Executor};
use crate::session::OperationId;
use crate::store::Departed;

/// For each answer of the executor; ending a tree takes it some seconds at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ends every command of the session that still runs. Other sessions of the same folder keep theirs.
pub(super) async fn end_commands(parts: &AgentParts, departed: &Departed) {
    if departed.operations.is_empty() {
        return;
    }
    let found = parts.resolver.resolve(departed.session, departed.environment.as_ref()).await;
    let Ok(Environment::Local(local)) = found else { return };
    // A dead executor has no commands.
    let Some(executor) = local.current().await else { return };
    let session = departed.session;
    match end_all(&executor, departed).await {
        Ok(0) => {}
        Ok(ended) => tracing::info!(%session, ended, "ended the commands of a deleted session"),
        Err(status) => {
            tracing::error!(%session, code = ?status.code(), "commands of a deleted session may still run");
        }
    }
}

async fn end_all(executor: &Executor, departed: &Departed) -> Result<usize, Status> {
    let lease = v1::Lease { session_id: departed.session.to_string(), lease_epoch: departed.lease_epoch };
    let request = v1::ListRequest { context: Some(executor.context(&lease, None)) };
    let listed = answer(executor.commands().list(request)).await?.commands;
    let is_left = |command: &v1::CommandState| {
        departed.operations.contains(&command.operation_id)
            && (command.end.is_none() || command.live_processes > 0)
    };
    let mut ended = 0;
    for command in listed.into_iter().filter(is_left) {
        let context = Some(executor.context(&lease, Some(OperationId::new())));
        let request = v1::CancelRequest { context, command_id: command.command_id };
        answer(executor.commands().cancel(request)).await?;
        ended += 1;
    }
    Ok(ended)
}

async fn answer<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    let answer = timeout(PATIENCE, call).await;
    answer
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))
        .map(tonic::Response::into_inner)
}
