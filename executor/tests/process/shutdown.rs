//! The end of the serving half.

use mooring_proto::v1::{
    AttachRequest, Cancelled, ErrorCode, StartRequest, attach_response, command_end::End,
};
use rustix::process::{Pid, Signal, kill_process};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{DEADLINE, Executor, await_condition, code_of, lives, nobody, text};

fn exit_code(executor: &Executor) -> Option<i32> {
    executor.serve.lock().expect("one test").try_wait().expect("ours").and_then(|status| status.code())
}

#[tokio::test]
async fn health_is_served() {
    let executor = Executor::start().await;
    for service in ["", "mooring.execution.v1.CommandService", "mooring.execution.v1.FileService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let health = HealthClient::new(executor.channel.clone()).check(request).await.expect("Check");
        assert_eq!(health.into_inner().status(), ServingStatus::Serving, "{service}");
    }
}

#[tokio::test]
async fn a_closed_connection_ends_both_halves() {
    let mut executor = Executor::start().await;
    let request =
        StartRequest { background: true, ..text("trap '' TERM; echo $$ > self; while :; do sleep 1; done") };
    executor.start_command(request).await.expect("Start");
    let id = executor.await_file("self").await;
    executor.channel = nobody();
    executor.operator = nobody();
    for half in [&executor.serve, &executor.run] {
        await_condition("the half has ended", || {
            half.lock().expect("one test").try_wait().expect("ours").is_some()
        })
        .await;
    }
    await_condition("the command has ended", || !lives(&id)).await;
}

#[tokio::test]
async fn sigterm_drains() {
    let executor = Executor::start().await;
    let request =
        StartRequest { background: true, ..text("trap '' TERM; echo $$ > self; while :; do sleep 1; done") };
    let command_id = executor.start_command(request).await.expect("Start").command_id;
    let id = executor.await_file("self").await;
    let attach = AttachRequest { context: executor.look(), command_id, ..AttachRequest::default() };
    let mut events = executor.commands().attach(attach).await.expect("Attach").into_inner();

    let serve = executor.serve.lock().expect("one test").id();
    let serve = Pid::from_raw(i32::try_from(serve).expect("a pid")).expect("a pid");
    kill_process(serve, Signal::TERM).expect("SIGTERM");
    // Refused as soon as the signal is seen; which call is the first to be refused is open.
    let deadline = tokio::time::Instant::now() + DEADLINE;
    loop {
        assert!(tokio::time::Instant::now() < deadline, "never refused");
        match executor.start_command(text("true")).await {
            Ok(_) => {}
            Err(refused) => {
                assert_eq!(code_of(&refused), ErrorCode::Draining);
                break;
            }
        }
    }
    let mut end = None;
    while let Some(event) = events.message().await.expect("an event") {
        if let Some(attach_response::Event::End(told)) = event.event {
            end = told.end;
        }
    }
    assert_eq!(end, Some(End::Cancelled(Cancelled {})));
    await_condition("the process has ended", || exit_code(&executor).is_some()).await;
    assert_eq!(exit_code(&executor), Some(0));
    assert!(!lives(&id));
}
