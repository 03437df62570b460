//! Bind of kind `kubernetes`: whose a volume is, which epoch may use it, and what is left alone.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use mooring_proto::detail_of;
use mooring_proto::v1::{BindRequest, EnvironmentKind, ErrorCode, LocalLayout, RequestContext, StartRequest};

use crate::fixture::{Executor, Ground, Pod, code_of, lease, text};

type Change = fn(&mut BindRequest);

/// What a refused Bind says.
async fn refused(pod: &mut Pod, request: BindRequest) -> tonic::Status {
    pod.bind(request).await.expect_err("refused")
}

#[tokio::test]
async fn the_layout_is_the_volumes_and_private() {
    let ground = Ground::new();
    fs::create_dir(ground.volume.join("lost+found")).expect("a new folder");
    fs::write(ground.volume.join("foreign"), "kept").expect("a new file");
    fs::set_permissions(ground.volume.join("lost+found"), fs::Permissions::from_mode(0o700)).expect("ours");
    let mut pod = Pod::start_unbound(&ground).await;
    let bound = pod.bind(Ground::bind_request(1, true)).await.expect("Bind");
    let workspace = bound.workspace.expect("a workspace");
    let place = ground.volume.join("w").join(&workspace.workspace_id);
    assert_eq!(workspace.root, place.join("tree").to_str().expect("UTF-8"));
    let private = [".mooring", "w"].map(|name| ground.volume.join(name));
    let folders = ["", "tree", "home", "tmp", "stage"].map(|name| place.join(name));
    for folder in private.iter().chain(&folders) {
        assert_eq!(folder.metadata().expect("made").mode() & 0o7777, 0o700, "{}", folder.display());
    }
    let identity = fs::read_to_string(ground.volume.join(".mooring/identity")).expect("written");
    assert!(identity.contains(&workspace.workspace_id) && identity.contains(&Ground::environment().revision));
    assert_eq!(fs::read_to_string(ground.volume.join("foreign")).expect("left alone"), "kept");
    let mut names: Vec<_> = fs::read_dir(&ground.volume)
        .expect("the volume")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, [".mooring", "foreign", "lost+found", "w"]);
    pod.tree_is_known(&ground);
    assert_eq!(
        pod.run(text("echo x > file && cat file; pwd")).await.stdout_text(),
        format!("x\n{}\n", workspace.root)
    );
}

#[tokio::test]
async fn a_bind_out_of_bounds_writes_nothing() {
    let ground = Ground::new();
    let mut pod = Pod::start_unbound(&ground).await;
    let cases: [(&str, Change, ErrorCode); 8] = [
        (
            "kind local",
            |r| r.environment.as_mut().expect("one").kind = EnvironmentKind::Local.into(),
            ErrorCode::Unsupported,
        ),
        (
            "a path as its id",
            |r| r.environment.as_mut().expect("one").id = "/a/b/c".to_owned(),
            ErrorCode::InvalidArgument,
        ),
        (
            "two parts",
            |r| r.environment.as_mut().expect("one").id = "a/b".to_owned(),
            ErrorCode::InvalidArgument,
        ),
        (
            "four parts",
            |r| r.environment.as_mut().expect("one").id.push_str("/x"),
            ErrorCode::InvalidArgument,
        ),
        ("a layout", |r| r.local = Some(LocalLayout::default()), ErrorCode::InvalidArgument),
        ("epoch 0", |r| r.epoch = 0, ErrorCode::InvalidArgument),
        (
            "a short revision",
            |r| r.environment.as_mut().expect("one").revision.truncate(31),
            ErrorCode::InvalidArgument,
        ),
        ("a volume that must not be empty", |r| r.may_be_new = false, ErrorCode::EmptyWorkspace),
    ];
    for (case, change, code) in cases {
        let mut request = Ground::bind_request(1, true);
        change(&mut request);
        assert_eq!(code_of(&refused(&mut pod, request).await), code, "{case}");
        assert_eq!(fs::read_dir(&ground.volume).expect("the volume").count(), 0, "{case}");
    }
    pod.bind(Ground::bind_request(1, true)).await.expect("still unbound");
}

#[tokio::test]
async fn bind_again_answers_the_same_though_the_volume_is_not_new_any_more() {
    let ground = Ground::new();
    let mut pod = Pod::start_unbound(&ground).await;
    let first = pod.bind(Ground::bind_request(1, true)).await.expect("Bind");
    assert_eq!(pod.bind(Ground::bind_request(1, true)).await.expect("again"), first);
    assert_eq!(pod.bind(Ground::bind_request(1, false)).await.expect("acknowledged"), first);
    let mut other = Ground::bind_request(1, false);
    other.variables.clear();
    assert_eq!(code_of(&refused(&mut pod, other).await), ErrorCode::OperationConflict);
    assert_eq!(code_of(&refused(&mut pod, Ground::bind_request(2, false)).await), ErrorCode::StaleEpoch);
}

#[tokio::test]
async fn a_volume_keeps_its_identity_its_files_and_its_highest_epoch() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    pod.run(text("echo kept > file")).await;
    let workspace_id = pod.workspace_id.clone();
    let mut second = Pod::start_unbound(&ground).await;
    let held = refused(&mut second, Ground::bind_request(2, false)).await;
    assert_eq!(code_of(&held), ErrorCode::Busy, "the first one still has it");
    drop(pod);

    for (epoch, may_be_new) in [(1, false), (1, true)] {
        let stale = refused(&mut second, Ground::bind_request(epoch, may_be_new)).await;
        let detail = detail_of(&stale).expect("a detail");
        assert_eq!(detail.code(), ErrorCode::StaleEpoch, "of another process");
        assert_eq!((detail.fields["have"].as_str(), detail.fields["current"].as_str()), ("1", "1"));
    }
    for change in [(|r| r.environment.as_mut().expect("one").revision = "f".repeat(32)) as Change, |r| {
        r.environment.as_mut().expect("one").id = "team-a/other/1".to_owned();
    }] {
        let mut request = Ground::bind_request(9, true);
        change(&mut request);
        assert_eq!(code_of(&refused(&mut second, request).await), ErrorCode::WrongEnvironment);
    }
    // Refusals raise nothing: 2 is still the next.
    second.bind(Ground::bind_request(2, false)).await.expect("the next epoch");
    second.tree_is_known(&ground);
    assert_eq!(second.workspace_id, workspace_id);
    assert_eq!(second.run(text("cat file")).await.stdout_text(), "kept\n");
    drop(second);

    let mut third = Pod::start_unbound(&ground).await;
    third.bind(Ground::bind_request(7, false)).await.expect("epochs may be left out");
    drop(third);
    let mut fourth = Pod::start_unbound(&ground).await;
    assert_eq!(code_of(&refused(&mut fourth, Ground::bind_request(6, false)).await), ErrorCode::StaleEpoch);
}

#[tokio::test]
async fn a_volume_that_lost_its_content_is_told_and_not_filled_again() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let workspace_id = pod.workspace_id.clone();
    drop(pod);
    fs::remove_dir_all(ground.volume.join("w").join(&workspace_id).join("tree")).expect("removed");
    let mut pod = Pod::start_unbound(&ground).await;
    assert_eq!(code_of(&refused(&mut pod, Ground::bind_request(2, false)).await), ErrorCode::EmptyWorkspace);
    fs::remove_file(ground.volume.join(".mooring/identity")).expect("removed");
    assert_eq!(code_of(&refused(&mut pod, Ground::bind_request(3, false)).await), ErrorCode::EmptyWorkspace);
    fs::remove_dir_all(ground.volume.join(".mooring")).expect("removed");
    fs::remove_dir_all(ground.volume.join("w")).expect("removed");
    assert_eq!(code_of(&refused(&mut pod, Ground::bind_request(3, false)).await), ErrorCode::EmptyWorkspace);
    assert_eq!(fs::read_dir(&ground.volume).expect("the volume").count(), 0, "nothing was made");
    // Whoever says that it may be new gets a new one.
    pod.bind(Ground::bind_request(3, true)).await.expect("Bind");
    assert_ne!(pod.workspace_id, workspace_id);
}

#[tokio::test]
async fn a_bind_that_was_never_acknowledged_is_finished_by_the_next_process() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let workspace_id = pod.workspace_id.clone();
    drop(pod);
    // As a crash between the identity and the folders leaves it.
    fs::remove_dir_all(ground.volume.join("w")).expect("removed");
    let mut pod = Pod::start_unbound(&ground).await;
    pod.bind(Ground::bind_request(2, true)).await.expect("Bind");
    assert_eq!(pod.workspace_id, workspace_id);
}

#[tokio::test]
async fn damaged_records_let_nobody_in() {
    for name in ["identity", "epoch", "leases"] {
        let ground = Ground::new();
        let pod = Pod::start(&ground).await;
        let under = |id: &str| RequestContext { actor: Some(lease("s", 2)), ..pod.context_of(id) };
        let request = StartRequest { context: Some(under("a")), ..text("true") };
        pod.start_command(request).await.expect("Start");
        drop(pod);
        fs::write(ground.volume.join(".mooring").join(name), "x\n").expect("a file");
        let mut pod = Pod::start_unbound(&ground).await;
        let damaged = refused(&mut pod, Ground::bind_request(2, false)).await;
        assert_eq!(code_of(&damaged), ErrorCode::Internal, "{name}");
    }
}

#[tokio::test]
async fn an_overtaken_lease_stays_overtaken_across_pods() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let start = |pod: &Executor, id: &str, epoch| StartRequest {
        context: Some(RequestContext { actor: Some(lease("s", epoch)), ..pod.context_of(id) }),
        ..text("true")
    };
    pod.start_command(start(&pod, "a", 7)).await.expect("the first");
    drop(pod);
    let mut pod = Pod::start_unbound(&ground).await;
    pod.bind(Ground::bind_request(2, false)).await.expect("Bind");
    let stale = pod.start_command(start(&pod, "b", 6)).await.expect_err("overtaken");
    assert_eq!(code_of(&stale), ErrorCode::StaleLease);
    pod.start_command(start(&pod, "c", 7)).await.expect("still the highest");
}

/// A file system of its own, as small as a test of a full one wants it. Gone when dropped.
struct SmallVolume(std::path::PathBuf);

impl SmallVolume {
    fn over(ground: &Ground) -> Self {
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m,mode=777", "tmpfs"])
            .arg(&ground.volume)
            .status();
        assert!(mounted.expect("mount is there").success());
        Self(ground.volume.clone())
    }
}

impl Drop for SmallVolume {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_volume_still_takes_the_executors_own_state() {
    if !Ground::is_root() {
        eprintln!("a file system can only be mounted as root");
        return;
    }
    let ground = Ground::new();
    let _small = SmallVolume::over(&ground);
    let pod = Pod::start(&ground).await;
    let start = |id: &str, epoch, script: &str| StartRequest {
        context: Some(RequestContext { actor: Some(lease("s", epoch)), ..pod.context_of(id) }),
        ..text(script)
    };
    let filled = pod.run(start("fill", 1, "head -c 16M /dev/zero > fill; echo x > y; ls")).await;
    assert!(String::from_utf8_lossy(&filled.stderr).contains("No space left"), "{filled:?}");
    let reserve = ground.volume.join(".mooring/reserve");
    assert!(reserve.exists());
    // Each needs a record on disk before it may act.
    for epoch in 2..=4 {
        let started = pod.start_command(start(&format!("take-{epoch}"), epoch, "true")).await;
        started.expect("the lease is kept on a full volume");
    }
    pod.run(start("free", 5, "rm fill")).await;
    pod.start_command(start("after", 6, "true")).await.expect("Start");
    assert_eq!(reserve.metadata().expect("made again").len(), 1 << 20);
    drop(pod);
    let mut pod = Pod::start_unbound(&ground).await;
    pod.bind(Ground::bind_request(2, false)).await.expect("Bind");
    let stale = StartRequest {
        context: Some(RequestContext { actor: Some(lease("s", 5)), ..pod.context_of("late") }),
        ..text("true")
    };
    assert_eq!(code_of(&pod.start_command(stale).await.expect_err("overtaken")), ErrorCode::StaleLease);
}
