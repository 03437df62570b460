//! One live executor: the typed client of its socket, and its end.

use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use mooring_proto::v1::command_service_client::CommandServiceClient;
use mooring_proto::v1::file_service_client::FileServiceClient;
use mooring_proto::v1::workspace_service_client::WorkspaceServiceClient;
use mooring_proto::{MAX_MESSAGE_BYTES, PROTOCOL, v1};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::given::Given;
use super::process::{Halves, start};
use crate::session::OperationId;

/// Bind tries the confinement on this very machine and may wait for a predecessor to let go of the state folder.
const BIND_PATIENCE: Duration = Duration::from_secs(30);
/// From the polite signal to the kill. The executor gives calls 5 s and ends its commands with TERM, 2 s, KILL.
const GRACE: Duration = Duration::from_secs(12);

/// Why there is no working executor.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The product's own folder for environments cannot be made.
    #[error("cannot make the folder for the environment's state")]
    State(#[source] io::Error),
    /// The program cannot be run.
    #[error("cannot start the executor")]
    Spawn(#[source] io::Error),
    /// It does not speak on its socket.
    #[error("the executor does not answer")]
    Connect(#[source] tonic::transport::Error),
    /// It refused what it was to become.
    #[error("the executor refused the environment: {}", .0.message())]
    Bind(#[source] Box<tonic::Status>),
    /// It did not answer in time.
    #[error("the executor was not ready within {BIND_PATIENCE:?}")]
    Slow,
    /// A path that the protocol cannot carry.
    #[error("a folder of the environment has a name that is not UTF-8")]
    NotUtf8,
}

/// Where an executor comes from.
#[derive(Clone)]
pub(crate) enum Launch {
    /// This program, as two processes.
    Program(PathBuf),
    /// A test's own process.
    #[cfg(test)]
    Within(super::fake::FakeExecutor),
}

/// What an executor is to become.
pub(crate) struct Binding<'a> {
    pub(crate) launch: &'a Launch,
    pub(crate) reference: v1::EnvironmentRef,
    pub(crate) epoch: u64,
    pub(crate) state: &'a Path,
    pub(crate) given: &'a Given,
}

/// A live executor. Clones are the same one; it is ended by [`Executor::end`] or when this process ends.
#[derive(Debug, Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    channel: Channel,
    reference: v1::EnvironmentRef,
    epoch: u64,
    boot_id: String,
    root: String,
    confinement: v1::Confinement,
    tokens: Tokens,
}

/// The life of both halves.
#[derive(Debug, Clone, Default)]
struct Tokens {
    /// Cancelled once either half has ended: nothing new is sent to it.
    gone: CancellationToken,
    /// Asks the owner task to end both halves.
    stop: CancellationToken,
    /// Cancelled once both halves are reaped.
    reaped: CancellationToken,
}

impl Executor {
    /// Starts a pair and binds it. On any error neither half lives.
    pub(crate) async fn start(binding: Binding<'_>) -> Result<Self, StartError> {
        let request = bind_request(&binding)?;
        match binding.launch {
            Launch::Program(program) => {
                let Halves { serve, run, stream } = start(program).map_err(StartError::Spawn)?;
                let executor = Self::bind(stream, request, &binding).await?;
                tokio::spawn(own(serve, run, executor.tokens()));
                Ok(executor)
            }
            #[cfg(test)]
            Launch::Within(fake) => {
                let (stream, dead) = fake.start().map_err(StartError::Spawn)?;
                let executor = Self::bind(stream, request, &binding).await?;
                let Tokens { gone, stop, reaped } = executor.tokens();
                tokio::spawn(async move {
                    tokio::select! { () = dead.cancelled() => {}, () = stop.cancelled() => dead.cancel() }
                    gone.cancel();
                    reaped.cancel();
                });
                Ok(executor)
            }
        }
    }

    async fn bind(
        stream: UnixStream,
        request: v1::BindRequest,
        binding: &Binding<'_>,
    ) -> Result<Self, StartError> {
        let channel = connect(stream).await?;
        let mut workspaces = WorkspaceServiceClient::new(channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let bound = match timeout(BIND_PATIENCE, workspaces.bind(request)).await {
            Err(_) => return Err(StartError::Slow),
            Ok(Err(status)) => return Err(StartError::Bind(Box::new(status))),
            Ok(Ok(response)) => response.into_inner(),
        };
        tracing::info!(boot_id = bound.boot_id, epoch = binding.epoch, "executor bound");
        Ok(Self {
            shared: Arc::new(Shared {
                channel,
                reference: binding.reference.clone(),
                epoch: binding.epoch,
                boot_id: bound.boot_id,
                root: bound.workspace.unwrap_or_default().root,
                confinement: bound.confinement.unwrap_or_default(),
                tokens: Tokens::default(),
            }),
        })
    }

    fn tokens(&self) -> Tokens {
        self.shared.tokens.clone()
    }

    /// Of this executor process. Another one never knew its operations and commands.
    pub fn boot_id(&self) -> &str {
        &self.shared.boot_id
    }

    /// The workspace root as commands see it.
    pub fn root(&self) -> &str {
        &self.shared.root
    }

    /// What holds the commands.
    pub fn confinement(&self) -> &v1::Confinement {
        &self.shared.confinement
    }

    /// Whether either half has ended.
    pub fn is_gone(&self) -> bool {
        self.shared.tokens.gone.is_cancelled()
    }

    /// Waits until either half has ended. Cancel-safe.
    pub async fn gone(&self) {
        self.shared.tokens.gone.cancelled().await;
    }

    /// Ends both halves, commands included, and waits until they are reaped: at most 12 s, then they are killed.
    pub async fn end(&self) {
        self.shared.tokens.stop.cancel();
        self.shared.tokens.reaped.cancelled().await;
    }

    /// The context of a call; `operation` for effects.
    pub(crate) fn context(&self, lease: &v1::Lease, operation: Option<OperationId>) -> v1::RequestContext {
        v1::RequestContext {
            environment: Some(self.shared.reference.clone()),
            epoch: self.shared.epoch,
            workspace_id: String::new(),
            actor: Some(v1::Actor { actor: Some(v1::actor::Actor::Lease(lease.clone())) }),
            operation_id: operation.map(|id| id.to_string()).unwrap_or_default(),
        }
    }

    /// The file calls.
    pub(crate) fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.shared.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }

    /// The command calls.
    pub(crate) fn commands(&self) -> CommandServiceClient<Channel> {
        CommandServiceClient::new(self.shared.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

fn bind_request(binding: &Binding<'_>) -> Result<v1::BindRequest, StartError> {
    let text = |path: &Path| path.to_str().map(ToOwned::to_owned).ok_or(StartError::NotUtf8);
    let variables = binding.given.variables.iter().map(|(name, value)| v1::EnvironmentVariable {
        name: name.clone().into_vec().into(),
        value: value.clone().into_vec().into(),
    });
    Ok(v1::BindRequest {
        environment: Some(binding.reference.clone()),
        epoch: binding.epoch,
        protocol: Some(PROTOCOL),
        limits: Some(v1::Limits::default()),
        variables: variables.collect(),
        readmitted_names: Vec::new(),
        seed: Some(v1::Seed { seed: Some(v1::seed::Seed::Empty(v1::EmptySeed {})) }),
        local: Some(v1::LocalLayout {
            tree: binding.reference.id.clone(),
            state: text(binding.state)?,
            // A folder whose name cannot be told is only not readable.
            read_only: binding.given.read_only.iter().filter_map(|folder| text(folder).ok()).collect(),
        }),
        shell: v1::Shell::Sh.into(),
        may_be_new: false,
    })
}

/// A channel over the one connection there is: once that is broken there is no other.
async fn connect(stream: UnixStream) -> Result<Channel, StartError> {
    let mut stream = Some(stream);
    let connector = service_fn(move |_: Uri| {
        let stream = stream.take();
        async move { stream.map(TokioIo::new).ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
    });
    let endpoint = Endpoint::from_static("http://executor.invalid").connect_timeout(BIND_PATIENCE);
    endpoint.connect_with_connector(connector).await.map_err(StartError::Connect)
}

/// Owns both halves until they are reaped. When one ends by itself the other is of no use for anything new, but is left
/// the grace to say how the commands ended.
async fn own(
    mut serve: tokio::process::Child,
    mut run: tokio::process::Child,
    Tokens { gone, stop, reaped }: Tokens,
) {
    tokio::select! {
        status = serve.wait() => tracing::warn!(?status, half = "serve", "executor ended"),
        status = run.wait() => tracing::warn!(?status, half = "run", "executor ended"),
        () = stop.cancelled() => {}
    }
    gone.cancel();
    let rest = async {
        if !stop.is_cancelled() {
            // The other half notices the broken link; what is asked of it until then is answered truthfully.
            let _ = timeout(GRACE, async { tokio::join!(serve.wait(), run.wait()) }).await;
        }
    };
    tokio::select! { () = rest => {}, () = stop.cancelled() => {} }
    signal(&serve);
    if timeout(GRACE, serve.wait()).await.is_err() {
        let _ = serve.kill().await;
    }
    // The runner ends when its link does.
    if timeout(GRACE, run.wait()).await.is_err() {
        let _ = run.kill().await;
    }
    reaped.cancel();
}

fn signal(child: &tokio::process::Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}
