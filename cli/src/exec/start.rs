//! Starting a command once.

use mooring_proto::v1::{ErrorCode, RequestContext, StartRequest, StartResponse};

use super::line::Attempts;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::gateway::Gateway;

/// How often the epoch is read again because the executor was replaced since.
const MOST_EPOCHS: u32 = 5;

/// A command that was started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Command {
    /// Its id.
    pub(crate) id: String,
    /// Names the epoch that its executor has, when that is known.
    pub(crate) context: RequestContext,
}

/// What became of a start.
#[derive(Debug)]
pub(crate) enum Started {
    /// There is a command.
    Command(Command),
    /// Whether there was one is not known, and the executor that would know is gone.
    Lost,
}

/// Starts a command under `epoch`. After a call that broke, the same operation is asked for again; without an epoch it is not,
/// since another executor would not know it and start it anew.
///
/// # Errors
/// Why nothing was started; [`Error::Broken`] when that is not known.
pub(crate) async fn start(
    gateway: &Gateway,
    cluster: &Cluster,
    name: &str,
    mut request: StartRequest,
    epoch: Option<u64>,
) -> Result<Started, Error> {
    let mut epoch = epoch.unwrap_or(0);
    let mut attempts = Attempts::new();
    let mut is_doubtful = false;
    let mut n_epochs = 0;
    loop {
        let context = request.context.get_or_insert_default();
        context.epoch = epoch;
        let context = RequestContext { operation_id: String::new(), ..context.clone() };
        let error = match gateway.commands().start(request.clone()).await {
            Ok(answer) => {
                let StartResponse { command_id, removed_variables, .. } = answer.into_inner();
                tell_removed(&removed_variables);
                return Ok(Started::Command(Command { id: command_id, context }));
            }
            Err(status) => Error::from(status),
        };
        match error.code() {
            Some(ErrorCode::StaleEpoch) if !is_doubtful && n_epochs < MOST_EPOCHS => {
                n_epochs += 1;
                epoch = cluster.epoch(name).await.unwrap_or(0);
            }
            Some(ErrorCode::StaleEpoch | ErrorCode::OperationForgotten) if is_doubtful => {
                return Ok(Started::Lost);
            }
            Some(ErrorCode::NotReady) if !is_doubtful => return Err(error),
            Some(
                ErrorCode::Busy
                | ErrorCode::Draining
                | ErrorCode::RunnerUnavailable
                | ErrorCode::NotReady
                | ErrorCode::Unauthenticated,
            ) => {}
            Some(_) => return Err(error),
            None if epoch == 0 => return Err(error),
            None => is_doubtful = true,
        }
        attempts.pause(gateway, error).await?;
    }
}

fn tell_removed(names: &[String]) {
    if !names.is_empty() {
        crate::progress::tell(&format!("note: not passed on to the command: {}", names.join(", ")));
    }
}
