//! `CommandService` over the commands of the environment.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use mooring_proto::v1::command_service_server::CommandService;
use mooring_proto::v1::{
    AttachRequest, AttachResponse, CancelRequest, CancelResponse, ListRequest, ListResponse,
    ResizePtyRequest, ResizePtyResponse, SignalRequest, SignalResponse, StartRequest, StartResponse,
    StatusRequest, StatusResponse, WriteInputRequest, WriteInputResponse,
};
use mooring_proto::{MAX_FRAME_BYTES, v1};
use tonic::{Request, Response, Status};

use crate::commands::{self, CommandError, Commands, Follower};
use crate::environment::{Access, Call, Environment};
use crate::operation::{ArgumentsDigest, OperationId};

/// The service.
pub struct CommandServiceImpl {
    environment: Arc<Environment>,
    commands: Arc<Commands>,
}

impl CommandServiceImpl {
    /// Over the commands of one environment.
    pub fn new(environment: Arc<Environment>, commands: Arc<Commands>) -> Self {
        Self { environment, commands }
    }

    async fn look(&self, context: Option<&v1::RequestContext>) -> Result<Call, Status> {
        Ok(self.environment.enter(context, Access::Read).await?)
    }

    async fn act(&self, context: Option<&v1::RequestContext>) -> Result<(Call, OperationId), Status> {
        let call = self.environment.enter(context, Access::Effect).await?;
        let id = call.operation_id.clone().ok_or_else(|| Status::internal("an effect without an id"))?;
        Ok((call, id))
    }
}

#[tonic::async_trait]
impl CommandService for CommandServiceImpl {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<AttachResponse, Status>> + Send>>;

    async fn start(&self, request: Request<StartRequest>) -> Result<Response<StartResponse>, Status> {
        let mut request = request.into_inner();
        let (call, operation_id) = self.act(request.context.take().as_ref()).await?;
        let arguments = ArgumentsDigest::of("Start", &request);
        let (commands, entered) = (Arc::clone(&self.commands), call.clone());
        let started = call.once(arguments, async move {
            let request = commands::Request::parse(request, entered.bound.limits.max_timeout)?;
            Ok(commands.start(&entered, operation_id, request).await?)
        });
        Ok(Response::new(started.await?))
    }

    async fn attach(&self, request: Request<AttachRequest>) -> Result<Response<Self::AttachStream>, Status> {
        let request = request.into_inner();
        let call = self.look(request.context.as_ref()).await?;
        let command = self.commands.find(&call, &request.command_id)?;
        let offsets = [request.stdout_offset, request.stderr_offset];
        let follower = Follower::new(command, offsets, request.no_follow);
        let events = futures::stream::unfold(follower, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        });
        Ok(Response::new(Box::pin(events)))
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        let request = request.into_inner();
        let call = self.look(request.context.as_ref()).await?;
        let command = self.commands.find(&call, &request.command_id)?;
        Ok(Response::new(StatusResponse { command: Some(command.to_wire()) }))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let call = self.look(request.into_inner().context.as_ref()).await?;
        Ok(Response::new(ListResponse { commands: self.commands.list(&call) }))
    }

    async fn signal(&self, request: Request<SignalRequest>) -> Result<Response<SignalResponse>, Status> {
        let mut request = request.into_inner();
        let (call, _) = self.act(request.context.take().as_ref()).await?;
        let arguments = ArgumentsDigest::of("Signal", &request);
        let (commands, entered) = (Arc::clone(&self.commands), call.clone());
        let signalled = call.once(arguments, async move {
            let command = commands.find(&entered, &request.command_id)?;
            commands.signal(&command, request.signal).await?;
            Ok(SignalResponse {})
        });
        Ok(Response::new(signalled.await?))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        let mut request = request.into_inner();
        let (call, _) = self.act(request.context.take().as_ref()).await?;
        let arguments = ArgumentsDigest::of("Cancel", &request);
        let (commands, entered) = (Arc::clone(&self.commands), call.clone());
        let cancelled = call.once(arguments, async move {
            let command = commands.find(&entered, &request.command_id)?;
            Ok(CancelResponse { end: Some(commands.cancel(&command).await?) })
        });
        Ok(Response::new(cancelled.await?))
    }

    async fn write_input(
        &self,
        request: Request<WriteInputRequest>,
    ) -> Result<Response<WriteInputResponse>, Status> {
        let mut request = request.into_inner();
        let (call, _) = self.act(request.context.take().as_ref()).await?;
        if request.content.len() > MAX_FRAME_BYTES {
            return Err(CommandError::TooLarge { what: "content", limit_bytes: MAX_FRAME_BYTES }.into());
        }
        let arguments = ArgumentsDigest::of("WriteInput", &request);
        let (commands, entered) = (Arc::clone(&self.commands), call.clone());
        let written = call.once(arguments, async move {
            let command = commands.find(&entered, &request.command_id)?;
            commands.write_input(&command, &request.content, request.close).await?;
            Ok(WriteInputResponse {})
        });
        Ok(Response::new(written.await?))
    }

    async fn resize_pty(
        &self,
        request: Request<ResizePtyRequest>,
    ) -> Result<Response<ResizePtyResponse>, Status> {
        self.look(request.into_inner().context.as_ref()).await?;
        Err(CommandError::Unsupported("a terminal is not built").into())
    }
}
