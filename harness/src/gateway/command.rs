//! Commands.

use std::sync::Arc;

use mooring_proto::MAX_MESSAGE_BYTES;
use mooring_proto::v1::command_service_client::CommandServiceClient;
use mooring_proto::v1::command_service_server::CommandService;
use mooring_proto::v1::{
    AttachRequest, AttachResponse, CancelRequest, CancelResponse, ListRequest, ListResponse,
    ResizePtyRequest, ResizePtyResponse, SignalRequest, SignalResponse, StartRequest, StartResponse,
    StatusRequest, StatusResponse, WriteInputRequest, WriteInputResponse,
};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, async_trait};

use super::admit::Gate;
use super::forward::{Answers, answers, unary};

pub(super) struct Commands(pub(super) Arc<Gate>);

fn client(channel: Channel) -> CommandServiceClient<Channel> {
    CommandServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[async_trait]
impl CommandService for Commands {
    type AttachStream = Answers<AttachResponse>;

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).start(it).await).await
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Self::AttachStream>, Status> {
        answers(&self.0, request, async |to, it| client(to).attach(it).await).await
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).status(it).await).await
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).list(it).await).await
    }

    async fn signal(&self, request: Request<SignalRequest>) -> Result<Response<SignalResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).signal(it).await).await
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).cancel(it).await).await
    }

    async fn write_input(
        &self,
        request: Request<WriteInputRequest>,
    ) -> Result<Response<WriteInputResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).write_input(it).await).await
    }

    async fn resize_pty(
        &self,
        request: Request<ResizePtyRequest>,
    ) -> Result<Response<ResizePtyResponse>, Status> {
        unary(&self.0, request, async |to, it| client(to).resize_pty(it).await).await
    }
}
