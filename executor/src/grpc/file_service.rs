//! `FileService` over the files of a workspace.

mod answer;
mod query;
mod transfer;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use mooring_proto::v1::file_service_server::FileService;
use mooring_proto::v1::{
    CopyRequest, CopyResponse, EditRequest, EditResponse, GlobRequest, GlobResponse, GrepRequest,
    GrepResponse, ListDirectoryRequest, ListDirectoryResponse, MoveRequest, MoveResponse, ReadRequest,
    ReadResponse, RemoveRequest, RemoveResponse, StatRequest, StatResponse, WriteRequest, WriteResponse,
};
use mooring_proto::{refusal, v1};
use tonic::{Request, Response, Status, Streaming};

use crate::environment::{Access, ActorKey, Call, Environment};
use crate::files::{Edit, FileError, Files};
use crate::operation::ArgumentsDigest;
use crate::path::WorkspacePath;
use crate::root::Fault;

/// The service.
pub struct FileServiceImpl {
    environment: Arc<Environment>,
}

impl FileServiceImpl {
    /// Over the workspaces of one environment.
    pub fn new(environment: Arc<Environment>) -> Self {
        Self { environment }
    }

    async fn look(&self, context: Option<&v1::RequestContext>) -> Result<Entered, Status> {
        Ok(Entered { call: self.environment.enter(context, Access::Read).await? })
    }

    async fn act(&self, context: Option<v1::RequestContext>) -> Result<Entered, Status> {
        Ok(Entered { call: self.environment.enter(context.as_ref(), Access::Effect).await? })
    }
}

/// A call, and the files that it is about.
struct Entered {
    call: Call,
}

impl Entered {
    fn files(&self) -> Files {
        self.call.workspace.files.clone()
    }

    fn path(&self, text: &str) -> Result<WorkspacePath, FileError> {
        Ok(self.call.workspace.root.parse(text)?)
    }

    /// The actor as the ledger tells actors apart.
    fn actor(&self) -> String {
        match &self.call.actor {
            ActorKey::Session(session) => format!("session:{session}"),
            ActorKey::Person(name) => format!("person:{name}"),
        }
    }
}

#[tonic::async_trait]
impl FileService for FileServiceImpl {
    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let entered = self.look(request.context.as_ref()).await?;
        let range = query::range(request.range)?;
        let path = entered.path(&request.path)?;
        let reading = entered.files().read(&entered.actor(), path, range).await?;
        Ok(Response::new(transfer::frames(reading)))
    }

    async fn list_directory(
        &self,
        request: Request<ListDirectoryRequest>,
    ) -> Result<Response<ListDirectoryResponse>, Status> {
        let request = request.into_inner();
        let entered = self.look(request.context.as_ref()).await?;
        let (after, page_size) = query::page(&request)?;
        let path = entered.path(&request.path)?;
        let listing = entered.files().list(path, after, page_size).await?;
        Ok(Response::new(answer::listing(&listing)))
    }

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> Result<Response<WriteResponse>, Status> {
        let mut frames = request.into_inner();
        let (header, first) = transfer::first_frame(&mut frames).await?;
        let entered = self.act(header.context).await?;
        let (files, actor) = (entered.files(), entered.actor());
        let path = entered.path(&header.path)?;
        let content = transfer::receive(files.upload(path.clone()), first, &mut frames).await?;
        let arguments = ArgumentsDigest::builder("Write")
            .bytes(header.path.as_bytes())
            .bytes(&content.sha256())
            .bytes(&content.size().to_le_bytes())
            .finish();
        let written = entered.call.once(arguments, async move {
            let written = files.write(&actor, path, content).await?;
            Ok(WriteResponse {
                version: Some(answer::version(written.version)),
                created: written.created,
                size_bytes: written.size,
            })
        });
        Ok(Response::new(written.await?))
    }

    async fn edit(&self, request: Request<EditRequest>) -> Result<Response<EditResponse>, Status> {
        let mut request = request.into_inner();
        let entered = self.act(request.context.take()).await?;
        let (files, actor) = (entered.files(), entered.actor());
        let arguments = ArgumentsDigest::of("Edit", &request);
        let path = entered.path(&request.path)?;
        let edit = Edit::new(request.old.into(), request.new.into(), request.replace_all)?;
        let edited = entered.call.once(arguments, async move {
            let edited = files.edit(&actor, path, edit).await?;
            Ok(EditResponse {
                version: Some(answer::version(edited.version)),
                replacements: edited.replacements,
                link_count: edited.link_count,
                size_bytes: edited.size,
            })
        });
        Ok(Response::new(edited.await?))
    }

    async fn copy(&self, request: Request<CopyRequest>) -> Result<Response<CopyResponse>, Status> {
        let mut request = request.into_inner();
        let entered = self.act(request.context.take()).await?;
        let files = entered.files();
        let arguments = ArgumentsDigest::of("Copy", &request);
        let (source, destination) = (entered.path(&request.source)?, entered.path(&request.destination)?);
        let copied = entered.call.once(arguments, async move {
            Ok(CopyResponse { size_bytes: files.copy(source, destination).await? })
        });
        Ok(Response::new(copied.await?))
    }

    async fn r#move(&self, request: Request<MoveRequest>) -> Result<Response<MoveResponse>, Status> {
        let mut request = request.into_inner();
        let entered = self.act(request.context.take()).await?;
        let files = entered.files();
        let arguments = ArgumentsDigest::of("Move", &request);
        let (source, destination) = (entered.path(&request.source)?, entered.path(&request.destination)?);
        let moved = entered.call.once(arguments, async move {
            files.relocate(source, destination).await?;
            Ok(MoveResponse {})
        });
        Ok(Response::new(moved.await?))
    }

    async fn remove(&self, request: Request<RemoveRequest>) -> Result<Response<RemoveResponse>, Status> {
        let mut request = request.into_inner();
        let entered = self.act(request.context.take()).await?;
        let files = entered.files();
        let arguments = ArgumentsDigest::of("Remove", &request);
        let path = entered.path(&request.path)?;
        let removed = entered.call.once(arguments, async move {
            let kind = files.remove(path).await?;
            Ok(RemoveResponse { kind: answer::kind(kind).into() })
        });
        Ok(Response::new(removed.await?))
    }

    async fn grep(&self, request: Request<GrepRequest>) -> Result<Response<GrepResponse>, Status> {
        let request = request.into_inner();
        let entered = self.look(request.context.as_ref()).await?;
        let path = entered.path(&request.path)?;
        let found = entered.files().grep(query::grep(request, path)?).await?;
        Ok(Response::new(answer::grep(found)))
    }

    async fn glob(&self, request: Request<GlobRequest>) -> Result<Response<GlobResponse>, Status> {
        let request = request.into_inner();
        let entered = self.look(request.context.as_ref()).await?;
        let path = entered.path(&request.path)?;
        let found = entered.files().glob(query::glob(&request, path)?).await?;
        Ok(Response::new(answer::glob(&found)))
    }

    async fn stat(&self, request: Request<StatRequest>) -> Result<Response<StatResponse>, Status> {
        let request = request.into_inner();
        let entered = self.look(request.context.as_ref()).await?;
        let description = entered.files().stat(entered.path(&request.path)?).await?;
        Ok(Response::new(answer::description(&description)))
    }
}

impl From<FileError> for Status {
    fn from(error: FileError) -> Self {
        let fault = match &error {
            FileError::System { fault, .. } => Some(*fault),
            FileError::Resolve(error) => Some(error.fault),
            FileError::Path(_)
            | FileError::NotRegular { .. }
            | FileError::NotDirectory { .. }
            | FileError::NoEntry { .. }
            | FileError::Unread { .. }
            | FileError::Stale { .. }
            | FileError::NoMatch { .. }
            | FileError::Ambiguous { .. }
            | FileError::TooLarge { .. }
            | FileError::Invalid { .. }
            | FileError::Transfer { .. }
            | FileError::Changed { .. }
            | FileError::AnotherMount { .. }
            | FileError::Cancelled
            | FileError::Internal => None,
        };
        if let Some(Fault::System(errno)) = fault {
            tracing::warn!(errno = errno.raw_os_error(), "a file call failed");
        }
        refusal(error.code(), error.to_string(), error.fields())
    }
}
