//! Texts: how a shell gets one, and that it behaves as with a script.

use mooring_executor::runner::{Program, Shell};

use crate::fixture::{Identity, Outcome, World, exited};

const SHELLS: [Shell; 2] = [Shell::Sh, Shell::Bash];

async fn run(world: &World, shell: Shell, text: &str) -> Outcome {
    let text = text.as_bytes().to_vec();
    world.run(world.spec(Program::ShellText { shell, text })).await
}

#[tokio::test]
async fn the_last_status_is_the_result() {
    for identity in Identity::all() {
        let world = World::new(identity);
        for shell in SHELLS {
            for (text, code) in [
                ("exit 3", 3),
                ("false", 1),
                ("", 0),
                ("# only a comment", 0),
                ("(exit 5)\n", 5),
                ("set -e\nfalse\necho no", 1),
                ("trap 'echo bye' EXIT; exit 4", 4),
                ("no_such_command", 127),
                ("#!/bin/sh\ntrue", 0),
            ] {
                assert_eq!(run(&world, shell, text).await.end.kind, exited(code), "{shell:?} {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_syntax_error_is_told_on_its_line() {
    let world = World::new(Identity::Own);
    for shell in SHELLS {
        let outcome = run(&world, shell, "echo before\nif then\n").await;
        assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(2), "before\n"), "{shell:?}");
        assert!(outcome.stderr.contains("yntax error") && outcome.stderr.contains('2'), "{outcome:?}");
        let open = run(&world, shell, "echo 'never closed").await;
        assert_eq!((open.end.kind, open.stdout.as_str()), (exited(2), ""), "{shell:?}");
    }
}

#[tokio::test]
async fn here_documents_and_the_name_of_the_shell_are_as_usual() {
    let world = World::new(Identity::Own);
    for (shell, name) in [(Shell::Sh, "sh"), (Shell::Bash, "bash")] {
        let outcome =
            run(&world, shell, "cat <<END\n$0 $# $((1 + 2))\nEND\ncat; read x || echo no input").await;
        assert_eq!(outcome.stdout, format!("{name} 0 3\nno input\n"));
    }
}

#[tokio::test]
async fn a_text_of_several_mebibytes_is_read_to_its_end() {
    let world = World::new(Identity::Own);
    let lines = format!("x=$((x + 1)) # {}\n", "-".repeat(80)).repeat(40_000);
    for shell in SHELLS {
        let outcome = run(&world, shell, &format!("x=0\n{lines}echo $x\nexit 9")).await;
        assert_eq!((outcome.end.kind, outcome.stdout.as_str()), (exited(9), "40000\n"));
        let document = run(&world, shell, &format!("wc -l <<'END'\n{lines}END\n")).await;
        assert_eq!(document.stdout.trim(), "40000");
    }
}

#[tokio::test]
async fn no_child_of_a_shell_inherits_the_text() {
    for identity in Identity::all() {
        let world = World::new(identity);
        for shell in SHELLS {
            let text = "ls /proc/self/fd; (ls /proc/self/fd); x=$(ls /proc/self/fd); echo \"$x\"; ls /proc/self/fd & wait";
            let outcome = run(&world, shell, text).await;
            assert_eq!(outcome.stdout, "0\n1\n2\n3\n".repeat(4), "{shell:?}: ls itself opens one");
        }
    }
}

#[tokio::test]
async fn a_text_is_on_no_command_line() {
    let world = World::new(Identity::Own);
    for shell in SHELLS {
        let outcome = run(&world, shell, "tr '\\0' ' ' </proc/$$/cmdline # canary-in-the-text").await;
        assert!(outcome.stdout.contains("/proc/self/fd/3"), "{outcome:?}");
        assert!(!outcome.stdout.contains("canary"), "{outcome:?}");
    }
}

#[tokio::test]
async fn no_rc_file_is_read() {
    let world = World::new(Identity::Own);
    for name in [".profile", ".bashrc", ".bash_profile", "rc"] {
        std::fs::write(world.folder.join("home").join(name), "echo sourced\n").expect("a file");
    }
    for shell in SHELLS {
        let mut spec = world.spec(Program::ShellText { shell, text: b"echo clean".to_vec() });
        for name in ["ENV", "BASH_ENV"] {
            spec.env.push((name.into(), world.path("home/rc").into_bytes()));
        }
        assert_eq!(world.run(spec).await.stdout, "clean\n", "{shell:?}");
    }
}

#[tokio::test]
async fn descriptor_three_is_the_scripts_to_use() {
    let world = World::new(Identity::Own);
    for shell in SHELLS {
        let outcome =
            run(&world, shell, "exec 3>out; echo kept >&3; exec 3>&-; cat out; echo x >&3 || echo closed")
                .await;
        assert_eq!(outcome.stdout, "kept\nclosed\n", "{shell:?}: {}", outcome.stderr);
    }
}
