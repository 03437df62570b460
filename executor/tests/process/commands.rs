//! What commands are started with, and that each is started once.

use mooring_proto::v1::{
    ArgumentVector, BindRequest, ErrorCode, ListRequest, NotStartedReason, PtySize, StartRequest,
    WriteInputRequest, command_end::End, start_request,
};

use crate::fixture::{Executor, Folder, code_of, text, variable};

fn argv(arguments: &[&str]) -> StartRequest {
    let arguments = arguments.iter().map(|argument| argument.to_string().into()).collect();
    StartRequest {
        program: Some(start_request::Program::Argv(ArgumentVector { arguments })),
        ..StartRequest::default()
    }
}

#[tokio::test]
async fn a_command_says_what_it_wrote_and_how_it_ended() {
    let executor = Executor::start().await;
    let outcome = executor.run(text("echo out; echo err >&2; exit 3")).await;
    assert_eq!((outcome.stdout.as_slice(), outcome.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    let end = outcome.end.expect("an end");
    assert_eq!(end.end, Some(End::Exited(3)));
    assert_eq!((end.stdout_bytes, end.stderr_bytes), (4, 4));
    assert_eq!((end.stdout_dropped_bytes, end.stderr_dropped_bytes, end.survivors_killed), (0, 0, 0));
}

#[tokio::test]
async fn an_argument_vector_is_not_read_by_a_shell() {
    let executor = Executor::start().await;
    let outcome = executor.run(argv(&["printf", "%s|", "$HOME", "a b", "*"])).await;
    assert_eq!(outcome.stdout_text(), "$HOME|a b|*|");
    let outcome = executor.run(argv(&["no-such-program"])).await;
    let End::NotStarted(not_started) = outcome.cause() else { panic!("{outcome:?}") };
    assert_eq!(not_started.reason(), NotStartedReason::NotFound);
}

#[tokio::test]
async fn a_command_starts_in_its_folder_with_the_workspaces_own_variables() {
    let executor = Executor::start().await;
    std::fs::create_dir_all(executor.path("a/b")).expect("folders");
    std::os::unix::fs::symlink("a/b", executor.path("link")).expect("a link");
    let request = StartRequest {
        cwd: "link".to_owned(),
        ..text("pwd; echo $PWD $HOME $TMPDIR $SHELL; echo x > $TMPDIR/x; echo x > ~/x")
    };
    let outcome = executor.run(request).await;
    let (tree, state) = (executor.folder.tree.display(), executor.folder.state.display());
    assert_eq!(
        outcome.stdout_text(),
        format!("{tree}/a/b\n{tree}/a/b {state}/home {state}/tmp /bin/sh\n"),
        "{outcome:?}"
    );
    assert_eq!(outcome.cause(), End::Exited(0));
}

#[tokio::test]
async fn a_folder_to_start_in_stays_beneath_the_root() {
    let executor = Executor::start().await;
    std::os::unix::fs::symlink("/etc", executor.path("out")).expect("a link");
    std::fs::write(executor.path("file"), "").expect("a file");
    for (cwd, code) in [
        ("..", ErrorCode::PathEscapes),
        ("/etc", ErrorCode::PathEscapes),
        ("out", ErrorCode::PathEscapes),
        ("absent", ErrorCode::NotFound),
    ] {
        let request = StartRequest { cwd: cwd.to_owned(), ..text("true") };
        let refused = executor.start_command(request).await.expect_err(cwd);
        assert_eq!(code_of(&refused), code, "{cwd}");
    }
    let request = StartRequest { cwd: "file".to_owned(), ..text("true") };
    executor.start_command(request).await.expect_err("a file is no folder");
}

#[tokio::test]
async fn an_operation_id_starts_one_command_however_often_it_is_sent() {
    let executor = Executor::start().await;
    let request = StartRequest { context: Some(executor.context_of("the-one")), ..text("echo x >> once") };
    let repeats = (0..8).map(|_| executor.start_command(request.clone()));
    let started: Vec<_> = futures::future::join_all(repeats).await;
    let first = started[0].as_ref().expect("Start").clone();
    for repeat in started {
        assert_eq!(repeat.expect("Start"), first);
    }
    executor.attach(&first.command_id, [0, 0]).await;
    assert_eq!(executor.start_command(request).await.expect("a late repeat"), first);
    assert_eq!(std::fs::read_to_string(executor.path("once")).expect("written"), "x\n");

    let other = StartRequest { context: Some(executor.context_of("the-one")), ..text("echo y >> once") };
    let refused = executor.start_command(other).await.expect_err("other arguments");
    assert_eq!(code_of(&refused), ErrorCode::OperationConflict);
}

#[tokio::test]
async fn secrets_are_named_and_never_seen() {
    let folder = Folder::new();
    let request = BindRequest {
        variables: vec![
            variable("PATH", "/usr/bin:/bin"),
            variable("OPENAI_API_KEY", "sk-bound-secret"),
            variable("MOORING_TOKEN_KEY", "bound-secret"),
            variable("LD_PRELOAD", "/bound-secret.so"),
            variable("PLAIN", "kept"),
        ],
        ..folder.bind_request()
    };
    let executor = Executor::start_bound(folder, request).await;
    let request = StartRequest {
        env: vec![variable("GITHUB_TOKEN", "call-secret"), variable("OWN", "given")],
        ..text(
            "env; echo; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c -e -secret",
        )
    };
    let started = executor.start_command(request).await.expect("Start");
    assert_eq!(
        started.removed_variables,
        ["GITHUB_TOKEN", "LD_PRELOAD", "MOORING_TOKEN_KEY", "OPENAI_API_KEY"]
    );
    let outcome = executor.attach(&started.command_id, [0, 0]).await;
    let seen = outcome.stdout_text();
    assert!(seen.contains("PLAIN=kept\n") && seen.contains("OWN=given\n"), "{seen}");
    assert!(!seen.contains("-secret") && !seen.contains("API_KEY"), "{seen}");
    assert!(seen.ends_with("\n0\n"), "{seen}");
}

#[tokio::test]
async fn a_text_longer_than_any_argument_may_be_runs() {
    let executor = Executor::start().await;
    let mut long = b"echo begin\n: '".to_vec();
    long.extend(std::iter::repeat_n(b'x', 900 * 1024));
    long.extend_from_slice(b"'\necho end\n");
    assert_eq!(executor.run(text(long)).await.stdout_text(), "begin\nend\n");
    let refused = executor.start_command(text(vec![b'#'; 3 << 20])).await.expect_err("3 MiB");
    assert_eq!(code_of(&refused), ErrorCode::TooLarge);
}

#[tokio::test]
async fn requests_out_of_bounds_are_refused_with_a_code() {
    let executor = Executor::start().await;
    let timeout = |timeout_millis| StartRequest { timeout_millis, ..text("true") };
    let cases = [
        ("no program", StartRequest::default(), ErrorCode::InvalidArgument),
        ("empty text", text(""), ErrorCode::InvalidArgument),
        ("NUL in a text", text(b"echo\0".to_vec()), ErrorCode::InvalidArgument),
        ("no arguments", argv(&[]), ErrorCode::InvalidArgument),
        ("an empty program", argv(&[""]), ErrorCode::InvalidArgument),
        ("NUL in an argument", argv(&["echo", "\0"]), ErrorCode::InvalidArgument),
        ("1025 arguments", argv(&vec!["x"; 1025]), ErrorCode::InvalidArgument),
        ("a long argument", argv(&["echo", &"x".repeat(129 << 10)]), ErrorCode::TooLarge),
        ("a negative timeout", timeout(-1), ErrorCode::InvalidArgument),
        ("a timeout over the limit", timeout(3_600_001), ErrorCode::InvalidArgument),
        ("the longest timeout", timeout(i64::MAX), ErrorCode::InvalidArgument),
        (
            "a name with =",
            StartRequest { env: vec![variable("A=B", "")], ..text("true") },
            ErrorCode::InvalidArgument,
        ),
        (
            "257 variables",
            StartRequest { env: vec![variable("A", ""); 257], ..text("true") },
            ErrorCode::InvalidArgument,
        ),
        (
            "a terminal",
            StartRequest { pty: Some(PtySize { columns: 80, rows: 24 }), ..text("true") },
            ErrorCode::Unsupported,
        ),
        (
            "a seed credential",
            StartRequest { use_seed_credential: true, ..text("true") },
            ErrorCode::Unsupported,
        ),
    ];
    for (case, request, code) in cases {
        let refused = executor.start_command(request).await.expect_err(case);
        assert_eq!(code_of(&refused), code, "{case}");
    }
    let list = ListRequest { context: executor.look() };
    let list = executor.commands().list(list).await.expect("List").into_inner();
    assert_eq!(list.commands, []);
}

#[tokio::test]
async fn standard_input_is_null_unless_it_was_asked_for() {
    let executor = Executor::start().await;
    assert_eq!(executor.run(text("cat; readlink /proc/self/fd/0")).await.stdout_text(), "/dev/null\n");

    let request = StartRequest { stdin: true, ..text("cat; echo done") };
    let started = executor.start_command(request).await.expect("Start");
    for (content, close) in [("one ", false), ("two ", false), ("three ", true)] {
        let request = WriteInputRequest {
            context: executor.act(),
            command_id: started.command_id.clone(),
            content: content.into(),
            close,
        };
        executor.commands().write_input(request).await.expect("WriteInput");
    }
    let outcome = executor.attach(&started.command_id, [0, 0]).await;
    assert_eq!(outcome.stdout_text(), "one two three done\n");
    let request = WriteInputRequest {
        context: executor.act(),
        command_id: started.command_id,
        content: "late".into(),
        close: false,
    };
    executor.commands().write_input(request).await.expect_err("the input is closed");
}

#[tokio::test]
async fn more_background_commands_than_may_live_are_busy() {
    let executor = Executor::start().await;
    let request = || StartRequest { background: true, ..text("sleep 1000") };
    let mut started = Vec::new();
    for _ in 0..8 {
        started.push(executor.start_command(request()).await.expect("Start").command_id);
    }
    let context = Some(executor.context_of("the-ninth"));
    let ninth = StartRequest { context, ..request() };
    let refused = executor.start_command(ninth.clone()).await.expect_err("the ninth");
    assert_eq!(code_of(&refused), ErrorCode::Busy);
    assert_eq!(executor.run(text("echo foreground")).await.stdout_text(), "foreground\n");
    executor.cancel(&started[0]).await;
    // Busy is no result: the same operation may be asked for again.
    executor.start_command(ninth).await.expect("room again");

    let list = ListRequest { context: executor.look() };
    let list = executor.commands().list(list).await.expect("List").into_inner().commands;
    assert_eq!(list.len(), 10);
    assert_eq!(list[0].command_id, started[0]);
    assert_eq!(list.iter().filter(|command| command.end.is_none()).count(), 8);
}
