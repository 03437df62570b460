//! Content of files, in both directions, in frames.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use mooring_proto::MAX_FRAME_BYTES;
use mooring_proto::v1::read_request::Range;
use mooring_proto::v1::{ByteRange, ReadRequest, TransferEnd, WriteHeader, WriteRequest};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tonic::Status;

use crate::error::Error;
use crate::gateway::{Gateway, effect, read};
use crate::output;

/// Frames that are ready and not sent yet.
const FRAMES_AHEAD: usize = 2;

/// Writes a file, or a range of its bytes, to standard output.
pub(super) async fn read_file(gateway: &Gateway, path: &str, offset: u64, limit: u64) -> Result<(), Error> {
    let range = Some(Range::Bytes(ByteRange { offset, limit }));
    let request = ReadRequest { context: Some(read()), path: path.to_owned(), range };
    let answer = gateway.call(async || gateway.files().read(request.clone()).await).await?;
    let mut frames = answer.into_inner();
    let (mut digest, mut n_bytes) = (Sha256::new(), 0_u64);
    while let Some(frame) = frames.message().await? {
        digest.update(&frame.content);
        n_bytes += frame.content.len() as u64;
        tokio::task::block_in_place(|| output::bytes(&frame.content))?;
        if let Some(end) = frame.end {
            if end.total_bytes == n_bytes && end.sha256[..] == digest.finalize()[..] {
                return Ok(());
            }
            return Err(Error::Damaged("the file"));
        }
    }
    Err(Error::Damaged("the file"))
}

/// Writes standard input, or a local file, to a file. Not repeated: what was read from standard input is gone.
pub(super) async fn write_file(gateway: &Gateway, path: &str, from: Option<&Path>) -> Result<(), Error> {
    let source: Box<dyn Read + Send> = match from {
        None => Box::new(std::io::stdin()),
        Some(from) => {
            let file = File::open(from);
            Box::new(file.map_err(|error| Error::local(format!("read {}", from.display()), error))?)
        }
    };
    let (sender, mut frames) = mpsc::channel(FRAMES_AHEAD);
    let header = WriteHeader { context: Some(effect()), path: path.to_owned() };
    let (failed, mut failure) = tokio::sync::oneshot::channel();
    // Never waited for: only the end of standard input wakes it, which a refusal need not wait for.
    std::thread::spawn(move || {
        if let Err(error) = feed(source, header, &sender) {
            // Told by the call when nobody listens any more.
            let _ = failed.send(error);
        }
    });
    let stream = futures::stream::poll_fn(move |ctx| frames.poll_recv(ctx));
    let answer: Result<_, Status> = gateway.files().write(stream).await;
    match (answer, failure.try_recv()) {
        // A stream without an end is refused; why it has none is the cause.
        (_, Ok(error)) => Err(Error::local("read what is to be written", error)),
        (Err(status), Err(_)) => Err(status.into()),
        (Ok(_), Err(_)) => Ok(()),
    }
}

/// Sends frames until the source ends or nobody takes them any more.
fn feed(
    mut source: impl Read,
    header: WriteHeader,
    sender: &mpsc::Sender<WriteRequest>,
) -> std::io::Result<()> {
    let (mut digest, mut total_bytes) = (Sha256::new(), 0_u64);
    let mut header = Some(header);
    loop {
        let mut content = Vec::new();
        (&mut source).take(MAX_FRAME_BYTES as u64).read_to_end(&mut content)?;
        digest.update(&content);
        total_bytes += content.len() as u64;
        let is_last = content.len() < MAX_FRAME_BYTES;
        let end = is_last.then(|| TransferEnd {
            total_bytes,
            sha256: std::mem::take(&mut digest).finalize().to_vec().into(),
        });
        let frame = WriteRequest { header: header.take(), content: content.into(), end };
        if sender.blocking_send(frame).is_err() || is_last {
            return Ok(());
        }
    }
}
