//! Standard input, to the command.

use std::io::Read as _;
use std::sync::Arc;

use mooring_proto::v1::{RequestContext, WriteInputRequest};
use tokio::sync::mpsc;

use super::line::{Attempts, Verdict, judge};
use super::start::Command;
use crate::gateway::{Gateway, effect};
use crate::progress::tell;

/// The most that is sent at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that were read and are not sent yet.
const CHUNKS_AHEAD: usize = 2;

/// Passes standard input on until it ends or the command takes no more.
pub(crate) async fn forward(gateway: Arc<Gateway>, command: Command) {
    let mut chunks = read();
    loop {
        let chunk = chunks.recv().await;
        let close = chunk.is_none();
        let request = WriteInputRequest {
            // One operation for one chunk, however often it is sent.
            context: Some(RequestContext { operation_id: effect().operation_id, ..command.context.clone() }),
            command_id: command.id.clone(),
            content: chunk.unwrap_or_default().into(),
            close,
        };
        if !send(&gateway, request).await || close {
            return;
        }
    }
}

/// Sends a chunk. `false` when the command takes no more: it closed its input or ended, which whoever follows it learns.
async fn send(gateway: &Gateway, request: WriteInputRequest) -> bool {
    let mut attempts = Attempts::new();
    loop {
        let error = match gateway.commands().write_input(request.clone()).await {
            Ok(_) => return true,
            Err(status) => status.into(),
        };
        let error = match judge(error) {
            Verdict::Again(error) => match attempts.pause(gateway, error).await {
                Ok(()) => continue,
                Err(error) => error,
            },
            Verdict::Lost => return false,
            Verdict::Refused(error) => error,
        };
        tell(&format!("error: standard input is not passed on any more: {}", error.line()));
        return false;
    }
}

/// A thread that reads. It is never waited for: only the end of its input wakes it, which may not come before our own end.
fn read() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(n_bytes) if sender.blocking_send(buffer[..n_bytes].to_vec()).is_ok() => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // An input that cannot be read has ended.
                Ok(_) | Err(_) => return,
            }
        }
    });
    receiver
}
