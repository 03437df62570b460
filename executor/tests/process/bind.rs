//! Bind: idempotent, exact, and careful about the folders it is given.

use mooring_proto::v1::{
    BindRequest, EnvironmentKind, ErrorCode, ForkRequest, GitSeed, Limits, ListWorkspacesRequest,
    LocalLayout, ProtocolRange, Seed, seed,
};

use crate::fixture::{Executor, Folder, code_of, text, variable};

type Change = fn(&mut BindRequest);

fn layout(request: &mut BindRequest) -> &mut LocalLayout {
    request.local.as_mut().expect("a layout")
}

#[tokio::test]
async fn bind_is_idempotent_for_equal_arguments_and_refused_for_others() {
    let folder = Folder::new();
    let mut executor = Executor::start_unbound(folder.clone()).await;
    let first = executor.bind(folder.bind_request()).await.expect("Bind");
    assert_eq!(first.protocol, 1);
    assert_eq!(first.boot_id.len(), 32);
    let workspace = first.workspace.as_ref().expect("a workspace");
    assert_eq!(workspace.root, folder.tree.to_str().expect("UTF-8"));
    let confinement = first.confinement.as_ref().expect("a confinement");
    assert!(confinement.landlock_abi >= 6 && confinement.files_confined && confinement.signals_confined);
    assert_eq!(executor.bind(folder.bind_request()).await.expect("again"), first);

    let cases: [(&str, Change, ErrorCode); 3] = [
        ("variables", |r| r.variables.push(variable("A", "b")), ErrorCode::OperationConflict),
        ("epoch", |r| r.epoch = 2, ErrorCode::StaleEpoch),
        (
            "revision",
            |r| r.environment.as_mut().expect("one").revision = "f".repeat(32),
            ErrorCode::WrongEnvironment,
        ),
    ];
    for (case, change, code) in cases {
        let mut request = folder.bind_request();
        change(&mut request);
        assert_eq!(code_of(&executor.bind(request).await.expect_err(case)), code, "{case}");
    }
    let request = ListWorkspacesRequest { context: executor.look(), owner: String::new() };
    let listed = executor.workspaces().list_workspaces(request).await.expect("the list").into_inner();
    assert_eq!(listed.workspaces, [first.workspace.expect("a workspace")]);
}

#[tokio::test]
async fn a_bind_out_of_bounds_is_refused_and_binds_nothing() {
    let folder = Folder::new();
    let mut executor = Executor::start_unbound(folder.clone()).await;
    let cases: [(&str, Change, ErrorCode); 20] = [
        ("no environment", |r| r.environment = None, ErrorCode::InvalidArgument),
        ("no layout", |r| r.local = None, ErrorCode::InvalidArgument),
        (
            "kubernetes",
            |r| r.environment.as_mut().expect("one").kind = EnvironmentKind::Kubernetes.into(),
            ErrorCode::Unsupported,
        ),
        ("an unknown kind", |r| r.environment.as_mut().expect("one").kind = 9, ErrorCode::InvalidArgument),
        (
            "a short revision",
            |r| r.environment.as_mut().expect("one").revision.truncate(31),
            ErrorCode::InvalidArgument,
        ),
        ("epoch 0", |r| r.epoch = 0, ErrorCode::InvalidArgument),
        ("no protocol", |r| r.protocol = None, ErrorCode::InvalidArgument),
        ("a newer protocol", |r| r.protocol = Some(ProtocolRange { min: 2, max: 9 }), ErrorCode::Unsupported),
        (
            "a turned protocol",
            |r| r.protocol = Some(ProtocolRange { min: 2, max: 1 }),
            ErrorCode::InvalidArgument,
        ),
        ("an unknown shell", |r| r.shell = 7, ErrorCode::InvalidArgument),
        (
            "a git seed",
            |r| r.seed = Some(Seed { seed: Some(seed::Seed::Git(GitSeed::default())) }),
            ErrorCode::Unsupported,
        ),
        (
            "65 live commands",
            |r| r.limits = Some(Limits { live_commands: 65, ..Limits::default() }),
            ErrorCode::InvalidArgument,
        ),
        (
            "a product's name",
            |r| r.readmitted_names.push("MOORING_TOKEN_KEY".to_owned()),
            ErrorCode::InvalidArgument,
        ),
        ("a name with =", |r| r.variables.push(variable("A=B", "")), ErrorCode::InvalidArgument),
        ("another tree", |r| layout(r).tree.push_str("/.."), ErrorCode::InvalidArgument),
        ("a relative state", |r| layout(r).state = "state".to_owned(), ErrorCode::InvalidArgument),
        (
            "the state in the tree",
            |r| layout(r).state = layout(r).tree.clone() + "/state",
            ErrorCode::InvalidArgument,
        ),
        (
            "a grant that shows the state",
            |r| layout(r).read_only.push("/".to_owned()),
            ErrorCode::InvalidArgument,
        ),
        ("a grant of a file", |r| layout(r).read_only.push("/etc/passwd".to_owned()), ErrorCode::NotFound),
        (
            "a grant of nothing",
            |r| layout(r).read_only.push("/no/such/folder".to_owned()),
            ErrorCode::NotFound,
        ),
    ];
    for (case, change, code) in cases {
        let mut request = folder.bind_request();
        change(&mut request);
        let refused = executor.bind(request).await.expect_err(case);
        assert_eq!(code_of(&refused), code, "{case}: {refused:?}");
        for path in [&folder.tree, &folder.state] {
            assert!(!format!("{refused:?}").contains(path.to_str().expect("UTF-8")), "{refused:?}");
        }
    }
    executor.bind(folder.bind_request()).await.expect("still unbound");
}

#[tokio::test]
async fn a_tree_reached_through_a_link_is_no_environment() {
    let folder = Folder::new();
    let link = folder.tree.with_file_name("link");
    std::os::unix::fs::symlink(&folder.tree, &link).expect("a link");
    let link = link.to_str().expect("UTF-8").to_owned();
    let mut request = folder.bind_request();
    request.environment.as_mut().expect("one").id.clone_from(&link);
    layout(&mut request).tree = link;
    let mut executor = Executor::start_unbound(folder).await;
    let refused = executor.bind(request).await.expect_err("a link");
    assert_eq!(code_of(&refused), ErrorCode::InvalidArgument);
}

#[tokio::test]
async fn a_state_folder_serves_one_environment_and_one_executor() {
    let folder = Folder::new();
    let first = Executor::start_bound(folder.clone(), folder.bind_request()).await;
    let mode = std::os::unix::fs::MetadataExt::mode(&folder.state.metadata().expect("made"));
    assert_eq!(mode & 0o777, 0o700);
    let mut second = Executor::start_unbound(folder.clone()).await;
    let refused = second.bind(folder.bind_request()).await.expect_err("held");
    assert_eq!(code_of(&refused), ErrorCode::Busy);
    let workspace_id = first.workspace_id.clone();
    drop(first);
    second.bind(folder.bind_request()).await.expect("free again");
    assert_eq!(second.workspace_id, workspace_id, "the workspace keeps its name");
    drop(second);

    let mut third = Executor::start_unbound(folder.clone()).await;
    let mut request = folder.bind_request();
    request.environment.as_mut().expect("one").revision = "f".repeat(32);
    let refused = third.bind(request).await.expect_err("another revision");
    assert_eq!(code_of(&refused), ErrorCode::WrongEnvironment);
}

#[tokio::test]
async fn a_read_only_grant_can_be_read_and_not_written() {
    let folder = Folder::new();
    let shown = folder.tree.with_file_name("shown");
    let hidden = folder.tree.with_file_name("hidden");
    for path in [&shown, &hidden] {
        std::fs::create_dir(path).expect("a folder");
        std::fs::write(path.join("file"), "content\n").expect("a file");
    }
    let mut request = folder.bind_request();
    layout(&mut request).read_only.push(shown.to_str().expect("UTF-8").to_owned());
    let executor = Executor::start_bound(folder, request).await;
    let script = "cat ../shown/file; cat ../hidden/file 2>&1 >/dev/null | grep -c denied; echo x 2>&1 > ../shown/x; ls ../state 2>&1; echo x > ../state/leases";
    let outcome = executor.run(text(script)).await;
    let seen = outcome.stdout_text();
    assert!(seen.starts_with("content\n1\n"), "{seen}");
    assert!(!shown.join("x").exists() && !executor.folder.state.join("leases.next").exists());
    assert!(!std::fs::read_to_string(executor.folder.state.join("leases")).expect("kept").contains('x'));
}

#[tokio::test]
async fn what_is_not_built_says_so() {
    let executor = Executor::start().await;
    let request = ForkRequest { context: executor.act(), ..ForkRequest::default() };
    let refused = executor.workspaces().fork(request).await.expect_err("not built");
    assert_eq!(code_of(&refused), ErrorCode::Unsupported);
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
}
