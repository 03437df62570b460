//! The workspace, or a folder of it, to this machine, as if whoever sent it were hostile.
//!
//! `incoming` carries the stream to a thread, `archive` reads it strictly, `unpack` writes it into a hidden folder, `place` gives
//! it its place.

mod archive;
mod incoming;
mod place;
mod unpack;

use mooring_proto::v1::{ExportRequest, ForkReport, SkipReason};

use crate::args::Pull;
use crate::error::Error;
use crate::files::workspace_path;
use crate::gateway::{Gateway, read};
use crate::progress::{bar, bytes, counted, tell};
use crate::push::on_thread;
use incoming::{Incoming, receive};
use place::Destination;
use unpack::{Unpacked, unpack};

/// Chunks that have arrived and are not unpacked yet.
const CHUNKS_AHEAD: usize = 4;

/// Brings a folder here.
///
/// # Errors
/// What the call is refused with; [`Error::Hostile`], [`Error::NoArchive`] and [`Error::Damaged`] for what no executor sends;
/// [`Error::Overwrites`] and [`Error::OtherKind`] for what is there already. Nothing is changed then.
pub(crate) async fn pull(gateway: &Gateway, plan: &Pull) -> Result<(), Error> {
    let request = ExportRequest { context: Some(read()), path: workspace_path(&plan.from)? };
    let mut call = gateway.workspaces();
    let stream = call.export(request).await?.into_inner();
    let folder = plan.folder.clone();
    let destination = on_thread(move || Destination::prepare(&folder)).await?;
    let (sender, receiver) = tokio::sync::mpsc::channel(CHUNKS_AHEAD);
    let (tree, with_git) = (destination.tree().to_owned(), plan.with_git);
    let unpacking = tokio::spawn(on_thread(move || unpack(Incoming::new(receiver), &tree, with_git)));
    let progress = bar(None);
    let received = receive(stream, sender, &progress).await;
    progress.finish_and_clear();
    let unpacked = unpacking.await.map_err(|error| Error::local("unpack", error.into()))?;
    // A stream that broke is why the archive ended early; an archive that was refused is why the stream was left.
    let (report, unpacked) = match (received, unpacked) {
        (Ok(Some(report)), Ok(unpacked)) => (report, unpacked),
        (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
        (Ok(None), Ok(_)) => return Err(Error::Damaged("the archive")),
    };
    let Unpacked { entries, n_files, n_bytes, n_git } = unpacked;
    let force = plan.force;
    on_thread(move || destination.place(&entries, force)).await?;
    tell_report(&report, n_git);
    let n_files = counted(n_files, "file", "files");
    tell(&format!("pulled {n_files}, {}, into {}", bytes(n_bytes), plan.folder.display()));
    Ok(())
}

fn tell_report(report: &ForkReport, n_git: u64) {
    for skipped in &report.skipped {
        let why = match skipped.reason() {
            SkipReason::LinkLeavesTree => "a link that leads out of the folder",
            SkipReason::SpecialFile => "neither a file, a folder nor a link",
            SkipReason::GitSanitised => "git would run it",
            SkipReason::Unreadable => "the executor cannot read it",
            SkipReason::Unspecified => "for a reason that was not told",
        };
        tell(&format!("left out: {} ({why})", skipped.path));
    }
    let n_more = report.skipped_total.saturating_sub(report.skipped.len() as u64);
    if n_more > 0 {
        tell(&format!("left out: {n_more} more"));
    }
    if n_git > 0 {
        let n_git = counted(n_git, "entry", "entries");
        tell(&format!("left out: .git ({n_git}; --with-git takes it, with the programs that it names)"));
    }
}
