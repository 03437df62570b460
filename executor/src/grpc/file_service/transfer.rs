//! Content in frames, both ways.

use std::pin::Pin;

use futures::{Stream, stream};
use mooring_proto::MAX_FRAME_BYTES;
use mooring_proto::v1::{ReadHeader, ReadResponse, TransferEnd, WriteHeader, WriteRequest};
use tonic::{Status, Streaming};

use super::answer;
use crate::files::{Content, FileError, Frame, Reading, Streamed, Upload, Uploaded};

type Frames = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

/// What was read, as frames. Each further frame is read when the one before has been taken.
pub(super) fn frames(reading: Reading) -> Frames {
    let header = ReadHeader {
        version: Some(answer::version(reading.version)),
        size_bytes: reading.size,
        media_type: reading.media_type.unwrap_or_default().to_owned(),
        truncation: reading.truncation.as_ref().map(answer::truncation),
        binary: reading.binary,
    };
    match reading.content {
        Content::Whole { bytes, sha256 } => {
            let end = TransferEnd { total_bytes: bytes.len() as u64, sha256: sha256.to_vec().into() };
            let frame = ReadResponse { header: Some(header), content: bytes, end: Some(end) };
            Box::pin(stream::once(async move { Ok(frame) }))
        }
        Content::Streamed(streamed) => Box::pin(stream::try_unfold((streamed, Some(header)), next_frame)),
    }
}

type Unfolded = (Box<Streamed>, Option<ReadHeader>);

async fn next_frame((mut streamed, header): Unfolded) -> Result<Option<(ReadResponse, Unfolded)>, Status> {
    let Some(Frame { bytes, end }) = streamed.next_frame().await? else { return Ok(None) };
    let end = end.map(|(total_bytes, sha256)| TransferEnd { total_bytes, sha256: sha256.to_vec().into() });
    Ok(Some((ReadResponse { header, content: bytes, end }, (streamed, None))))
}

/// The first frame of a Write, and its header.
pub(super) async fn first_frame(
    frames: &mut Streaming<WriteRequest>,
) -> Result<(WriteHeader, WriteRequest), Status> {
    let mut first = frames.message().await?.ok_or_else(|| malformed("the stream of a Write is empty"))?;
    let header = first.header.take().ok_or_else(|| malformed("the first frame carries the header"))?;
    Ok((header, first))
}

/// Takes all frames up to the one with the end.
pub(super) async fn receive(
    mut upload: Upload,
    first: WriteRequest,
    frames: &mut Streaming<WriteRequest>,
) -> Result<Uploaded, Status> {
    let mut frame = first;
    loop {
        if frame.header.is_some() {
            return Err(malformed("only the first frame carries a header").into());
        }
        if frame.content.len() > MAX_FRAME_BYTES {
            let (size, limit) = (frame.content.len() as u64, MAX_FRAME_BYTES as u64);
            return Err(FileError::TooLarge { what: "a frame", size, limit }.into());
        }
        upload.push(frame.content).await?;
        if let Some(end) = frame.end {
            return Ok(upload.finish(end.total_bytes, &end.sha256)?);
        }
        frame = frames
            .message()
            .await?
            .ok_or_else(|| malformed("the stream ended before its last frame; nothing was written"))?;
    }
}

fn malformed(reason: &str) -> FileError {
    FileError::Invalid { reason: reason.to_owned() }
}
