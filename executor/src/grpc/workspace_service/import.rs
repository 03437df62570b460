//! An archive on its way in: frames are hashed as they come, unpacked beside, and the tree changes when all was checked.

use std::time::Duration;

use mooring_proto::v1::{ErrorCode, ForkBudget, ImportHeader, ImportRequest, ImportResponse, TransferEnd};
use mooring_proto::{MAX_FRAME_BYTES, refusal};
use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::{Status, Streaming};

use crate::environment::{Access, Environment};
use crate::files::{FileError, Import, ImportBudget, ImportError, Unpacked};
use crate::operation::{ArgumentsDigest, OperationId};
use crate::root::Fault;

/// Frames that wait to be unpacked, and how many are unpacked at once.
const WAITING_FRAMES: usize = 4;

const DEFAULT_BYTES: u64 = 10 * 1024 * 1024 * 1024;
const DEFAULT_ENTRIES: u64 = 1_000_000;
/// Also the most: no call is answered later.
const DEFAULT_MILLIS: u64 = 600_000;

/// Takes one archive.
pub(super) async fn import(
    environment: &Environment,
    mut frames: Streaming<ImportRequest>,
) -> Result<ImportResponse, Status> {
    let begun = Instant::now();
    let mut first = frames.message().await?.ok_or_else(|| malformed("the stream of an Import is empty"))?;
    let header = first.header.take().ok_or_else(|| malformed("the first frame carries the header"))?;
    let call = environment.enter(header.context.as_ref(), Access::Effect).await?;
    let path = call.workspace.root.parse(&header.path).map_err(FileError::from)?;
    let budget = budget(header.budget)?;
    let arriving = Arriving { frames, next: Some(first), deadline: begun + budget.time, budget };

    let context = header.context.as_ref().map_or("", |context| &context.operation_id);
    if OperationId::parse(context).is_some_and(|id| call.workspace.operations.has(&id)) {
        let end = arriving.pass_over().await?;
        // When its first try ended meanwhile with *try again*, so does this one.
        let again =
            async { Err(refusal(ErrorCode::Busy, "the operation was not done; repeat it whole", [])) };
        return call.once(arguments(&header, &end), again).await;
    }
    let files = call.workspace.files.clone();
    let (end, unpacked) = arriving.unpack(files.import(path, budget).await?).await?;
    let done = call.once(arguments(&header, &end), async move {
        let imported = files.bring_in(unpacked).await?;
        Ok(ImportResponse { files_written: imported.files, bytes_written: imported.bytes })
    });
    done.await
}

/// What an Import was asked to do. The content stands in it by its size and digest, which its end announces.
fn arguments(header: &ImportHeader, end: &TransferEnd) -> ArgumentsDigest {
    let budget = header.budget.unwrap_or_default();
    ArgumentsDigest::builder("Import")
        .bytes(header.path.as_bytes())
        .bytes(&budget.max_bytes.to_le_bytes())
        .bytes(&budget.max_files.to_le_bytes())
        .bytes(&budget.max_millis.to_le_bytes())
        .bytes(&end.total_bytes.to_le_bytes())
        .bytes(&end.sha256)
        .finish()
}

fn budget(budget: Option<ForkBudget>) -> Result<ImportBudget, FileError> {
    let ForkBudget { max_bytes, max_files, max_millis } = budget.unwrap_or_default();
    let millis = u64::try_from(max_millis).ok().filter(|millis| *millis <= DEFAULT_MILLIS);
    let Some(millis) = millis else {
        return Err(malformed("budget.max_millis is 0..=600000"));
    };
    let or = |asked: u64, default| if asked == 0 { default } else { asked };
    Ok(ImportBudget {
        bytes: or(max_bytes, DEFAULT_BYTES),
        entries: or(max_files, DEFAULT_ENTRIES),
        time: Duration::from_millis(or(millis, DEFAULT_MILLIS)),
    })
}

/// The frames of one Import.
struct Arriving {
    frames: Streaming<ImportRequest>,
    /// The frame that came with the header.
    next: Option<ImportRequest>,
    deadline: Instant,
    budget: ImportBudget,
}

impl Arriving {
    /// Unpacks what comes, while the next frame is awaited and hashed. After an error nothing is left.
    async fn unpack(mut self, import: Import) -> Result<(TransferEnd, Unpacked), Status> {
        let (sender, receiver) = mpsc::channel(WAITING_FRAMES);
        // Both come to their ends: that of one closes the channel for the other.
        let (received, unpacking) = tokio::join!(self.receive(sender), unpack(import, receiver));
        let import = unpacking?;
        match received {
            Ok(end) => Ok((end, import.finish().await?)),
            Err(error) => {
                import.abandon().await;
                Err(error)
            }
        }
    }

    /// Hands on the content up to the last frame, and checks it against what that announces.
    async fn receive(&mut self, sender: mpsc::Sender<Bytes>) -> Result<TransferEnd, Status> {
        let (mut hasher, mut total_bytes) = (Sha256::new(), 0_u64);
        let end = loop {
            // Closed when unpacking has failed, which is told by the other side.
            let frame = tokio::select! {
                biased;
                () = sender.closed() => return Err(FileError::Internal.into()),
                frame = self.next_frame() => frame?,
            };
            total_bytes += frame.content.len() as u64;
            hasher.update(&frame.content);
            if !frame.content.is_empty() && sender.send(frame.content).await.is_err() {
                return Err(FileError::Internal.into());
            }
            if let Some(end) = frame.end {
                break end;
            }
        };
        if end.total_bytes != total_bytes {
            return Err(FileError::Transfer { what: "size" }.into());
        }
        if end.sha256[..] != hasher.finalize()[..] {
            return Err(FileError::Transfer { what: "digest" }.into());
        }
        self.closed().await?;
        Ok(end)
    }

    /// Reads over content that is known.
    async fn pass_over(mut self) -> Result<TransferEnd, Status> {
        loop {
            if let Some(end) = self.next_frame().await?.end {
                self.closed().await?;
                return Ok(end);
            }
        }
    }

    /// The next frame, within its bounds and the time.
    async fn next_frame(&mut self) -> Result<ImportRequest, Status> {
        let frame = match self.next.take() {
            Some(first) => first,
            None => self
                .message()
                .await?
                .ok_or_else(|| malformed("the stream ended before its last frame; nothing was changed"))?,
        };
        if frame.header.is_some() {
            return Err(malformed("only the first frame carries a header").into());
        }
        if frame.content.len() > MAX_FRAME_BYTES {
            let (size, limit) = (frame.content.len() as u64, MAX_FRAME_BYTES as u64);
            return Err(FileError::TooLarge { what: "a frame", size, limit }.into());
        }
        Ok(frame)
    }

    /// Waits for the end of the stream.
    async fn closed(&mut self) -> Result<(), Status> {
        match self.message().await? {
            None => Ok(()),
            Some(_) => Err(malformed("a frame follows the last one; nothing was changed").into()),
        }
    }

    async fn message(&mut self) -> Result<Option<ImportRequest>, Status> {
        let limit = u64::try_from(self.budget.time.as_millis()).unwrap_or(u64::MAX);
        match tokio::time::timeout_at(self.deadline, self.frames.message()).await {
            Ok(message) => message,
            Err(_) => Err(ImportError::Budget { field: "max_millis", what: "milliseconds", limit }.into()),
        }
    }
}

async fn unpack(mut import: Import, mut receiver: mpsc::Receiver<Bytes>) -> Result<Import, ImportError> {
    let mut pieces = Vec::with_capacity(WAITING_FRAMES);
    while receiver.recv_many(&mut pieces, WAITING_FRAMES).await > 0 {
        import = import.push(std::mem::take(&mut pieces)).await?;
    }
    Ok(import)
}

fn malformed(reason: &str) -> FileError {
    FileError::Invalid { reason: reason.to_owned() }
}

impl From<ImportError> for Status {
    fn from(error: ImportError) -> Self {
        if let ImportError::File(FileError::System { fault: Fault::System(errno), .. }) = &error {
            tracing::warn!(errno = errno.raw_os_error(), "an Import failed");
        }
        refusal(error.code(), error.to_string(), error.fields())
    }
}
