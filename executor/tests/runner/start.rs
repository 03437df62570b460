//! What starts, what does not, and what a program finds.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use mooring_executor::runner::{EndKind, NotStarted, Program, StartError, StartSpec, Stdin};
use tokio::io::AsyncWriteExt;

use crate::fixture::{Identity, World, exited, finish, folder, within};

#[tokio::test]
async fn a_program_runs_with_its_arguments_and_streams() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let outcome =
            world.run(world.argv(&["sh", "-c", "echo \"$1\"; echo oops >&2; exit 7", "sh", "a b"])).await;
        assert_eq!((outcome.end.kind, outcome.end.survivors_killed), (exited(7), 0), "{outcome:?}");
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("a b\n", "oops\n"));
        assert!(outcome.end.duration > Duration::ZERO);
    }
}

#[tokio::test]
async fn a_command_starts_on_the_mounts_of_its_runner() {
    if Identity::all().len() == 1 {
        eprintln!("left out: only root makes a mount namespace");
        return;
    }
    let world = World::as_process_one();
    // The kernel's answer, where a path from this process's root leads to the folder; and `..` is on the same mount.
    let outcome = world.run(world.argv(&["/bin/pwd", "-P"])).await;
    assert_eq!(
        (outcome.end.kind, outcome.stdout.trim()),
        (exited(0), world.path("tree").as_str()),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_command_does_not_start_in_a_folder_that_took_the_place_of_its_own() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let (inside, aside) = (world.folder.join("tree/inside"), world.folder.join("tree/aside"));
        std::fs::create_dir(&inside).expect("a new folder");
        let mut spec = world.shell("touch started");
        spec.cwd = folder(&inside);
        std::fs::rename(&inside, &aside).expect("own folder");
        let gone = world.run(StartSpec { cwd: spec.cwd.clone(), ..world.shell("touch started") }).await;
        std::os::unix::fs::symlink("aside", &inside).expect("a link");
        let linked = world.run(StartSpec { cwd: spec.cwd.clone(), ..world.shell("touch started") }).await;
        std::fs::remove_file(&inside).expect("own link");
        std::fs::create_dir(&inside).expect("a new folder");
        let other = world.run(spec).await;
        for outcome in [gone, linked, other] {
            assert_eq!(outcome.end.kind, EndKind::NotStarted(NotStarted::Internal));
        }
        assert!(!inside.join("started").exists() && !aside.join("started").exists());
    }
}

#[tokio::test]
async fn the_runner_tells_what_its_kernel_can_do() {
    let world = World::new(Identity::Own);
    let capabilities = within(world.link.capabilities()).await.expect("a runner");
    assert!(
        capabilities.landlock_abi >= 6 && capabilities.scoped && capabilities.seccomp,
        "{capabilities:?}"
    );
}

#[tokio::test]
async fn a_program_that_cannot_run_says_why() {
    let world = World::new(Identity::Own);
    let plain = world.folder.join("tree/plain");
    std::fs::write(&plain, "not a program").expect("a file");
    let nonsense = world.folder.join("tree/nonsense");
    std::fs::write(&nonsense, "\u{1}\u{2}").expect("a file");
    std::fs::set_permissions(&nonsense, Permissions::from_mode(0o755)).expect("own file");
    let outside = world.folder.join("other/program");
    std::fs::copy("/bin/true", &outside).expect("a copy");
    let cases = [
        (vec!["no-such-program-anywhere"], NotStarted::NotFound),
        (vec!["./missing"], NotStarted::NotFound),
        (vec!["./plain"], NotStarted::NotExecutable),
        (vec!["./nonsense"], NotStarted::NotExecutable),
        (vec!["/etc"], NotStarted::NotExecutable),
        (vec![outside.to_str().unwrap()], NotStarted::NotExecutable),
        (vec![""], NotStarted::NotFound),
    ];
    for (arguments, reason) in cases {
        let outcome = world.run(world.argv(&arguments)).await;
        assert_eq!(outcome.end.kind, EndKind::NotStarted(reason), "{arguments:?}");
    }
    let long = "x".repeat(200_000);
    let outcome = world.run(world.argv(&["true", &long])).await;
    assert_eq!(outcome.end.kind, EndKind::NotStarted(NotStarted::TooLarge));
}

#[tokio::test]
async fn the_search_path_is_the_commands_own() {
    let world = World::new(Identity::Own);
    let program = world.folder.join("tree/mine");
    std::fs::write(&program, "#!/bin/sh\necho mine\n").expect("a file");
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("own file");
    let mut spec = world.argv(&["mine"]);
    spec.env[0].1 = format!("/nowhere:{}", world.path("tree")).into_bytes();
    assert_eq!(world.run(spec).await.stdout, "mine\n");
}

#[tokio::test]
async fn a_specification_that_breaks_its_rules_starts_nothing() {
    let world = World::new(Identity::Own);
    let mut no_program = world.argv(&["true"]);
    no_program.program = Program::Argv(Vec::new());
    let mut nul = world.argv(&["true"]);
    nul.env.push((b"A".to_vec(), b"b\0c".to_vec()));
    let mut odd_name = world.argv(&["true"]);
    odd_name.env.push((b"A=B".to_vec(), Vec::new()));
    let mut relative = world.argv(&["true"]);
    relative.confinement.read_only.push("somewhere".into());
    for spec in [no_program, nul, odd_name, relative] {
        assert!(matches!(world.link.start(spec).await, Err(StartError::Invalid(_))));
    }
}

#[tokio::test]
async fn input_arrives_and_ends() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let mut spec = world.argv(&["cat"]);
        spec.stdin = Stdin::Pipe;
        let mut running = world.start(spec).await;
        let mut stdin = running.stdin.take().expect("a pipe");
        stdin.write_all(b"one\ntwo\n").await.expect("room");
        drop(stdin);
        let outcome = finish(running).await;
        assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(0), "one\ntwo\n"));
    }
}

#[tokio::test]
async fn without_input_a_reader_ends_at_once_and_there_is_no_terminal() {
    let world = World::new(Identity::Own);
    let outcome =
        world.sh("cat; read x; echo $?; ls -l /proc/self/fd/0; test -t 0; echo $?; echo x >/dev/tty").await;
    assert!(outcome.stdout.starts_with("1\n"), "{outcome:?}");
    assert!(outcome.stdout.contains("/dev/null\n1\n"), "{outcome:?}");
    assert_ne!(outcome.end.kind, exited(0));
}

#[tokio::test]
async fn a_program_gets_three_descriptors_its_environment_and_a_session() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let outcome =
            world.run(world.argv(&["sh", "-c", "ls /proc/self/fd; umask; ulimit -c; env | wc -l"])).await;
        assert_eq!(outcome.stdout, "0\n1\n2\n3\n0022\n0\n6\n", "ls itself opens one");
        let session = world.run(world.argv(&["sh", "-c", "ps -o pid=,pgid=,sid= -p $$"])).await;
        let numbers: Vec<&str> = session.stdout.split_whitespace().collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{session:?}");
    }
}

#[tokio::test]
async fn signals_are_at_their_defaults() {
    let world = World::new(Identity::Own);
    let outcome = world.run(world.argv(&["grep", "-E", "Sig(Blk|Ign)|Sig(Cgt)", "/proc/self/status"])).await;
    for line in outcome.stdout.lines().filter(|line| !line.starts_with("SigCgt")) {
        assert!(line.ends_with("\t0000000000000000"), "{line}");
    }
}

#[tokio::test]
async fn a_large_environment_and_many_commands_at_once_are_fine() {
    let world = World::new(Identity::Own);
    let mut running = Vec::new();
    for number in 0..64 {
        let mut spec = world.argv(&["sh", "-c", "echo ${#BIG} $NUMBER"]);
        spec.env.push((b"BIG".to_vec(), vec![b'x'; 100_000]));
        spec.env.push((b"NUMBER".to_vec(), format!("{number}").into_bytes()));
        running.push(world.start(spec).await);
    }
    for (number, running) in running.into_iter().enumerate() {
        let outcome = finish(running).await;
        assert_eq!((outcome.end.kind, outcome.stdout), (exited(0), format!("100000 {number}\n")));
    }
}
