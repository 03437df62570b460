//! What a command can reach.

use std::fs;

use crate::fixture::{Identity, World, exited};

/// Each line is tried on its own; it must fail.
const REFUSED: &[&str] = &[
    "cat $WORLD/other/secret",
    "ls $WORLD/other",
    "ls $WORLD",
    "ls /",
    "echo x > $WORLD/other/new",
    "echo x >> $WORLD/other/secret",
    ": > $WORLD/other/secret",
    "rm $WORLD/other/secret",
    "mkdir $WORLD/other/folder",
    "mv $WORLD/other/secret .",
    "ln $WORLD/other/secret mine",
    "ln -s $WORLD/other/secret link && cat link",
    "echo x > $WORLD/granted/new",
    "echo x > $WORLD/granted/file",
    "echo x > /tmp/mooring-test-never",
    "echo x > /dev/shm/mooring-test-never",
    "ls /tmp",
    "ls /root",
    "ls /home",
    "cat /dev/ptmx",
    "echo x > /etc/mooring-test-never",
    "echo x > /usr/mooring-test-never",
    "echo 1 > /proc/sys/kernel/mooring",
    "echo 500 > /proc/$PPID/oom_score_adj",
    "cat /proc/$PPID/environ",
    "readlink /proc/$PPID/fd/0",
    "cat /proc/$PPID/maps",
    "cat /proc/1/environ",
    "cat /sys/kernel/notes",
    "mknod device c 1 3",
    "mount -t tmpfs none .",
    "unshare --user true",
    "unshare --pid --fork true",
    "unshare --net true",
    "chroot . true",
    "su -c true nobody",
    "kill -0 $PPID",
    "prlimit --pid $PPID --nofile=10:10",
    "renice -n 5 -p $PPID",
    "chrt --idle --pid 0 $PPID",
    "ionice -c 3 -p $PPID",
    "ipcmk -M 4096",
    "dmesg",
];

/// Each must work.
const ALLOWED: &[&str] = &[
    "echo x > file && cat file && rm file",
    "mkdir -p a/b && mv a/b c && rmdir a c",
    "echo x > $HOME/file && ln $HOME/file $HOME/second && mv $HOME/file moved",
    "mktemp",
    "cp /bin/true own && ./own",
    "cat $WORLD/granted/file",
    "cat /etc/passwd",
    "ls /usr/bin",
    "ls /proc && cat /proc/self/environ /proc/cpuinfo /proc/meminfo",
    "nproc",
    "echo x > /dev/null; head -c 8 /dev/urandom; head -c 8 /dev/zero",
    "echo x > /dev/stdout; echo x > /dev/stderr",
    "mkfifo pipe && (echo x > pipe & cat pipe)",
    "truncate -s 10 file && truncate -s 0 file",
    "renice -n 5 -p $$ || nice -n 5 true",
    "ulimit -n 64 && ulimit -n",
    "sleep 0 | cat | cat",
    "python3 -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()' || ! command -v python3",
];

#[tokio::test]
async fn what_is_not_granted_is_refused() {
    for identity in Identity::all() {
        let world = World::new(identity);
        for text in REFUSED {
            let outcome = world.sh(text).await;
            assert_ne!(outcome.end.kind, exited(0), "{identity:?} {text}: {outcome:?}");
            assert!(!outcome.stdout.contains("another's"), "{identity:?} {text}");
        }
        assert_eq!(fs::read_to_string(world.folder.join("other/secret")).expect("untouched"), "another's");
        assert_eq!(fs::read_to_string(world.folder.join("granted/file")).expect("untouched"), "shared");
        assert_eq!(fs::read_dir(world.folder.join("other")).expect("a folder").count(), 1);
    }
}

#[tokio::test]
async fn what_a_program_needs_is_there() {
    for identity in Identity::all() {
        let world = World::new(identity);
        for text in ALLOWED {
            let outcome = world.sh(text).await;
            let nobody_opens_roots_pipe = identity == Identity::Nobody && text.contains("/dev/std");
            assert!(
                outcome.end.kind == exited(0) || nobody_opens_roots_pipe,
                "{identity:?} {text}: {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_command_holds_no_capability_and_can_gain_none() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let outcome =
            world.sh("grep -E '^(Cap(Inh|Prm|Eff|Amb|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status").await;
        let mut lines: Vec<&str> = outcome.stdout.lines().collect();
        if identity == Identity::Nobody {
            // Only a holder of CAP_SETPCAP can shrink the bounding set; without new privileges it bounds nothing.
            lines.retain(|line| !line.starts_with("CapBnd"));
        }
        for line in lines {
            let expected = match line.split_once(":\t").expect("a field") {
                ("NoNewPrivs", value) => value == "1",
                ("Seccomp", value) => value == "2",
                (_, value) => value == "0000000000000000",
            };
            assert!(expected, "{identity:?} {line}");
        }
    }
}

#[tokio::test]
async fn no_environment_of_another_process_can_be_read() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let canary = format!("canary-{}", std::process::id());
        let outcome = world
            .sh(format!(
                "for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null; done | tr '\\0' '\\n' | grep -E 'canary-of|^{canary}'; \
                 cat /proc/{}/environ /proc/{}/environ",
                world.runner.id(),
                std::process::id(),
            ))
            .await;
        assert_eq!(outcome.stdout, "", "{identity:?}");
        assert_eq!(outcome.end.kind, exited(1));
    }
}

#[tokio::test]
async fn a_command_is_likelier_for_the_memory_killer_than_its_runner() {
    for identity in Identity::all() {
        let world = World::new(identity);
        let own = fs::read_to_string(format!("/proc/{}/oom_score_adj", world.runner.id()))
            .expect("the runner lives");
        let own: i32 = own.trim().parse().expect("a number");
        let outcome = world.sh("cat /proc/self/oom_score_adj").await;
        assert_eq!(outcome.stdout.trim().parse(), Ok((own + 200).min(1000)));
    }
}

#[tokio::test]
async fn a_grant_that_became_a_link_is_no_grant() {
    let world = World::new(Identity::Own);
    let turned = world.folder.join("tree/turned");
    std::os::unix::fs::symlink("/", &turned).expect("a link");
    let mut spec = world.shell("cat $WORLD/other/secret");
    spec.confinement.read_only.push(turned);
    assert_eq!(world.run(spec).await.end.kind, exited(1));
}

#[tokio::test]
async fn a_missing_workspace_starts_nothing() {
    let world = World::new(Identity::Own);
    let mut spec = world.shell("echo ran");
    spec.confinement.read_write.push(world.folder.join("nowhere"));
    let outcome = world.run(spec).await;
    let reason = mooring_executor::runner::NotStarted::Internal;
    assert_eq!(outcome.end.kind, mooring_executor::runner::EndKind::NotStarted(reason));
    assert_eq!(outcome.stdout, "");
}
