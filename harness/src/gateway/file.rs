//! Files.

use std::sync::Arc;

use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::v1::file_service_client::FileServiceClient;
use mooring_proto::v1::file_service_server::FileService;
use mooring_proto::v1::{
    CopyRequest, CopyResponse, EditRequest, EditResponse, GlobRequest, GlobResponse, GrepRequest,
    GrepResponse, ListDirectoryRequest, ListDirectoryResponse, MoveRequest, MoveResponse, ReadRequest,
    ReadResponse, RemoveRequest, RemoveResponse, StatRequest, StatResponse, WriteRequest, WriteResponse,
};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::admit::Gate;
use super::forward::{Answers, answers, messages, unary};

pub(super) struct Files(pub(super) Arc<Gate>);

fn client(channel: Channel) -> FileServiceClient<Channel> {
    FileServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[async_trait]
impl FileService for Files {
    type ReadStream = Answers<ReadResponse>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        answers(&self.0, request, async |to, it| client(to).read(it).await).await
    }

    async fn list_directory(
        &self,
        request: Request<ListDirectoryRequest>,
    ) -> Result<Response<ListDirectoryResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).list_directory(it).await).await
    }

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> Result<Response<WriteResponse>, Status> {
        messages(&self.0, request, async |to, it| client(to).write(it).await).await
    }

    async fn edit(&self, request: Request<EditRequest>) -> Result<Response<EditResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).edit(it).await).await
    }

    async fn copy(&self, request: Request<CopyRequest>) -> Result<Response<CopyResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).copy(it).await).await
    }

    async fn r#move(&self, request: Request<MoveRequest>) -> Result<Response<MoveResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).r#move(it).await).await
    }

    async fn remove(&self, request: Request<RemoveRequest>) -> Result<Response<RemoveResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).remove(it).await).await
    }

    async fn grep(&self, request: Request<GrepRequest>) -> Result<Response<GrepResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).grep(it).await).await
    }

    async fn glob(&self, request: Request<GlobRequest>) -> Result<Response<GlobResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).glob(it).await).await
    }

    async fn stat(&self, request: Request<StatRequest>) -> Result<Response<StatResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).stat(it).await).await
    }
}
