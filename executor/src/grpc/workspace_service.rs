//! `WorkspaceService`: Bind, the list, and archives both ways. What combines workspaces is not built yet and says so.

mod export;
mod import;

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use mooring_proto::refusal;
use mooring_proto::v1::workspace_service_server::WorkspaceService;
use mooring_proto::v1::{
    ApplyRequest, ApplyResponse, BindRequest, BindResponse, Confinement, DiffRequest, DiffResponse,
    DropRequest, DropResponse, ErrorCode, ExportRequest, ExportResponse, ForkRequest, ForkResponse,
    ImportRequest, ImportResponse, ListWorkspacesRequest, ListWorkspacesResponse,
};
use tonic::{Request, Response, Status, Streaming};

use crate::commands::Commands;
use crate::environment::{Access, Environment};
use crate::runner::Capabilities;

/// The oldest Landlock that confines signals and abstract sockets (landlock(7), ABI version 6).
const MIN_LANDLOCK_ABI: u32 = 6;
/// Bytes of an owner label.
const MAX_OWNER_BYTES: usize = 253;

/// The service.
pub struct WorkspaceServiceImpl {
    environment: Arc<Environment>,
    commands: Arc<Commands>,
}

impl WorkspaceServiceImpl {
    /// Over one environment; `commands` tell what their runner can do.
    pub fn new(environment: Arc<Environment>, commands: Arc<Commands>) -> Self {
        Self { environment, commands }
    }
}

type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl WorkspaceService for WorkspaceServiceImpl {
    type ExportStream = Frames<ExportResponse>;
    type DiffStream = Frames<DiffResponse>;

    async fn bind(&self, request: Request<BindRequest>) -> Result<Response<BindResponse>, Status> {
        // Asked first: an environment whose commands could not be confined is never bound.
        let capabilities = self.commands.capabilities().await?;
        let confinement = confinement_of(capabilities)?;
        let bound = self.environment.bind(request.into_inner()).await?;
        Ok(Response::new(BindResponse {
            boot_id: self.environment.boot_id().as_str().to_owned(),
            protocol: bound.protocol,
            workspace: Some(bound.main.to_wire()),
            confinement: Some(confinement),
            removed_variables: bound.variables.removed().to_vec(),
        }))
    }

    async fn list_workspaces(
        &self,
        request: Request<ListWorkspacesRequest>,
    ) -> Result<Response<ListWorkspacesResponse>, Status> {
        let request = request.into_inner();
        let call = self.environment.enter(request.context.as_ref(), Access::Read).await?;
        if request.owner.len() > MAX_OWNER_BYTES {
            return Err(refusal(ErrorCode::InvalidArgument, "owner has at most 253 bytes", []));
        }
        let all = call.bound.workspaces().into_iter().map(|workspace| workspace.to_wire());
        let workspaces =
            all.filter(|workspace| request.owner.is_empty() || workspace.owner == request.owner).collect();
        Ok(Response::new(ListWorkspacesResponse { workspaces }))
    }

    async fn fork(&self, request: Request<ForkRequest>) -> Result<Response<ForkResponse>, Status> {
        self.environment.enter(request.into_inner().context.as_ref(), Access::Effect).await?;
        Err(not_built("Fork"))
    }

    async fn drop(&self, request: Request<DropRequest>) -> Result<Response<DropResponse>, Status> {
        self.environment.enter(request.into_inner().context.as_ref(), Access::Effect).await?;
        Err(not_built("Drop"))
    }

    async fn import(
        &self,
        request: Request<Streaming<ImportRequest>>,
    ) -> Result<Response<ImportResponse>, Status> {
        import::import(&self.environment, request.into_inner()).await.map(Response::new)
    }

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        export::export(&self.environment, request.into_inner()).await.map(Response::new)
    }

    async fn diff(&self, request: Request<DiffRequest>) -> Result<Response<Self::DiffStream>, Status> {
        self.environment.enter(request.into_inner().context.as_ref(), Access::Read).await?;
        Err(not_built("Diff"))
    }

    async fn apply(&self, request: Request<ApplyRequest>) -> Result<Response<ApplyResponse>, Status> {
        self.environment.enter(request.into_inner().context.as_ref(), Access::Effect).await?;
        Err(not_built("Apply"))
    }
}

fn confinement_of(capabilities: Capabilities) -> Result<Confinement, Status> {
    if !capabilities.scoped || capabilities.landlock_abi < MIN_LANDLOCK_ABI {
        return Err(refusal(
            ErrorCode::Unsupported,
            "this kernel cannot confine commands: Landlock ABI 6 (Linux 6.12) is needed",
            [
                ("landlock_abi", capabilities.landlock_abi.to_string()),
                ("landlock_abi_needed", MIN_LANDLOCK_ABI.to_string()),
            ],
        ));
    }
    Ok(Confinement {
        landlock_abi: capabilities.landlock_abi,
        files_confined: true,
        signals_confined: capabilities.scoped,
        system_calls_filtered: capabilities.seccomp,
    })
}

fn not_built(call: &'static str) -> Status {
    refusal(ErrorCode::Unsupported, format!("{call} is not built"), [("call", call.to_owned())])
}
