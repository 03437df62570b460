//! What is in a workspace, as a whole. Making and binding workspaces is the operator's.

use std::sync::Arc;

use mooring_proto::v1::workspace_service_client::WorkspaceServiceClient;
use mooring_proto::v1::workspace_service_server::WorkspaceService;
use mooring_proto::v1::{
    ApplyRequest, ApplyResponse, BindRequest, BindResponse, DiffRequest, DiffResponse, DropRequest,
    DropResponse, ErrorCode, ExportRequest, ExportResponse, ForkRequest, ForkResponse, ImportRequest,
    ImportResponse, ListWorkspacesRequest, ListWorkspacesResponse,
};
use mooring_proto::{MAX_MESSAGE_BYTES, refusal};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::admit::Gate;
use super::forward::{Answers, answers, messages};

pub(super) struct Workspaces(pub(super) Arc<Gate>);

fn client(channel: Channel) -> WorkspaceServiceClient<Channel> {
    WorkspaceServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

fn not_offered<T>() -> Result<T, Status> {
    Err(refusal(ErrorCode::PermissionDenied, "the gateway does not offer this call", []))
}

#[async_trait]
impl WorkspaceService for Workspaces {
    type ExportStream = Answers<ExportResponse>;
    type DiffStream = Answers<DiffResponse>;

    async fn import(
        &self,
        request: Request<Streaming<ImportRequest>>,
    ) -> Result<Response<ImportResponse>, Status> {
        messages(&self.0, request, async |to, it| client(to).import(it).await).await
    }

    async fn export(&self, request: Request<ExportRequest>) -> Result<Response<Self::ExportStream>, Status> {
        answers(&self.0, request, async |to, it| client(to).export(it).await).await
    }

    async fn bind(&self, _: Request<BindRequest>) -> Result<Response<BindResponse>, Status> {
        not_offered()
    }

    async fn fork(&self, _: Request<ForkRequest>) -> Result<Response<ForkResponse>, Status> {
        not_offered()
    }

    async fn drop(&self, _: Request<DropRequest>) -> Result<Response<DropResponse>, Status> {
        not_offered()
    }

    async fn list_workspaces(
        &self,
        _: Request<ListWorkspacesRequest>,
    ) -> Result<Response<ListWorkspacesResponse>, Status> {
        not_offered()
    }

    async fn diff(&self, _: Request<DiffRequest>) -> Result<Response<Self::DiffStream>, Status> {
        not_offered()
    }

    async fn apply(&self, _: Request<ApplyRequest>) -> Result<Response<ApplyResponse>, Status> {
        not_offered()
    }
}
