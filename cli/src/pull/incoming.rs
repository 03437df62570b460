//! The stream of an Export, from the runtime to a thread that reads it.

use std::io::{self, Read};

use indicatif::ProgressBar;
use mooring_proto::v1::{ExportResponse, ForkReport};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::error::Error;

/// Bytes of one frame.
type Chunk = Vec<u8>;

/// Hands the content on until the end, and checks it against what the end says. `None` when nobody takes it any more.
///
/// # Errors
/// What broke the stream; [`Error::Damaged`] when it is not what was sent; [`Error::Interrupted`].
pub(crate) async fn receive(
    mut stream: Streaming<ExportResponse>,
    sender: mpsc::Sender<Chunk>,
    progress: &ProgressBar,
) -> Result<Option<ForkReport>, Error> {
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let (mut digest, mut n_bytes) = (Sha256::new(), 0_u64);
    loop {
        let message = tokio::select! {
            message = stream.message() => message?,
            _ = &mut interrupt => return Err(Error::Interrupted),
        };
        let Some(ExportResponse { content, end, report }) = message else {
            return Err(Error::Damaged("the archive"));
        };
        if !content.is_empty() {
            digest.update(&content);
            n_bytes += content.len() as u64;
            progress.inc(content.len() as u64);
            if sender.send(content.to_vec()).await.is_err() {
                return Ok(None);
            }
        }
        if let Some(end) = end {
            if end.total_bytes != n_bytes || end.sha256[..] != digest.finalize()[..] {
                return Err(Error::Damaged("the archive"));
            }
            return Ok(Some(report.unwrap_or_default()));
        }
    }
}

/// What arrives, to be read on a thread.
pub(crate) struct Incoming {
    receiver: mpsc::Receiver<Chunk>,
    chunk: Chunk,
    read: usize,
}

impl Incoming {
    /// What comes through this channel.
    pub(crate) fn new(receiver: mpsc::Receiver<Chunk>) -> Self {
        Self { receiver, chunk: Chunk::new(), read: 0 }
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.chunk.len() {
            let Some(chunk) = self.receiver.blocking_recv() else { return Ok(0) };
            (self.chunk, self.read) = (chunk, 0);
        }
        let n_bytes = buffer.len().min(self.chunk.len() - self.read);
        buffer[..n_bytes].copy_from_slice(&self.chunk[self.read..self.read + n_bytes]);
        self.read += n_bytes;
        Ok(n_bytes)
    }
}
