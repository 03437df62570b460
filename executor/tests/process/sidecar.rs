//! Two containers: either half is lost, and what the other makes of it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use mooring_proto::detail_of;
use mooring_proto::v1::{ErrorCode, RunnerLost, StartRequest, command_end::End};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Executor, Ground, Pod, await_condition, code_of, exit_code, lives, text};

fn stubborn() -> StartRequest {
    text("trap '' TERM; setsid sleep 1000 & echo $! > child; echo $$ > self; while :; do sleep 1; done")
}

fn terminate(id: u32) {
    let id = Pid::from_raw(i32::try_from(id).expect("a pid")).expect("a pid");
    kill_process(id, Signal::TERM).expect("it lives");
}

#[tokio::test]
async fn a_lost_runner_ends_its_commands_and_the_next_one_serves_the_same_environment() {
    let ground = Ground::new();
    let mut pod = Pod::start(&ground).await;
    let started = pod.start_command(stubborn()).await.expect("Start");
    let ids = [pod.await_file("self").await, pod.await_file("child").await];
    Executor::kill(&pod.run);
    let outcome = pod.attach(&started.command_id, [0, 0]).await;
    assert_eq!(outcome.cause(), End::RunnerLost(RunnerLost {}));
    await_condition("nothing of it lives", || !ids.iter().any(|id| lives(id))).await;

    let refused = pod.start_command(text("true")).await.expect_err("no runner");
    let detail = detail_of(&refused).expect("a detail");
    assert_eq!(detail.code(), ErrorCode::RunnerUnavailable);
    assert!(detail.retryable && detail.fields.contains_key("retry_after_millis"));

    for round in 0..3 {
        pod.start_runner();
        await_condition("the socket is gone", || !pod.link.exists()).await;
        let again = loop {
            match pod.start_command(text(format!("echo {round}"))).await {
                Ok(started) => break started,
                Err(refused) => assert_eq!(code_of(&refused), ErrorCode::RunnerUnavailable),
            }
        };
        assert_eq!(again.boot_id, started.boot_id);
        assert_eq!(pod.attach(&again.command_id, [0, 0]).await.stdout_text(), format!("{round}\n"));
        Executor::kill(&pod.run);
        await_condition("the socket is there again", || pod.link.exists()).await;
    }
    assert_eq!(
        pod.status(&started.command_id).await.end.and_then(|end| end.end),
        Some(End::RunnerLost(RunnerLost {}))
    );
}

#[tokio::test]
async fn a_lost_server_ends_the_runner_and_every_command() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    pod.start_command(stubborn()).await.expect("Start");
    let ids = [pod.await_file("self").await, pod.await_file("child").await];
    Executor::kill(&pod.serve);
    await_condition("nothing of it lives", || !ids.iter().any(|id| lives(id))).await;
    await_condition("the runner has ended", || exit_code(&pod.run).is_some()).await;
    assert_eq!(exit_code(&pod.run), Some(0));
}

#[tokio::test]
async fn bind_waits_for_a_runner_that_is_about_to_come_and_says_when_none_does() {
    let ground = Ground::new();
    let mut pod = Pod::start_serve(&ground).await;
    let refused = pod.bind(Ground::bind_request(1, true)).await.expect_err("no runner");
    assert_eq!(code_of(&refused), ErrorCode::RunnerUnavailable);
    let mut operator = pod.workspaces();
    let request = Ground::bind_request(1, true);
    let (bound, ()) = tokio::join!(operator.bind(request), async { pod.start_runner() });
    bound.expect("Bind");
}

#[tokio::test]
async fn the_socket_is_open_to_one_runner_alone() {
    let ground = Ground::new();
    let mut pod = Pod::start_serve(&ground).await;
    assert_eq!(pod.link.metadata().expect("the socket").mode() & 0o777, 0o600);
    // Whoever has no name beside the socket is sent away: a command could get no further.
    let flags = SocketFlags::CLOEXEC;
    let stranger = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
    connect(&stranger, &SocketAddrUnix::new(&pod.link).expect("an address")).expect("it listens");
    assert_eq!(rustix::io::read(&stranger, &mut [0; 1]), Ok(0), "closed at once");
    pod.await_log("something that is no runner connected").await;
    assert!(pod.link.exists(), "still open");

    pod.start_runner();
    pod.bind(Ground::bind_request(1, true)).await.expect("Bind");
    let left: Vec<_> = std::fs::read_dir(pod.link.parent().expect("a folder"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["log"], "nothing to connect to while a runner is");
}

#[tokio::test]
async fn commands_cannot_reach_what_the_halves_share() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let folder = pod.link.parent().expect("a folder").display().to_string();
    let own = ground.volume.join(".mooring").display().to_string();
    let script = format!(
        "for x in {folder} {own} {own}/identity {} {}; do (ls $x/ || cat $x) >/dev/null 2>&1 && echo reached $x; done; \
         echo x > {folder}/x; mkdir {folder}/d; echo x > {own}/identity; echo x > {}/x; echo end",
        ground.tls.display(),
        ground.volume.display(),
        ground.volume.display(),
    );
    let outcome = pod.run(text(script)).await;
    assert_eq!(outcome.stdout_text(), "end\n");
}

#[tokio::test]
async fn what_commands_start_from_is_the_image_and_bind_and_nothing_of_the_pod() {
    let ground = Ground::new();
    let mut pod = Pod::start_unbound(&ground).await;
    let bound = pod.bind(Ground::bind_request(1, true)).await.expect("Bind");
    pod.tree_is_known(&ground);
    assert_eq!(bound.removed_variables, ["API_TOKEN"]);
    let outcome = pod.run(text("env | sort | grep -v ^_=")).await;
    let place = ground.volume.join("w").join(&pod.workspace_id).display().to_string();
    let expected = format!(
        "CLASS=of the class\nHOME={place}/home\nLANG=C.UTF-8\nLC_MESSAGES=C.UTF-8\n\
         PATH=/image/bin:/usr/local/bin:/usr/bin:/bin\nPWD={place}/tree\nSHELL=/bin/sh\nTERM=dumb\nTMPDIR={place}/tmp\n"
    );
    assert_eq!(outcome.stdout_text(), expected);
    assert!(!pod.log().contains("canary"));
}

#[tokio::test]
async fn sigterm_closes_the_port_first_and_then_drains() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    // Lives through TERM, so that draining takes two seconds.
    pod.start_command(stubborn()).await.expect("Start");
    let id = pod.await_file("self").await;
    terminate(pod.serve_id());
    pod.await_log("draining").await;
    let late = pod.connect(&ground, &ground.authority.harness()).await;
    assert!(late.is_err(), "the port is closed");
    assert!(lives(&id) || exit_code(&pod.serve).is_some());
    await_condition("the serving half has ended", || exit_code(&pod.serve).is_some()).await;
    assert_eq!(exit_code(&pod.serve), Some(0));
    await_condition("the running half has ended", || exit_code(&pod.run).is_some()).await;
    assert_eq!(exit_code(&pod.run), Some(0));
    assert!(!lives(&id));
}

#[tokio::test]
async fn a_runner_that_waits_for_its_server_ends_with_sigterm() {
    let folder = tempfile::tempdir().expect("a folder");
    let binary = env!("CARGO_BIN_EXE_mooring-executor");
    let mut wrapper = Command::new(binary);
    if Ground::is_root() {
        // Process 1 of its namespace, for which a signal without a handler does not exist.
        wrapper = Command::new("unshare");
        wrapper.args(["--pid", "--fork", "--kill-child", binary]);
    }
    wrapper.args(["run", "--link"]).arg(folder.path().join("runner.sock"));
    let mut wrapper = wrapper.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a process");
    let children = format!("/proc/{0}/task/{0}/children", wrapper.id());
    let mut runner = wrapper.id();
    if Ground::is_root() {
        let child = || std::fs::read_to_string(&children).ok()?.trim().parse::<u32>().ok();
        await_condition("the runner is there", || child().is_some()).await;
        runner = child().expect("was there");
    }
    // Signals are blocked before it begins to wait; unshare(1) blocks this one too, for a moment before it becomes the runner.
    let blocks = || {
        let is_runner =
            std::fs::read_link(format!("/proc/{runner}/exe")).is_ok_and(|exe| exe == Path::new(binary));
        let status = std::fs::read_to_string(format!("/proc/{runner}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let blocked = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        is_runner && blocked.is_some_and(|mask| mask & (1 << 14) != 0)
    };
    await_condition("it waits", blocks).await;
    terminate(runner);
    await_condition("it has ended", || wrapper.try_wait().expect("ours").is_some()).await;
    assert_eq!(wrapper.wait().expect("ours").code(), Some(0));
}
