//! A folder of this machine into the workspace, as a tar stream that is never held whole.
//!
//! `tree` says what is brought over, `archive` makes the stream of it.

mod archive;
mod tree;

use std::path::Path;

use indicatif::ProgressBar;
use mooring_proto::v1::{ImportHeader, ImportResponse};
use tokio::sync::mpsc;

use crate::args::Push;
use crate::error::Error;
use crate::gateway::{Gateway, effect};
use crate::output;
use crate::progress::{bar, bytes, counted, tell};
use crate::shown::shown;
use archive::{Frames, pack};
use tree::{Kind, Tree};

/// Frames that are ready and not sent yet.
const FRAMES_AHEAD: usize = 4;

/// Lists what would be brought over, a path a line, folders with a slash.
///
/// # Errors
/// [`Error::Local`] when a folder cannot be read, [`Error::Output`].
pub(crate) async fn preview(plan: &Push) -> Result<(), Error> {
    let tree = read(plan).await?;
    let mut text = String::new();
    for entry in &tree.entries {
        text.push_str(&shown(&entry.path.to_string_lossy()));
        text.push_str(if entry.kind == Kind::Directory { "/\n" } else { "\n" });
    }
    output::bytes(text.as_bytes())?;
    tell(&format!(
        "would push {}, {}",
        counted(tree.count_files(), "file", "files"),
        bytes(tree.count_bytes())
    ));
    Ok(())
}

/// Brings a folder into the workspace that `open` reaches. The folder is read before anything is reached.
///
/// # Errors
/// [`Error::Local`] when something cannot be read, and what the call is refused with.
pub(crate) async fn push(
    open: impl AsyncFnOnce() -> Result<Gateway, Error>,
    plan: &Push,
) -> Result<(), Error> {
    let tree = read(plan).await?;
    let gateway = open().await?;
    let progress = bar(Some(tree.count_bytes()));
    let header =
        ImportHeader { context: Some(effect()), path: crate::files::workspace_path(&plan.to)?, budget: None };
    let sent = send(&gateway, header, tree, progress.clone()).await;
    progress.finish_and_clear();
    let done = sent?;
    tell(&format!(
        "pushed {}, {}, to {}",
        counted(done.files_written, "file", "files"),
        bytes(done.bytes_written),
        plan.name
    ));
    Ok(())
}

async fn read(plan: &Push) -> Result<Tree, Error> {
    let (folder, all) = (plan.folder.clone(), plan.all);
    let tree = on_thread(move || Tree::read(&folder, all)).await?;
    for (path, why) in &tree.left_out {
        tell(&format!("left out: {} ({why})", path.display()));
    }
    if tree.has_history_elsewhere {
        tell(&format!(
            "note: .git of {} leads to another folder: its history is not pushed; push that checkout, or a clone",
            Path::new(&plan.folder).display()
        ));
    }
    Ok(tree)
}

async fn send(
    gateway: &Gateway,
    header: ImportHeader,
    tree: Tree,
    progress: ProgressBar,
) -> Result<ImportResponse, Error> {
    let (sender, mut frames) = mpsc::channel(FRAMES_AHEAD);
    let packing = tokio::spawn(on_thread(move || pack(&tree, Frames::new(header, sender), &progress)));
    let stream = futures::stream::poll_fn(move |ctx| frames.poll_recv(ctx));
    let answer = gateway.workspaces().import(stream).await;
    let packed = packing.await.map_err(|error| Error::local("pack", error.into()))?;
    match (answer, packed) {
        // A refusal ends the stream early, which packing then trips over: the refusal is the cause.
        (Err(status), Ok(()) | Err(archive::PackError::Unwanted)) => Err(status.into()),
        (_, Err(archive::PackError::Failed(error))) => Err(error),
        (Ok(_), Err(archive::PackError::Unwanted)) => Err(Error::Damaged("the folder")),
        (Ok(answer), Ok(())) => Ok(answer.into_inner()),
    }
}

/// Runs what blocks on a thread for it.
pub(crate) async fn on_thread<T: Send + 'static, E: From<Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::local("work on files", error.into()).into()),
    }
}
