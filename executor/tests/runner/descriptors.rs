//! A kernel that gives or passes on no more descriptors: one start is refused, everything else goes on.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use mooring_executor::runner::{EndKind, NotStarted};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use crate::fixture::{Identity, World, await_condition, exited, within};

/// Bounds the descriptors of the runner; those it holds stay.
fn limit(world: &World, descriptors: u64) {
    let runner = Pid::from_raw(i32::try_from(world.runner.id()).expect("a process number"));
    let limit = Rlimit { current: Some(descriptors), maximum: Some(4096) };
    prlimit(runner, Resource::Nofile, limit).expect("a process of the same user");
}

/// A world whose runner has a supervisor in reserve.
async fn world() -> World {
    let world = World::new(Identity::Own);
    within(world.link.capabilities()).await.expect("a runner");
    await_condition(|| world.supervisors().len() == 1).await;
    world
}

#[tokio::test]
async fn a_runner_at_its_limit_of_descriptors_refuses_a_start_and_keeps_what_runs() {
    let world = world().await;
    let kept = world.supervisors();
    let running = world.start(world.shell("exec sleep 1000")).await;
    await_condition(|| world.supervisors().len() == 2).await;
    limit(&world, 12);
    let refused = world.sh("echo never").await;
    assert_eq!(refused.end.kind, EndKind::NotStarted(NotStarted::Internal), "{refused:?}");
    limit(&world, 1024);
    // What was put in reserve meanwhile has the low limit for good.
    for reserve in world.supervisors().into_iter().filter(|pid| !kept.contains(pid)).filter_map(Pid::from_raw)
    {
        // It may be gone by itself.
        let _ = kill_process(reserve, Signal::KILL);
    }
    await_condition(|| world.supervisors() == kept).await;
    let outcome = world.sh("echo again").await;
    assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "again\n"));
    within(running.control.cancel()).await.expect("the link holds");
    assert_eq!(within(running.ended).await.kind, EndKind::Cancelled);
}

/// So many descriptors in sockets that nobody reads.
fn under_way(count: usize) -> Vec<OwnedFd> {
    const EACH: usize = 50;
    let null = std::fs::File::open("/dev/null").expect("a device");
    let mut sockets = Vec::new();
    for _ in 0..count.div_ceil(EACH) {
        let (from, to) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a pair");
        let descriptors = [null.as_fd(); EACH];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(EACH))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&from, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::DONTWAIT)
            .expect("room for one packet");
        sockets.extend([from, to]);
    }
    sockets
}

/// As a command of the same user could, which has no other way to reach the link.
#[tokio::test]
async fn descriptors_that_a_user_keeps_under_way_cost_a_start_and_not_the_link() {
    let world = world().await;
    limit(&world, 60);
    let under_way = under_way(200);
    let refused = world.sh("echo never").await;
    assert_eq!(refused.end.kind, EndKind::NotStarted(NotStarted::Internal), "{refused:?}");
    drop(under_way);
    let outcome = world.sh("echo again").await;
    assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "again\n"));
}
