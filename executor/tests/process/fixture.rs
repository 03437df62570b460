//! One executor: both halves, a folder of its own, and a client.

mod authority;
mod context;
mod ground;
mod outcome;
mod pod;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use mooring_proto::v1::command_service_client::CommandServiceClient;
use mooring_proto::v1::file_service_client::FileServiceClient;
use mooring_proto::v1::workspace_service_client::WorkspaceServiceClient;
use mooring_proto::v1::{
    BindRequest, BindResponse, EnvironmentKind, EnvironmentRef, EnvironmentVariable, ErrorCode, LocalLayout,
    ProtocolRange,
};
use mooring_proto::{MAX_MESSAGE_BYTES, detail_of};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

pub(crate) use authority::{Authority, Shown};
pub(crate) use context::{lease, person};
pub(crate) use ground::Ground;
pub(crate) use outcome::text;
pub(crate) use pod::{Pod, exit_code};

/// Longer than anything under test takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Both halves of an executor with an empty tree. They end when it is dropped.
pub(crate) struct Executor {
    pub(crate) serve: Mutex<Child>,
    pub(crate) run: Mutex<Child>,
    /// To files and commands.
    pub(crate) channel: Channel,
    /// To workspaces.
    pub(crate) operator: Channel,
    pub(crate) folder: Folder,
    pub(crate) environment: EnvironmentRef,
    pub(crate) epoch: u64,
    /// Of the main workspace, once bound.
    pub(crate) workspace_id: String,
}

/// A tree and a state folder, canonical, shared by the executors that are started over them.
#[derive(Clone)]
pub(crate) struct Folder {
    _keep: std::sync::Arc<TempDir>,
    pub(crate) tree: PathBuf,
    pub(crate) state: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let keep = tempfile::tempdir().expect("a temporary folder");
        let base = keep.path().canonicalize().expect("canonical");
        let (tree, state) = (base.join("tree"), base.join("state"));
        std::fs::create_dir(&tree).expect("a tree");
        Self { _keep: keep.into(), tree, state }
    }

    pub(crate) fn environment(&self) -> EnvironmentRef {
        EnvironmentRef {
            kind: EnvironmentKind::Local.into(),
            id: self.tree.to_str().expect("UTF-8").to_owned(),
            revision: "0123456789abcdef0123456789abcdef".to_owned(),
        }
    }

    /// A Bind of this folder with nothing special in it.
    pub(crate) fn bind_request(&self) -> BindRequest {
        BindRequest {
            environment: Some(self.environment()),
            epoch: 1,
            protocol: Some(ProtocolRange { min: 1, max: 1 }),
            limits: None,
            variables: vec![variable("PATH", "/usr/local/bin:/usr/bin:/bin")],
            readmitted_names: Vec::new(),
            seed: None,
            local: Some(LocalLayout {
                tree: self.tree.to_str().expect("UTF-8").to_owned(),
                state: self.state.to_str().expect("UTF-8").to_owned(),
                read_only: Vec::new(),
            }),
            shell: 0,
            may_be_new: false,
        }
    }
}

pub(crate) fn variable(name: &str, value: &str) -> EnvironmentVariable {
    EnvironmentVariable { name: name.to_owned().into(), value: value.to_owned().into() }
}

impl Executor {
    /// A bound executor over a fresh folder.
    pub(crate) async fn start() -> Self {
        let folder = Folder::new();
        let request = folder.bind_request();
        Self::start_bound(folder, request).await
    }

    /// An executor over `folder`, bound by `request`.
    pub(crate) async fn start_bound(folder: Folder, request: BindRequest) -> Self {
        let mut executor = Self::start_unbound(folder).await;
        executor.bind(request).await.expect("Bind");
        executor
    }

    /// The two processes and a channel to them.
    pub(crate) async fn start_unbound(folder: Folder) -> Self {
        let (mut executor, socket) = Self::start_raw(folder);
        executor.channel = channel_over(socket).await;
        executor.operator = executor.channel.clone();
        executor
    }

    /// The two processes, and the socket on which gRPC is expected. The channel leads nowhere.
    pub(crate) fn start_raw(folder: Folder) -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let (serve_end, run_end) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("a socket pair");
        let binary = env!("CARGO_BIN_EXE_mooring-executor");
        // Handed down as standard streams, the one way that needs no unsafe code and leaks into no other child.
        let serve = Command::new(binary)
            .args(["serve", "--grpc-fd", "0", "--runner-fd", "1", "--local"])
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(serve_end)
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the serving half");
        let run = Command::new(binary)
            .args(["run", "--link-fd", "0"])
            .env_clear()
            .stdin(run_end)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the running half");
        let environment = folder.environment();
        let executor = Self {
            serve: serve.into(),
            run: run.into(),
            channel: nobody(),
            operator: nobody(),
            folder,
            environment,
            epoch: 1,
            workspace_id: String::new(),
        };
        (executor, ours)
    }

    /// Binds, and remembers the workspace.
    pub(crate) async fn bind(&mut self, request: BindRequest) -> Result<BindResponse, Status> {
        let epoch = request.epoch;
        let response = self.workspaces().bind(request).await.map(Response::into_inner)?;
        self.epoch = epoch;
        self.workspace_id.clone_from(&response.workspace.as_ref().expect("a workspace").workspace_id);
        Ok(response)
    }

    pub(crate) fn commands(&self) -> CommandServiceClient<Channel> {
        CommandServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn workspaces(&self) -> WorkspaceServiceClient<Channel> {
        WorkspaceServiceClient::new(self.operator.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    pub(crate) fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The path of `name` in the tree.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.tree.join(name)
    }

    /// Kills one half with SIGKILL and waits for it.
    pub(crate) fn kill(half: &Mutex<Child>) {
        let mut half = half.lock().expect("one test");
        // It may be gone already.
        let _ = half.kill();
        half.wait().expect("the half was ours");
    }

    /// The most memory the serving half ever had resident, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let id = self.serve.lock().expect("one test").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a live process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        Self::kill(&self.serve);
        Self::kill(&self.run);
    }
}

/// A channel that leads nowhere.
pub(crate) fn nobody() -> Channel {
    Endpoint::from_static("http://nobody.invalid").connect_lazy()
}

/// A channel over an already connected stream: one connection, no second one.
async fn channel_over(stream: UnixStream) -> Channel {
    stream.set_nonblocking(true).expect("non-blocking");
    let stream = tokio::net::UnixStream::from_std(stream).expect("a tokio stream");
    let stream = std::sync::Arc::new(Mutex::new(Some(stream)));
    let connector = tower::service_fn(move |_| {
        let stream = stream.lock().expect("one connection").take();
        async move {
            stream.map(TokioIo::new).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotConnected))
        }
    });
    Endpoint::from_static("http://executor.invalid")
        .connect_with_connector(connector)
        .await
        .expect("a channel")
}

/// The stable code of a refusal.
#[track_caller]
pub(crate) fn code_of(status: &Status) -> ErrorCode {
    detail_of(status).unwrap_or_else(|| panic!("no detail in {status:?}")).code()
}

/// Waits until `holds`, looking again every few milliseconds.
pub(crate) async fn await_condition(what: &str, mut holds: impl FnMut() -> bool) {
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    let waiting = async {
        while !holds() {
            tick.tick().await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, waiting).await.is_ok(), "never: {what}");
}

/// Whether the process `id` is there and no zombie.
pub(crate) fn lives(id: &str) -> bool {
    std::fs::read_to_string(Path::new("/proc").join(id).join("stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}
