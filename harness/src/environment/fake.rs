//! An executor inside a test's own process, behind the same socket and protocol: it counts what it carries out, and dies
//! when it is told to. Commands are `print TEXT`, `fail`, `hang` (until released, cancelled or dead); any other exits 0.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, BoxStream, StreamExt as _};
use mooring_proto::refusal;
use mooring_proto::v1::command_service_server::{CommandService, CommandServiceServer};
use mooring_proto::v1::file_service_server::{FileService, FileServiceServer};
use mooring_proto::v1::workspace_service_server::{WorkspaceService, WorkspaceServiceServer};
use mooring_proto::v1::{self, ErrorCode, attach_response, command_end::End};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

/// A fake that can be started again and again; what it was asked for stays.
#[derive(Clone, Default)]
pub(crate) struct FakeExecutor {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    boots: u32,
    files: BTreeMap<String, String>,
    ran: Vec<String>,
    reads: u32,
    live: Option<CancellationToken>,
    hanging: Vec<watch::Sender<Option<End>>>,
    variables: Vec<String>,
}

impl FakeExecutor {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let value = change(&mut self.state());
        self.shared.changed.send_modify(|count| *count += 1);
        value
    }

    /// Puts a file into the workspace.
    pub(crate) fn put(&self, path: &str, content: &str) {
        self.change(|state| state.files.insert(path.to_owned(), content.to_owned()));
    }

    /// A file's content.
    pub(crate) fn file(&self, path: &str) -> Option<String> {
        self.state().files.get(path).cloned()
    }

    /// Every effect in the order in which it was carried out: command texts, `write PATH`.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.state().ran.clone()
    }

    /// How many files were read.
    pub(crate) fn reads(&self) -> u32 {
        self.state().reads
    }

    /// How often it was started.
    pub(crate) fn boots(&self) -> u32 {
        self.state().boots
    }

    /// Waits until `ran` holds an effect with this text.
    pub(crate) async fn until_ran(&self, text: &str) {
        let mut changed = self.shared.changed.subscribe();
        let found = tokio::time::timeout(std::time::Duration::from_secs(20), async {
            while !self.ran().iter().any(|ran| ran == text) {
                changed.changed().await.expect("the fake lives");
            }
        });
        found.await.expect("in time");
    }

    /// Lets every command that hangs exit with 0.
    pub(crate) fn release(&self) {
        for hanging in self.state().hanging.drain(..) {
            hanging.send_if_modified(|end| {
                let lives = end.is_none();
                end.get_or_insert(End::Exited(0));
                lives
            });
        }
    }

    /// Names of the variables of the last Bind.
    pub(crate) fn variables(&self) -> Vec<String> {
        self.state().variables.clone()
    }

    /// Ends the process that it stands for, at once.
    pub(crate) fn kill(&self) {
        if let Some(live) = self.state().live.take() {
            live.cancel();
        }
    }

    /// Starts it; the token is cancelled when it is dead.
    pub(crate) fn start(&self) -> std::io::Result<(UnixStream, CancellationToken)> {
        let (ours, theirs) = UnixStream::pair()?;
        // Connections live in tasks of their own; only the end of the socket ends them.
        let theirs = theirs.into_std()?;
        let socket = theirs.try_clone()?;
        let theirs = UnixStream::from_std(theirs)?;
        let dead = CancellationToken::new();
        let boot = self.change(|state| {
            state.boots += 1;
            state.live = Some(dead.clone());
            state.boots
        });
        let process = Process { fake: self.clone(), boot, alive: Arc::default() };
        let server = tonic::transport::Server::builder()
            .add_service(WorkspaceServiceServer::new(process.clone()))
            .add_service(FileServiceServer::new(process.clone()))
            .add_service(CommandServiceServer::new(process))
            .serve_with_incoming(stream::iter([Ok::<_, std::io::Error>(theirs)]).chain(stream::pending()));
        let end = dead.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = server => {}
                () = end.cancelled() => {}
            }
            let _ = socket.shutdown(std::net::Shutdown::Both);
        });
        Ok((ours, dead))
    }
}

#[derive(Clone)]
struct Process {
    fake: FakeExecutor,
    boot: u32,
    alive: Arc<Mutex<Alive>>,
}

#[derive(Default)]
struct Alive {
    read: HashSet<String>,
    /// By operation id: what the first call with it gave.
    commands: HashMap<String, (String, watch::Sender<Option<End>>)>,
    written: HashMap<String, v1::WriteResponse>,
    outputs: HashMap<String, String>,
}

impl Process {
    fn alive(&self) -> MutexGuard<'_, Alive> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by_id(&self, id: &str) -> Result<watch::Sender<Option<End>>, Status> {
        let alive = self.alive();
        let found = alive.commands.values().find(|(command, _)| command == id);
        found.map(|(_, end)| end.clone()).ok_or_else(|| refusal(ErrorCode::NotFound, "no such command", []))
    }
}

fn end_of(end: End) -> v1::CommandEnd {
    v1::CommandEnd { end: Some(end), duration_millis: 5, ..Default::default() }
}

fn operation(context: Option<&v1::RequestContext>) -> Result<String, Status> {
    let id = context.map(|context| context.operation_id.clone()).unwrap_or_default();
    if id.is_empty() {
        Err(refusal(ErrorCode::InvalidArgument, "operation_id is required", []))
    } else {
        Ok(id)
    }
}

fn not_here<T>() -> Result<T, Status> {
    Err(refusal(ErrorCode::Unsupported, "not in the fake", []))
}

#[tonic::async_trait]
impl WorkspaceService for Process {
    async fn bind(&self, request: Request<v1::BindRequest>) -> Result<Response<v1::BindResponse>, Status> {
        let request = request.into_inner();
        let names = request.variables.iter().map(|it| String::from_utf8_lossy(&it.name).into_owned());
        self.fake.change(|state| state.variables = names.collect());
        Ok(Response::new(v1::BindResponse {
            boot_id: format!("{:032x}", self.boot),
            protocol: 1,
            workspace: Some(v1::Workspace { root: "/w".to_owned(), ..Default::default() }),
            ..Default::default()
        }))
    }

    async fn fork(&self, _: Request<v1::ForkRequest>) -> Result<Response<v1::ForkResponse>, Status> {
        not_here()
    }

    async fn drop(&self, _: Request<v1::DropRequest>) -> Result<Response<v1::DropResponse>, Status> {
        not_here()
    }

    async fn list_workspaces(
        &self,
        _: Request<v1::ListWorkspacesRequest>,
    ) -> Result<Response<v1::ListWorkspacesResponse>, Status> {
        not_here()
    }

    async fn import(
        &self,
        _: Request<Streaming<v1::ImportRequest>>,
    ) -> Result<Response<v1::ImportResponse>, Status> {
        not_here()
    }

    type ExportStream = BoxStream<'static, Result<v1::ExportResponse, Status>>;

    async fn export(&self, _: Request<v1::ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        not_here()
    }

    type DiffStream = BoxStream<'static, Result<v1::DiffResponse, Status>>;

    async fn diff(&self, _: Request<v1::DiffRequest>) -> Result<Response<Self::DiffStream>, Status> {
        not_here()
    }

    async fn apply(&self, _: Request<v1::ApplyRequest>) -> Result<Response<v1::ApplyResponse>, Status> {
        not_here()
    }
}

#[tonic::async_trait]
impl FileService for Process {
    type ReadStream = BoxStream<'static, Result<v1::ReadResponse, Status>>;

    async fn read(&self, request: Request<v1::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let path = request.into_inner().path;
        let Some(content) = self.fake.file(&path) else {
            return Err(refusal(ErrorCode::NotFound, "no such file", []));
        };
        self.fake.change(|state| state.reads += 1);
        self.alive().read.insert(path);
        let frame = v1::ReadResponse {
            header: Some(v1::ReadHeader { size_bytes: content.len() as u64, ..Default::default() }),
            end: Some(v1::TransferEnd { total_bytes: content.len() as u64, ..Default::default() }),
            content: content.into_bytes().into(),
        };
        Ok(Response::new(stream::iter([Ok(frame)]).boxed()))
    }

    async fn list_directory(
        &self,
        _: Request<v1::ListDirectoryRequest>,
    ) -> Result<Response<v1::ListDirectoryResponse>, Status> {
        Ok(Response::new(v1::ListDirectoryResponse::default()))
    }

    async fn write(
        &self,
        request: Request<Streaming<v1::WriteRequest>>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let mut frames = request.into_inner();
        let (mut header, mut content) = (None, Vec::new());
        while let Some(frame) = frames.message().await? {
            header = frame.header.or(header);
            content.extend_from_slice(&frame.content);
        }
        let header = header.unwrap_or_default();
        let operation = operation(header.context.as_ref())?;
        let mut alive = self.alive();
        if let Some(first) = alive.written.get(&operation) {
            return Ok(Response::new(first.clone()));
        }
        if self.fake.file(&header.path).is_some() && !alive.read.contains(&header.path) {
            return Err(refusal(ErrorCode::Unread, "not read", []));
        }
        let answer = v1::WriteResponse { size_bytes: content.len() as u64, ..Default::default() };
        let text = String::from_utf8_lossy(&content).into_owned();
        self.fake.change(|state| {
            state.ran.push(format!("write {}", header.path));
            state.files.insert(header.path, text);
        });
        alive.written.insert(operation, answer.clone());
        Ok(Response::new(answer))
    }

    async fn edit(&self, _: Request<v1::EditRequest>) -> Result<Response<v1::EditResponse>, Status> {
        not_here()
    }

    async fn copy(&self, _: Request<v1::CopyRequest>) -> Result<Response<v1::CopyResponse>, Status> {
        not_here()
    }

    async fn r#move(&self, _: Request<v1::MoveRequest>) -> Result<Response<v1::MoveResponse>, Status> {
        not_here()
    }

    async fn remove(&self, _: Request<v1::RemoveRequest>) -> Result<Response<v1::RemoveResponse>, Status> {
        not_here()
    }

    async fn grep(&self, _: Request<v1::GrepRequest>) -> Result<Response<v1::GrepResponse>, Status> {
        not_here()
    }

    async fn glob(&self, _: Request<v1::GlobRequest>) -> Result<Response<v1::GlobResponse>, Status> {
        not_here()
    }

    async fn stat(&self, _: Request<v1::StatRequest>) -> Result<Response<v1::StatResponse>, Status> {
        not_here()
    }
}

#[tonic::async_trait]
impl CommandService for Process {
    async fn start(&self, request: Request<v1::StartRequest>) -> Result<Response<v1::StartResponse>, Status> {
        let request = request.into_inner();
        let operation = operation(request.context.as_ref())?;
        let Some(v1::start_request::Program::ShellText(text)) = request.program else { return not_here() };
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut alive = self.alive();
        let id = format!("{:032x}", alive.commands.len() + 1);
        if !alive.commands.contains_key(&operation) {
            let end = match text.as_str() {
                "hang" => None,
                "fail" => Some(End::Exited(1)),
                _ => Some(End::Exited(0)),
            };
            let printed = text.strip_prefix("print ").map(|text| format!("{text}\n")).unwrap_or_default();
            alive.outputs.insert(id.clone(), printed);
            let ended = watch::channel(end).0;
            alive.commands.insert(operation.clone(), (id, ended.clone()));
            self.fake.change(|state| {
                state.hanging.push(ended);
                state.ran.push(text);
            });
        }
        let command_id = alive.commands[&operation].0.clone();
        Ok(Response::new(v1::StartResponse {
            command_id,
            boot_id: format!("{:032x}", self.boot),
            removed_variables: Vec::new(),
        }))
    }

    type AttachStream = BoxStream<'static, Result<v1::AttachResponse, Status>>;

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let request = request.into_inner();
        let mut end = self.by_id(&request.command_id)?.subscribe();
        let printed = self.alive().outputs.get(&request.command_id).cloned().unwrap_or_default();
        let output = v1::OutputFrame {
            stream: v1::Stream::Stdout.into(),
            offset: 0,
            content: printed.into_bytes().into(),
        };
        let output = (!output.content.is_empty())
            .then(|| v1::AttachResponse { event: Some(attach_response::Event::Output(output)) });
        let follows = !request.no_follow;
        let last = stream::once(async move {
            if follows {
                let _ = end.wait_for(Option::is_some).await;
            }
            let end = *end.borrow();
            end.map(|end| v1::AttachResponse { event: Some(attach_response::Event::End(end_of(end))) })
        });
        let events = stream::iter(output).map(Some).chain(last).filter_map(std::future::ready).map(Ok);
        Ok(Response::new(events.boxed()))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        let id = request.into_inner().command_id;
        let end = self.by_id(&id)?.borrow().map(end_of);
        let command = v1::CommandState { command_id: id, end, live_processes: 1, ..Default::default() };
        Ok(Response::new(v1::StatusResponse { command: Some(command) }))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListResponse>, Status> {
        let state = |(operation, (id, ended)): (&String, &(String, watch::Sender<Option<End>>))| {
            let end = ended.borrow().map(end_of);
            v1::CommandState {
                command_id: id.clone(),
                operation_id: operation.clone(),
                end,
                ..Default::default()
            }
        };
        let commands = self.alive().commands.iter().map(state).collect();
        Ok(Response::new(v1::ListResponse { commands }))
    }

    async fn signal(&self, _: Request<v1::SignalRequest>) -> Result<Response<v1::SignalResponse>, Status> {
        not_here()
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelResponse>, Status> {
        let request = request.into_inner();
        operation(request.context.as_ref())?;
        let end = self.by_id(&request.command_id)?;
        end.send_if_modified(|end| {
            let lives = end.is_none();
            end.get_or_insert(End::Cancelled(v1::Cancelled {}));
            lives
        });
        let end = (*end.borrow()).map(end_of);
        self.fake.change(|state| state.ran.push(format!("cancel {}", request.command_id)));
        Ok(Response::new(v1::CancelResponse { end }))
    }

    async fn write_input(
        &self,
        _: Request<v1::WriteInputRequest>,
    ) -> Result<Response<v1::WriteInputResponse>, Status> {
        not_here()
    }

    async fn resize_pty(
        &self,
        _: Request<v1::ResizePtyRequest>,
    ) -> Result<Response<v1::ResizePtyResponse>, Status> {
        not_here()
    }
}
