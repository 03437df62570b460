//! Files over the wire: frames, operations, codes, and what is left after a SIGKILL.

use std::fs;

use mooring_proto::v1::{
    EditRequest, ErrorCode, GrepRequest, ListDirectoryRequest, ReadRequest, ReadResponse, RequestContext,
    TransferEnd, WriteHeader, WriteRequest, WriteResponse, read_request,
};
use mooring_proto::{MAX_FRAME_BYTES, detail_of, v1};
use sha2::{Digest as _, Sha256};
use tonic::Status;

use crate::fixture::{Executor, Folder, await_condition, code_of, person, text};

/// The frames of one Write; `end` as it should be.
fn frames(context: Option<RequestContext>, path: &str, content: &[u8]) -> Vec<WriteRequest> {
    let mut frames: Vec<_> = content
        .chunks(MAX_FRAME_BYTES)
        .map(|piece| WriteRequest { header: None, content: piece.to_vec().into(), end: None })
        .collect();
    if frames.is_empty() {
        frames.push(WriteRequest::default());
    }
    frames[0].header = Some(WriteHeader { context, path: path.to_owned() });
    let sha256 = Sha256::digest(content).to_vec().into();
    let last = frames.len() - 1;
    frames[last].end = Some(TransferEnd { total_bytes: content.len() as u64, sha256 });
    frames
}

async fn send(executor: &Executor, frames: Vec<WriteRequest>) -> Result<WriteResponse, Status> {
    Ok(executor.files().write(tokio_stream::iter(frames)).await?.into_inner())
}

async fn write(executor: &Executor, path: &str, content: &[u8]) -> Result<WriteResponse, Status> {
    send(executor, frames(executor.act(), path, content)).await
}

async fn read_frames(
    executor: &Executor,
    path: &str,
    range: Option<read_request::Range>,
) -> Result<Vec<ReadResponse>, Status> {
    let request = ReadRequest { context: executor.look(), path: path.to_owned(), range };
    let mut stream = executor.files().read(request).await?.into_inner();
    let mut frames = Vec::new();
    while let Some(frame) = stream.message().await? {
        frames.push(frame);
    }
    Ok(frames)
}

/// A whole file, with everything that the frames promise checked.
async fn read(executor: &Executor, path: &str) -> Result<Vec<u8>, Status> {
    let whole = read_request::Range::Bytes(v1::ByteRange { offset: 0, limit: 0 });
    let frames = read_frames(executor, path, Some(whole)).await?;
    let content: Vec<u8> = frames.iter().flat_map(|frame| frame.content.to_vec()).collect();
    assert!(frames.iter().all(|frame| frame.content.len() <= MAX_FRAME_BYTES));
    assert!(frames.iter().enumerate().all(|(n, frame)| frame.header.is_some() == (n == 0)));
    assert!(frames.iter().rev().enumerate().all(|(n, frame)| frame.end.is_some() == (n == 0)));
    let end = frames.last().and_then(|frame| frame.end.clone()).expect("an end");
    assert_eq!(
        (end.total_bytes, end.sha256.to_vec()),
        (content.len() as u64, Sha256::digest(&content).to_vec())
    );
    Ok(content)
}

fn edit(context: Option<RequestContext>, path: &str, old: &'static str, new: &'static str) -> EditRequest {
    let (old, new) = (old.as_bytes().into(), new.as_bytes().into());
    EditRequest { context, path: path.to_owned(), old, new, replace_all: false }
}

#[tokio::test]
async fn content_of_every_size_arrives_byte_for_byte() {
    let executor = Executor::start().await;
    for size in [0, 1, MAX_FRAME_BYTES, 4_194_299, 4_194_309] {
        let content: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).expect("below 251")).collect();
        let written = write(&executor, "dir/f", &content).await.expect("written");
        assert_eq!((written.size_bytes, written.created), (size as u64, size == 0));
        assert!(read(&executor, "dir/f").await.expect("read") == content, "{size}");
    }
    let absolute = executor.path("dir/f");
    read(&executor, absolute.to_str().expect("UTF-8")).await.expect("the root as commands see it");
}

#[tokio::test]
async fn a_write_happens_once_however_often_it_is_sent() {
    let executor = Executor::start().await;
    let context = Some(executor.context_of("once"));
    let first = send(&executor, frames(context.clone(), "f", b"one")).await.expect("written");
    fs::write(executor.path("f"), "changed").expect("changed");
    let again = send(&executor, frames(context.clone(), "f", b"one")).await.expect("the first result");
    assert_eq!(first, again);
    assert_eq!(fs::read(executor.path("f")).expect("f"), b"changed");
    let refused = send(&executor, frames(context, "f", b"two")).await.expect_err("other content");
    assert_eq!(code_of(&refused), ErrorCode::OperationConflict);
}

#[tokio::test]
async fn a_broken_transfer_writes_nothing() {
    let executor = Executor::start().await;
    let good = || frames(executor.act(), "f", &vec![b'x'; 3 << 20]);
    let mut wrong_size = good();
    wrong_size[2].end.as_mut().expect("an end").total_bytes += 1;
    let mut wrong_digest = good();
    wrong_digest[2].end.as_mut().expect("an end").sha256 = vec![0; 32].into();
    let mut cut_off = good();
    cut_off.pop();
    let mut no_header = good();
    no_header[0].header = None;
    let mut two_headers = good();
    two_headers[1].header = two_headers[0].header.clone();
    for broken in [wrong_size, wrong_digest, cut_off, no_header, two_headers, Vec::new()] {
        let refused = send(&executor, broken).await.expect_err("broken");
        assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
    }
    let mut too_long = frames(executor.act(), "f", b"");
    too_long[0].content = vec![0; MAX_FRAME_BYTES + 1].into();
    assert_eq!(code_of(&send(&executor, too_long).await.expect_err("too long")), ErrorCode::TooLarge);
    assert!(!executor.path("f").exists());
    assert_eq!(fs::read_dir(executor.folder.state.join("stage")).expect("the stage").count(), 0);
}

#[tokio::test]
async fn what_a_command_or_a_person_does_never_licenses_the_agent() {
    let executor = Executor::start().await;
    executor.run(text("printf 'a a' > f")).await;
    let refused = write(&executor, "f", b"x").await.expect_err("unread");
    assert_eq!(code_of(&refused), ErrorCode::Unread);
    assert!(refused.message().contains("no data was lost"), "{}", refused.message());
    let by_ann = RequestContext { actor: Some(person("ann")), ..executor.context_of("") };
    let request = ReadRequest { context: Some(by_ann), path: "f".to_owned(), range: None };
    executor.files().read(request).await.expect("a person reads");
    assert_eq!(code_of(&write(&executor, "f", b"x").await.expect_err("unread")), ErrorCode::Unread);

    read(&executor, "f").await.expect("read");
    let refused = executor.files().edit(edit(executor.act(), "f", "a", "b")).await.expect_err("two matches");
    assert_eq!(code_of(&refused), ErrorCode::AmbiguousMatch);
    assert_eq!(detail_of(&refused).expect("a detail").fields["match_count"], "2");
    executor.files().edit(edit(executor.act(), "f", "a a", "b")).await.expect("edited");
    executor.run(text("chmod 755 f; echo c >> f")).await;
    assert_eq!(code_of(&write(&executor, "f", b"x").await.expect_err("stale")), ErrorCode::StaleVersion);
}

#[tokio::test]
async fn no_refusal_names_a_host_path_and_bounds_are_said() {
    let executor = Executor::start().await;
    fs::create_dir(executor.path("dir")).expect("a folder");
    std::os::unix::fs::symlink("/etc/passwd", executor.path("out")).expect("a link");
    for (path, code) in [
        ("../state/environment", ErrorCode::PathEscapes),
        ("out", ErrorCode::PathEscapes),
        ("absent", ErrorCode::NotFound),
        ("dir", ErrorCode::IsDirectory),
        ("a\0b", ErrorCode::InvalidArgument),
    ] {
        let refused = read(&executor, path).await.expect_err(path);
        assert_eq!(code_of(&refused), code, "{path}");
        let host = executor.folder.tree.to_str().expect("UTF-8");
        assert!(!refused.message().contains(host), "{}", refused.message());
    }
    let lines = v1::LineRange { offset: 1, limit: 100_001, max_bytes: 0 };
    let refused =
        read_frames(&executor, "f", Some(read_request::Range::Lines(lines))).await.expect_err("bound");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
    let page = ListDirectoryRequest { context: executor.look(), page_size: 1001, ..Default::default() };
    let refused = executor.files().list_directory(page).await.expect_err("bound");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
    let search = GrepRequest { context: executor.look(), pattern: "(".to_owned(), ..Default::default() };
    let refused = executor.files().grep(search).await.expect_err("no pattern");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
}

#[tokio::test]
async fn a_fifo_delays_nobody() {
    let executor = Executor::start().await;
    executor.run(text("mkfifo pipe; echo x > f")).await;
    let calls = (0..20).map(|n| {
        let path = if n % 2 == 0 { "pipe" } else { "f" };
        let executor = &executor;
        async move { (path, read(executor, path).await) }
    });
    let begun = std::time::Instant::now();
    for (path, res) in futures::future::join_all(calls).await {
        match path {
            "pipe" => assert_eq!(code_of(&res.expect_err("a FIFO")), ErrorCode::NotRegularFile),
            _ => assert_eq!(res.expect("a file"), b"x\n"),
        }
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(1) * 5, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_killed_write_leaves_old_bytes_or_new_ones_and_nothing_else() {
    let folder = Folder::new();
    let (old, new) = (vec![b'o'; 3 << 20], vec![b'n'; 6 << 20]);
    let stage = folder.state.join("stage");
    for megabytes in [0, 1, 3, 5, 6] {
        fs::write(folder.tree.join("f"), &old).expect("the old bytes");
        let executor = Executor::start_bound(folder.clone(), folder.bind_request()).await;
        assert_eq!(fs::read_dir(&stage).expect("the stage").count(), 0, "emptied at start");
        read(&executor, "f").await.expect("read");
        let writing = {
            let mut files = executor.files();
            let frames = frames(executor.act(), "f", &new);
            tokio::spawn(async move { files.write(tokio_stream::iter(frames)).await })
        };
        await_condition("so much is staged, or all is done", || {
            let staged = fs::read_dir(&stage).into_iter().flatten().flatten();
            let size = staged.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).max();
            size.is_some_and(|size| size >= megabytes << 20) || writing.is_finished()
        })
        .await;
        drop(executor);
        let _ = writing.await.expect("the client lives");
        let left = fs::read(folder.tree.join("f")).expect("a file");
        assert!(left == old || left == new, "mixed after {megabytes} MiB: {} bytes", left.len());
        let names = fs::read_dir(&folder.tree).expect("the tree").count();
        assert_eq!(names, 1, "nothing beside the file");
    }
}
