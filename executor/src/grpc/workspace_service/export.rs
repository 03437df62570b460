//! An archive on its way out, frame by frame.

use futures::stream;
use mooring_proto::v1::{ExportRequest, ExportResponse, ForkReport, SkipReason, SkippedEntry, TransferEnd};
use tonic::Status;

use super::Frames;
use crate::environment::{Access, Environment};
use crate::files::{FileError, Pack, PackEnd, PackFrame, PackReport, Skipped};
use crate::path::escape;

/// Begins an archive. Each further frame is made when the one before has been taken.
pub(super) async fn export(
    environment: &Environment,
    request: ExportRequest,
) -> Result<Frames<ExportResponse>, Status> {
    let call = environment.enter(request.context.as_ref(), Access::Read).await?;
    let path = call.workspace.root.parse(&request.path).map_err(FileError::from)?;
    let pack = call.workspace.files.pack(path).await?;
    Ok(Box::pin(stream::try_unfold(pack, next_frame)))
}

async fn next_frame(mut pack: Pack) -> Result<Option<(ExportResponse, Pack)>, Status> {
    let Some(PackFrame { bytes, end }) = pack.next_frame().await? else { return Ok(None) };
    let mut frame = ExportResponse { content: bytes, end: None, report: None };
    if let Some(PackEnd { total_bytes, sha256, report }) = end {
        frame.end = Some(TransferEnd { total_bytes, sha256: sha256.to_vec().into() });
        frame.report = Some(to_wire(report));
    }
    Ok(Some((frame, pack)))
}

fn to_wire(report: PackReport) -> ForkReport {
    let skipped = report.skipped.into_iter().map(|(path, why)| SkippedEntry {
        path: escape(&path),
        reason: match why {
            Skipped::LinkLeaves => SkipReason::LinkLeavesTree.into(),
            Skipped::Special => SkipReason::SpecialFile.into(),
            Skipped::Unreadable => SkipReason::Unreadable.into(),
        },
    });
    ForkReport {
        files_copied: report.files,
        bytes_copied: report.bytes,
        skipped: skipped.collect(),
        skipped_total: report.skipped_total,
    }
}
