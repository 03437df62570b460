//! Peers that do not behave: the executor refuses them and serves the others.

use std::io::Write as _;
use std::time::{Duration, Instant};

use mooring_proto::v1::{AttachRequest, ListRequest, StartRequest, WriteInputRequest};
use tonic::codegen::http::HeaderValue;
use tonic::{Code, Request};

use crate::fixture::{DEADLINE, Executor, Folder, await_condition, text};

async fn still_serves(executor: &Executor) {
    let list = async { executor.commands().list(ListRequest { context: executor.look() }).await };
    tokio::time::timeout(DEADLINE, list).await.expect("List answers").expect("List");
}

#[tokio::test]
async fn a_deadline_ends_the_call_and_not_the_command() {
    let executor = Executor::start().await;
    let request = StartRequest { stdin: true, ..text("sleep 1000") };
    let command_id = executor.start_command(request).await.expect("Start").command_id;
    // More than a pipe holds, and nobody reads.
    let mut request = Request::new(WriteInputRequest {
        context: executor.act(),
        command_id: command_id.clone(),
        content: vec![b'x'; 1 << 20].into(),
        close: false,
    });
    request.set_timeout(Duration::from_millis(200));
    let asked = Instant::now();
    let late = executor.commands().write_input(request).await.expect_err("the deadline");
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert_eq!(executor.status(&command_id).await.end, None);
    executor.cancel(&command_id).await;
}

#[tokio::test]
async fn huge_metadata_is_ignored_and_a_huge_message_refused() {
    let executor = Executor::start().await;
    let mut request = Request::new(ListRequest { context: executor.look() });
    let value = HeaderValue::from_bytes(&vec![b'x'; 64 << 10]).expect("a value");
    request.metadata_mut().as_mut().insert("x-long", value);
    executor.commands().list(request).await.expect("64 KiB of metadata tell nothing");
    still_serves(&executor).await;

    let huge = StartRequest { cwd: "x".repeat(7 << 20), context: executor.act(), ..text("true") };
    let mut client = executor.commands().max_encoding_message_size(usize::MAX);
    client.start(huge).await.expect_err("a message of 7 MiB");
    still_serves(&executor).await;
}

#[tokio::test]
async fn as_many_readers_as_there_may_be_leave_the_others_waiting_and_not_refused() {
    let executor = Executor::start().await;
    let command_id = executor.start_command(text("sleep 1000")).await.expect("Start").command_id;
    let attach = || AttachRequest {
        context: executor.look(),
        command_id: command_id.clone(),
        ..AttachRequest::default()
    };
    let mut readers = Vec::new();
    for _ in 0..256 {
        readers.push(executor.commands().attach(attach()).await.expect("Attach").into_inner());
    }
    let mut client = executor.commands();
    let mut one_more = Box::pin(client.list(ListRequest { context: executor.look() }));
    assert!(futures::poll!(&mut one_more).is_pending());
    readers.pop();
    tokio::time::timeout(DEADLINE, one_more).await.expect("room again").expect("List");
}

#[tokio::test]
async fn a_peer_that_does_not_speak_http_ends_the_executor() {
    let folder = Folder::new();
    let (executor, mut socket) = Executor::start_raw(folder);
    // The peer may hang up before it has read everything.
    let _ = socket.write_all(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000));
    for half in [&executor.serve, &executor.run] {
        await_condition("the half has ended", || {
            half.lock().expect("one test").try_wait().expect("ours").is_some()
        })
        .await;
    }
}
