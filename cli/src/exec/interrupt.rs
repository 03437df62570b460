//! Signals to us, for the command.

use std::sync::Arc;

use mooring_proto::v1::{CancelRequest, RequestContext};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::line::{Attempts, Verdict, judge};
use super::start::Command;
use crate::error::Error;
use crate::exit::{HANG_UP, INTERRUPT, QUIT, TERMINATE};
use crate::gateway::{Gateway, effect};
use crate::progress::tell;

/// Signals that ask us to end, from the moment this is made.
pub(crate) struct Signals {
    hang_up: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

impl Signals {
    /// Takes them.
    ///
    /// # Errors
    /// [`Error::Local`].
    pub(crate) fn listen() -> Result<Self, Error> {
        let take = |kind| signal(kind).map_err(|error| Error::local("take signals", error));
        Ok(Self {
            hang_up: take(SignalKind::hangup())?,
            interrupt: take(SignalKind::interrupt())?,
            quit: take(SignalKind::quit())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// The number of the next one.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.hang_up.recv() => HANG_UP,
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.quit.recv() => QUIT,
            _ = self.terminate.recv() => TERMINATE,
        }
    }
}

/// Cancels the command for the first signal, as soon as there is one to cancel, and returns with the second signal.
pub(crate) async fn obey(
    mut signals: Signals,
    gateway: Arc<Gateway>,
    mut command: watch::Receiver<Option<Command>>,
    cancelled: watch::Sender<Option<u8>>,
) -> u8 {
    let first = signals.next().await;
    cancelled.send_replace(Some(first));
    tell("cancelling the command; once more leaves it");
    let cancelling = async {
        // A sender that is gone has ended everything.
        if let Ok(command) = command.wait_for(Option::is_some).await.map(|command| command.clone())
            && let Some(command) = command
        {
            cancel(&gateway, &command).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        never = cancelling => never,
        second = signals.next() => second,
    }
}

/// Cancels a command. Its end is for whoever follows it.
pub(crate) async fn cancel(gateway: &Gateway, command: &Command) {
    let context = RequestContext { operation_id: effect().operation_id, ..command.context.clone() };
    let request = CancelRequest { context: Some(context), command_id: command.id.clone() };
    let mut attempts = Attempts::new();
    loop {
        let error = match gateway.commands().cancel(request.clone()).await {
            Ok(_) => return,
            Err(status) => status.into(),
        };
        match judge(error) {
            Verdict::Again(error) => {
                if let Err(error) = attempts.pause(gateway, error).await {
                    return tell(&format!("error: the command could not be cancelled: {}", error.line()));
                }
            }
            // It has ended with its executor.
            Verdict::Lost => return,
            Verdict::Refused(error) => {
                return tell(&format!("error: the command could not be cancelled: {}", error.line()));
            }
        }
    }
}
