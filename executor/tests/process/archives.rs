//! Import and Export over the wire: frames, ends, operations, and what is left when a stream breaks.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use mooring_proto::v1::{
    ErrorCode, ExportRequest, ExportResponse, ForkBudget, ImportHeader, ImportRequest, ImportResponse,
    RequestContext, SkipReason, TransferEnd,
};
use mooring_proto::{MAX_FRAME_BYTES, detail_of};
use sha2::{Digest as _, Sha256};
use tokio_stream::StreamExt as _;
use tonic::Status;

use crate::fixture::{Executor, Folder, await_condition, code_of, text};

/// The frames of one Import; `end` as it should be.
fn frames(context: Option<RequestContext>, path: &str, archive: &[u8], n_bytes: usize) -> Vec<ImportRequest> {
    let mut frames: Vec<_> = archive
        .chunks(n_bytes)
        .map(|piece| ImportRequest { header: None, content: piece.to_vec().into(), end: None })
        .collect();
    if frames.is_empty() {
        frames.push(ImportRequest::default());
    }
    frames[0].header = Some(ImportHeader { context, path: path.to_owned(), budget: None });
    let sha256 = Sha256::digest(archive).to_vec().into();
    let last = frames.len() - 1;
    frames[last].end = Some(TransferEnd { total_bytes: archive.len() as u64, sha256 });
    frames
}

async fn send(executor: &Executor, frames: Vec<ImportRequest>) -> Result<ImportResponse, Status> {
    Ok(executor.workspaces().import(tokio_stream::iter(frames)).await?.into_inner())
}

async fn import(executor: &Executor, path: &str, archive: &[u8]) -> Result<ImportResponse, Status> {
    send(executor, frames(executor.act(), path, archive, MAX_FRAME_BYTES)).await
}

/// A whole archive and its last frame, with everything that the frames promise checked.
async fn export(executor: &Executor, path: &str) -> Result<(Vec<u8>, ExportResponse), Status> {
    let request = ExportRequest { context: executor.look(), path: path.to_owned() };
    let mut stream = executor.workspaces().export(request).await?.into_inner();
    let (mut archive, mut last) = (Vec::new(), None);
    while let Some(frame) = stream.message().await? {
        assert!(frame.content.len() <= MAX_FRAME_BYTES && last.is_none());
        archive.extend_from_slice(&frame.content);
        assert_eq!(frame.end.is_some(), frame.report.is_some());
        last = frame.end.is_some().then_some(frame);
    }
    let last = last.expect("a last frame");
    let end = last.end.clone().expect("an end");
    assert_eq!(
        (end.total_bytes, end.sha256.to_vec()),
        (archive.len() as u64, Sha256::digest(&archive).to_vec())
    );
    Ok((archive, last))
}

/// What the system's tar makes of a script's folder.
fn tar_of(script: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("set -e; mkdir t; cd t; {script}; tar cf - .");
    let mut shell = Command::new("sh");
    let made =
        shell.args(["-c", &script]).current_dir(folder.path()).stderr(Stdio::inherit()).output().expect("sh");
    assert!(made.status.success());
    made.stdout
}

fn in_stage(executor: &Executor) -> usize {
    fs::read_dir(executor.folder.state.join("stage")).expect("the stage").count()
}

#[tokio::test]
async fn a_tree_travels_from_one_executor_to_another() {
    let (one, other) = (Executor::start().await, Executor::start().await);
    let script = "mkdir -p a/b none/at/all; printf '#!/bin/sh\\necho ran\\n' > a/run; chmod 755 a/run; mkfifo pipe; \
                  ln -s ../run a/b/run; head -c 3000000 /dev/zero > large; touch -d 2001-02-03 large";
    one.run(text(script)).await;
    let (archive, last) = export(&one, "").await.expect("exported");
    let report = last.report.expect("a report");
    let skipped: Vec<_> = report.skipped.iter().map(|entry| (entry.path.as_str(), entry.reason())).collect();
    assert_eq!(skipped, [("pipe", SkipReason::SpecialFile)]);
    assert_eq!((report.files_copied, report.bytes_copied, report.skipped_total), (2, 3_000_019, 1));
    let imported = import(&other, "sub/folder", &archive).await.expect("imported");
    assert_eq!((imported.files_written, imported.bytes_written), (2, 3_000_019));
    let ran = other
        .run(text("cd sub/folder && a/b/run && stat -c %Y large && ls none/at/all && find . | wc -l"))
        .await;
    let mtime = fs::metadata(one.path("large")).expect("large").mtime();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("ran\n{mtime}\n9\n"));
    // What travelled once travels again.
    let (again, _) = export(&other, "sub/folder").await.expect("exported");
    assert_eq!(again.len(), archive.len());
}

#[tokio::test]
async fn frames_of_any_size_make_the_same_tree() {
    let executor = Executor::start().await;
    let archive = tar_of("mkdir d; echo f > d/f; head -c 2000000 /dev/zero > large");
    for n_bytes in [700, 4096, MAX_FRAME_BYTES] {
        let path = format!("by-{n_bytes}");
        let sent = send(&executor, frames(executor.act(), &path, &archive, n_bytes)).await.expect("imported");
        assert_eq!((sent.files_written, sent.bytes_written), (2, 2_000_002));
        assert_eq!(fs::read(executor.path(&path).join("d/f")).expect("f"), b"f\n");
    }
    let (empty, _) = export(&executor, "by-700/d").await.expect("exported");
    assert_eq!(empty.len() % 512, 0);
    assert_eq!(in_stage(&executor), 0, "nothing was replaced");
}

#[tokio::test]
async fn an_import_happens_once_however_often_it_is_sent() {
    let executor = Executor::start().await;
    let archive = tar_of("echo one > f");
    let context = Some(executor.context_of("once"));
    let first = send(&executor, frames(context.clone(), "", &archive, 512)).await.expect("imported");
    fs::write(executor.path("f"), "changed").expect("changed");
    let again = send(&executor, frames(context.clone(), "", &archive, 512)).await.expect("the first result");
    assert_eq!(first, again);
    let mut without_content = frames(context.clone(), "", &archive, archive.len());
    without_content[0].content.clear();
    assert_eq!(send(&executor, without_content).await.expect("the first result"), first);
    assert_eq!(fs::read(executor.path("f")).expect("f"), b"changed");
    for (path, archive) in [("elsewhere", archive), ("", tar_of("echo two > f"))] {
        let refused = send(&executor, frames(context.clone(), path, &archive, 512)).await.expect_err("other");
        assert_eq!(code_of(&refused), ErrorCode::OperationConflict);
    }
    assert!(!executor.path("elsewhere").exists());
    assert_eq!(in_stage(&executor), 0);
}

#[tokio::test]
async fn a_broken_stream_changes_nothing() {
    let executor = Executor::start().await;
    let archive = tar_of("echo f > f; head -c 2000000 /dev/zero > g");
    let good = || frames(executor.act(), "new", &archive, MAX_FRAME_BYTES);
    let last = good().len() - 1;
    let change = |change: fn(&mut Vec<ImportRequest>, usize)| {
        let mut frames = good();
        change(&mut frames, last);
        frames
    };
    for broken in [
        change(|frames, last| frames[last].end.as_mut().expect("an end").total_bytes += 1),
        change(|frames, last| frames[last].end.as_mut().expect("an end").sha256 = vec![0; 32].into()),
        change(|frames, last| frames[last].end.as_mut().expect("an end").sha256.clear()),
        change(|frames, _| drop(frames.pop())),
        change(|frames, last| frames[last].end = None),
        change(|frames, _| frames[0].header = None),
        change(|frames, _| frames[1].header = frames[0].header.clone()),
        change(|frames, _| frames.push(ImportRequest::default())),
        change(|frames, last| frames.push(frames[last].clone())),
        change(|frames, _| frames[0].header.as_mut().expect("a header").path = "a\0b".to_owned()),
        change(|frames, _| {
            let budget = ForkBudget { max_millis: 600_001, ..ForkBudget::default() };
            frames[0].header.as_mut().expect("a header").budget = Some(budget);
        }),
        frames(executor.act(), "new", &archive[..1024], 512),
        Vec::new(),
    ] {
        let refused = send(&executor, broken).await.expect_err("broken");
        assert_eq!(code_of(&refused), ErrorCode::InvalidArgument, "{refused:?}");
        assert_eq!(in_stage(&executor), 0, "{refused:?}");
    }
    let mut too_long = good();
    too_long[0].content = vec![0; MAX_FRAME_BYTES + 1].into();
    assert_eq!(code_of(&send(&executor, too_long).await.expect_err("too long")), ErrorCode::TooLarge);
    assert!(!executor.path("new").exists());
    send(&executor, good()).await.expect("a sound one");
}

#[tokio::test]
async fn a_refusal_names_the_entry_and_comes_before_the_end() {
    let executor = Executor::start().await;
    let archive = tar_of("echo x > good; ln -s /etc/passwd 'bad\u{1b}[2K'");
    let mut frames = frames(executor.act(), "", &archive, archive.len());
    frames[0].end = None;
    // A caller that goes on for ever hears of it all the same.
    let endless = tokio_stream::iter(frames).chain(tokio_stream::pending());
    let refused = executor.workspaces().import(endless).await.expect_err("a link that leaves");
    let detail = detail_of(&refused).expect("a detail");
    assert_eq!(detail.code(), ErrorCode::PathEscapes);
    assert_eq!(detail.fields["entry"], "bad\\u{1b}[2K");
    assert!(!refused.message().contains('\u{1b}'));
    assert!(!executor.path("good").exists());
    assert_eq!(in_stage(&executor), 0);
}

#[tokio::test]
async fn a_caller_that_goes_away_or_takes_too_long_leaves_nothing() {
    let executor = Executor::start().await;
    let archive = tar_of("head -c 2000000 /dev/zero > g");
    let mut begun = frames(executor.act(), "", &archive, 4096);
    begun.truncate(100);
    let mut client = executor.workspaces();
    let endless = tokio_stream::iter(begun.clone()).chain(tokio_stream::pending());
    let calling = tokio::spawn(async move { client.import(endless).await });
    await_condition("something is staged", || in_stage(&executor) > 0).await;
    calling.abort();
    await_condition("the stage is empty", || in_stage(&executor) == 0).await;

    let budget = ForkBudget { max_millis: 50, ..ForkBudget::default() };
    begun[0].header.as_mut().expect("a header").context = executor.act();
    begun[0].header.as_mut().expect("a header").budget = Some(budget);
    let endless = tokio_stream::iter(begun).chain(tokio_stream::pending());
    let refused = executor.workspaces().import(endless).await.expect_err("too slow");
    let detail = detail_of(&refused).expect("a detail");
    assert_eq!((detail.code(), detail.fields["budget"].as_str()), (ErrorCode::TooLarge, "max_millis"));
    assert_eq!(in_stage(&executor), 0);
    assert!(!executor.path("g").exists());
}

#[tokio::test]
async fn a_killed_executor_leaves_whole_files_and_an_empty_stage() {
    let folder = Folder::new();
    let archive = tar_of("for n in $(seq 300); do mkdir d$n; head -c 3000 /dev/zero > d$n/f; done");
    for n_staged in [1, 100, 290] {
        let executor = Executor::start_bound(folder.clone(), folder.bind_request()).await;
        assert_eq!(in_stage(&executor), 0, "emptied at start");
        let mut client = executor.workspaces();
        let frames = frames(executor.act(), "", &archive, 4096);
        let calling = tokio::spawn(async move { client.import(tokio_stream::iter(frames)).await });
        let stage = folder.state.join("stage");
        await_condition("so many are staged, or all is done", || {
            let trees = fs::read_dir(&stage).into_iter().flatten().flatten();
            let staged = trees.filter_map(|tree| fs::read_dir(tree.path()).ok()).map(Iterator::count).max();
            staged.is_some_and(|staged| staged >= n_staged) || calling.is_finished()
        })
        .await;
        drop(executor);
        drop(calling.await.expect("the client lives"));
        for entry in fs::read_dir(&folder.tree).expect("the tree").flatten() {
            let size = fs::metadata(entry.path().join("f")).expect("a whole directory").len();
            assert_eq!(size, 3000);
        }
    }
    let executor = Executor::start_bound(folder.clone(), folder.bind_request()).await;
    import(&executor, "", &archive).await.expect("pushed again");
    assert_eq!(fs::read_dir(&folder.tree).expect("the tree").count(), 300);
}

#[tokio::test]
async fn a_reader_that_stops_costs_one_frame() {
    let executor = Executor::start().await;
    executor.run(text("truncate -s 4G sparse")).await;
    let request = ExportRequest { context: executor.look(), path: String::new() };
    let mut stream = executor.workspaces().export(request).await.expect("begun").into_inner();
    stream.message().await.expect("a frame").expect("a frame");
    let before = executor.peak_kib();
    // Others are served meanwhile, for as long as it takes to notice that nobody reads on.
    let until = tokio::time::Instant::now() + Duration::from_millis(300);
    while tokio::time::Instant::now() < until {
        executor.run(text("true")).await;
    }
    let grown = executor.peak_kib() - before;
    assert!(grown < 16 * 1024, "{grown} KiB");
    drop(stream);
    executor.run(text("true")).await;
}
