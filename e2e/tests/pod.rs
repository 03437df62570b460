//! The two halves of an executor as a pod starts them, without a cluster: mutual TLS, Bind by an operator, calls by a harness.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use mooring_e2e::execution::{Authority, Executor, Identity, Place, Program, Target, Tree, code};
use mooring_e2e::fixture::{await_condition, binary};
use mooring_proto::v1::command_end::End;
use mooring_proto::v1::{
    BindRequest, EnvironmentKind, EnvironmentRef, EnvironmentVariable, ErrorCode, Shell,
};
use mooring_proto::{PROTOCOL, certificate};

const DEADLINE: Duration = Duration::from_secs(20);

/// A running pair. Dropping it ends both.
struct Pair {
    folder: tempfile::TempDir,
    halves: Vec<Child>,
    address: SocketAddr,
    name: String,
    authority: Authority,
}

impl Drop for Pair {
    fn drop(&mut self) {
        for half in &mut self.halves {
            // Both fail harmlessly when it has ended.
            let _ = half.kill();
            let _ = half.wait();
        }
    }
}

fn target(epoch: u64) -> Target {
    let environment = EnvironmentRef {
        kind: EnvironmentKind::Kubernetes.into(),
        id: "team/one/00000000-0000-0000-0000-000000000001".to_owned(),
        revision: "0123456789abcdef0123456789abcdef".to_owned(),
    };
    Target { environment, epoch, workspace_id: String::new() }
}

impl Pair {
    fn start() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mooring-pod-").tempdir()?;
        let (name, authority) = (certificate::executor("ses-1-1", "team"), Authority::make()?);
        for sub in ["tls", "link", "workspace"] {
            std::fs::create_dir(folder.path().join(sub))?;
        }
        let server = authority.certify_server(&name)?;
        let files =
            [("tls.crt", &server.certificate), ("tls.key", &server.key), ("ca.crt", &server.authority)];
        for (file, text) in files {
            std::fs::write(folder.path().join("tls").join(file), text)?;
        }
        // Free a moment ago; nothing else on this machine is told of it.
        let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut pair = Self { folder, halves: Vec::new(), address, name, authority };
        pair.spawn_runner()?;
        let root = pair.folder.path().to_owned();
        let listen = address.to_string();
        pair.spawn(&[
            "serve".as_ref(),
            "--listen".as_ref(),
            listen.as_ref(),
            "--tls".as_ref(),
            root.join("tls").as_ref(),
            "--runner-socket".as_ref(),
            root.join("link/runner.sock").as_ref(),
            "--workspace".as_ref(),
            root.join("workspace").as_ref(),
        ])?;
        Ok(pair)
    }

    fn spawn_runner(&mut self) -> anyhow::Result<()> {
        let socket = self.folder.path().join("link/runner.sock");
        self.spawn(&["run".as_ref(), "--link".as_ref(), socket.as_ref()])
    }

    fn spawn(&mut self, arguments: &[&Path]) -> anyhow::Result<()> {
        let mut command = Command::new(binary("mooring-executor")?);
        command.args(arguments).stdin(Stdio::null()).env_clear();
        self.halves.push(command.spawn().context("start a half")?);
        Ok(())
    }

    async fn connect(&self, identity: &Identity, target: Target) -> anyhow::Result<Executor> {
        await_condition(DEADLINE, "the executor listens", async || {
            let target = target.clone();
            Executor::connect(self.address, &self.name, identity, &Place::Here, target).await.ok()
        })
        .await
    }

    async fn bind(&self, epoch: u64) -> anyhow::Result<Executor> {
        let operator = self.connect(&self.authority.operator()?, target(epoch)).await?;
        let request = BindRequest {
            environment: Some(target(epoch).environment),
            epoch,
            protocol: Some(PROTOCOL),
            variables: vec![EnvironmentVariable {
                name: b"PATH".as_slice().into(),
                value: std::env::var_os("PATH").unwrap_or_default().into_encoded_bytes().into(),
            }],
            shell: Shell::Bash.into(),
            may_be_new: true,
            ..BindRequest::default()
        };
        operator.workspaces().bind(request).await.context("bind")?;
        self.connect(&self.authority.harness()?, target(epoch)).await
    }
}

#[tokio::test]
async fn an_operator_binds_and_a_harness_works() {
    let pair = Pair::start().expect("pair");
    let harness = pair.bind(1).await.expect("bind");
    harness.write("a/b.txt", b"words\n").await.expect("write");
    assert_eq!(harness.read("a/b.txt").await.expect("read"), b"words\n");
    let finished = harness.run(&Program::shell("cat a/b.txt; exit 3")).await.expect("run");
    assert_eq!((finished.end.end, finished.text().as_str()), (Some(End::Exited(3)), "words\n"));
    let stale = harness.with(|target| target.epoch = 2);
    assert_eq!(code(&stale.list("").await.expect_err("another epoch")), Some(ErrorCode::StaleEpoch));
    let operator =
        pair.connect(&pair.authority.operator().expect("operator"), target(1)).await.expect("again");
    let refused = operator.list("").await.expect_err("an operator reads no files");
    assert_eq!(code(&refused), Some(ErrorCode::PermissionDenied));
}

#[tokio::test]
async fn this_repository_is_imported_with_its_history() {
    let pair = Pair::start().expect("pair");
    let harness = pair.bind(1).await.expect("bind");
    let tree = Tree::checkout().await.expect("checkout");
    let imported = harness.import(&tree, "").await.expect("import");
    assert_eq!(imported.response.files_written, tree.files());
    let finished = harness.run(&Program::shell("git log -1 --format=%H && git status --porcelain")).await;
    let finished = finished.expect("git");
    let head = tree.git(&["rev-parse", "HEAD"]).await.expect("HEAD");
    assert!(finished.is_success() && finished.text().starts_with(&head), "{}", finished.told());
}

#[tokio::test]
async fn a_runner_that_is_killed_loses_its_commands_and_the_next_one_serves() {
    let mut pair = Pair::start().expect("pair");
    let harness = pair.bind(1).await.expect("bind");
    let program = Program::argv(["sleep", "1000"]);
    let command = harness.run_once_possible(&Program::shell("true")).await.expect("first");
    assert!(command.0.is_success());
    let command = harness.start(&program).await.expect("start").command_id;
    pair.halves[0].kill().expect("kill the runner");
    let finished = harness.follow(&command).await.expect("its end");
    assert!(matches!(finished.end.end, Some(End::RunnerLost(_))), "{}", finished.told());
    pair.spawn_runner().expect("the next runner");
    let (finished, _) = harness.run_once_possible(&Program::shell("echo again")).await.expect("again");
    assert_eq!(finished.text(), "again\n");
}
