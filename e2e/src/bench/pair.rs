//! The two halves of an executor, started as the harness starts them, and its clients.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use hyper_util::rt::TokioIo;
use mooring_proto::v1::{
    Actor, BindRequest, EnvironmentKind, EnvironmentRef, EnvironmentVariable, Lease, LocalLayout,
    RequestContext, actor::Actor as ActorKind, command_service_client::CommandServiceClient,
    file_service_client::FileServiceClient, workspace_service_client::WorkspaceServiceClient,
};
use mooring_proto::{MAX_MESSAGE_BYTES, PROTOCOL};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tonic::transport::{Channel, Endpoint, Uri};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::{await_condition, binary};

/// Time that any single thing may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Two halves that run, bound to a folder of their own. Dropping it ends them.
pub(super) struct Pair {
    channel: Channel,
    halves: Halves,
    environment: EnvironmentRef,
    tree: tempfile::TempDir,
    state: tempfile::TempDir,
    operations: AtomicU64,
}

struct Halves {
    serve: Child,
    run: Child,
}

/// Two halves that answer and are not bound yet.
pub(super) struct Answering {
    channel: Channel,
    halves: Halves,
}

impl Answering {
    /// Starts both halves and waits for the first answer.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let (grpc_here, grpc_there) = pair_of(SocketType::STREAM)?;
        let (link_serve, link_run) = pair_of(SocketType::SEQPACKET)?;
        let program = binary("mooring-executor")?;
        let descriptor = |fd: &OwnedFd| fd.as_raw_fd().to_string();
        let mut serve = Command::new(&program);
        serve.args(["serve", "--local", "--grpc-fd", &descriptor(&grpc_there)]);
        serve.args(["--runner-fd", &descriptor(&link_serve)]);
        let serve = spawn_with(serve, &[&grpc_there, &link_serve])?;
        let mut run = Command::new(&program);
        run.args(["run", "--link-fd", &descriptor(&link_run)]);
        let halves = Halves { serve, run: spawn_with(run, &[&link_run])? };
        drop((grpc_there, link_serve, link_run));
        let channel = connect(grpc_here).await?;
        let request = HealthCheckRequest { service: String::new() };
        HealthClient::new(channel.clone()).check(request).await.context("first RPC")?;
        Ok(Self { channel, halves })
    }

    /// Binds them to a new folder below `folder`.
    pub(super) async fn bind(self, folder: &Path) -> anyhow::Result<Pair> {
        let tree = tempfile::Builder::new().prefix("tree-").tempdir_in(folder)?;
        let state = tempfile::Builder::new().prefix("state-").tempdir_in(folder)?;
        let environment = EnvironmentRef {
            kind: EnvironmentKind::Local.into(),
            id: tree.path().canonicalize()?.to_str().context("a UTF-8 path")?.to_owned(),
            revision: "0123456789abcdef0123456789abcdef".to_owned(),
        };
        let Self { channel, halves } = self;
        let pair = Pair { channel, halves, environment, tree, state, operations: AtomicU64::new(1) };
        pair.bind().await?;
        Ok(pair)
    }
}

impl Pair {
    /// Starts both halves and binds them to a new folder below `folder`.
    pub(super) async fn start(folder: &Path) -> anyhow::Result<Self> {
        Answering::start().await?.bind(folder).await
    }

    async fn bind(&self) -> anyhow::Result<()> {
        let path = std::env::var_os("PATH").context("PATH")?;
        let request = BindRequest {
            environment: Some(self.environment.clone()),
            epoch: 1,
            protocol: Some(PROTOCOL),
            variables: vec![EnvironmentVariable {
                name: b"PATH".as_slice().into(),
                value: path.into_encoded_bytes().into(),
            }],
            local: Some(LocalLayout {
                tree: self.environment.id.clone(),
                state: self.state.path().canonicalize()?.to_str().context("a UTF-8 path")?.to_owned(),
                read_only: vec![],
            }),
            ..BindRequest::default()
        };
        WorkspaceServiceClient::new(self.channel.clone()).bind(request).await.context("bind")?;
        Ok(())
    }

    /// The folder that it serves.
    pub(super) fn tree(&self) -> &Path {
        self.tree.path()
    }

    /// The context of a new operation.
    pub(super) fn context(&self) -> RequestContext {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        RequestContext {
            environment: Some(self.environment.clone()),
            epoch: 1,
            workspace_id: String::new(),
            actor: Some(Actor {
                actor: Some(ActorKind::Lease(Lease { session_id: "bench".to_owned(), lease_epoch: 1 })),
            }),
            operation_id: format!("bench-{number}"),
        }
    }

    pub(super) fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn commands(&self) -> CommandServiceClient<Channel> {
        CommandServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(super) fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel.clone())
    }

    /// Resident memory of the serving half in KiB, as /proc/PID/status says (proc(5)).
    pub(super) fn serve_rss_kib(&self) -> anyhow::Result<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.halves.serve.id())).context("status")?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("VmRSS")?;
        line.split_ascii_whitespace().nth(1).context("VmRSS value")?.parse().context("VmRSS number")
    }

    /// Closes the connection and waits until both halves ended by themselves.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        let Self { channel, mut halves, .. } = self;
        drop(channel);
        await_condition(DEADLINE, "both halves to end with their sockets", async || {
            let ended = halves.serve.try_wait().ok()?.is_some() & halves.run.try_wait().ok()?.is_some();
            ended.then_some(())
        })
        .await
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        for child in [&mut self.serve, &mut self.run] {
            // Both fail harmlessly when it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn pair_of(kind: SocketType) -> anyhow::Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).context("socket pair")
}

/// Starts `command` with nothing of ours but `descriptors`.
///
/// They lose close-on-exec for the moment of the start. Nothing else is started at the same time: the rows run one by one.
fn spawn_with(mut command: Command, descriptors: &[&OwnedFd]) -> anyhow::Result<Child> {
    use rustix::io::{FdFlags, fcntl_setfd};
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for fd in descriptors {
        fcntl_setfd(fd.as_fd(), FdFlags::empty())?;
    }
    let child = command.spawn().context("start mooring-executor");
    for fd in descriptors {
        fcntl_setfd(fd.as_fd(), FdFlags::CLOEXEC)?;
    }
    child
}

async fn connect(socket: OwnedFd) -> anyhow::Result<Channel> {
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    let mut stream = Some(tokio::net::UnixStream::from_std(stream)?);
    let connector = tower::service_fn(move |_: Uri| {
        let taken = stream.take().ok_or_else(|| std::io::Error::other("the one connection is used up"));
        async move { taken.map(TokioIo::new) }
    });
    // The address is never resolved; HTTP/2 wants one.
    Endpoint::from_static("http://executor").connect_with_connector(connector).await.context("connect")
}
