//! One call passed on: message by message, with its deadline, cancelled when its caller leaves.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use mooring_proto::v1::{self, RequestContext};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use super::admit::{Gate, token};
use super::refuse;

/// The deadline of a call, as gRPC carries it.
const TIMEOUT: &str = "grpc-timeout";

/// Messages on their way back.
pub(super) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Messages on their way there. A stream that breaks ends here without its last frame, which the executor then refuses as a
/// whole.
pub(super) struct Messages<Q> {
    first: Option<Q>,
    rest: Streaming<Q>,
}

impl<Q: Unpin> Stream for Messages<Q> {
    type Item = Q;

    fn poll_next(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<Option<Q>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => self.rest.poll_next_unpin(ctx).map(|message| message?.ok()),
        }
    }
}

/// A message that says for whom and where it is.
pub(super) trait Contextual {
    /// What it says. A first frame that carries no header says nothing, and gets none: the executor refuses it.
    fn context(&mut self) -> Option<&mut Option<RequestContext>>;
}

macro_rules! contextual {
    ($($message:ident),* $(,)?) => {$(
        impl Contextual for v1::$message {
            fn context(&mut self) -> Option<&mut Option<RequestContext>> {
                Some(&mut self.context)
            }
        }
    )*};
}

contextual!(
    ReadRequest,
    ListDirectoryRequest,
    EditRequest,
    CopyRequest,
    MoveRequest,
    RemoveRequest,
    GrepRequest,
    GlobRequest,
    StatRequest,
    StartRequest,
    AttachRequest,
    StatusRequest,
    ListRequest,
    SignalRequest,
    CancelRequest,
    WriteInputRequest,
    ResizePtyRequest,
    ExportRequest,
);

impl Contextual for v1::WriteRequest {
    fn context(&mut self) -> Option<&mut Option<RequestContext>> {
        self.header.as_mut().map(|header| &mut header.context)
    }
}

impl Contextual for v1::ImportRequest {
    fn context(&mut self) -> Option<&mut Option<RequestContext>> {
        self.header.as_mut().map(|header| &mut header.context)
    }
}

/// One message, one answer.
pub(super) async fn unary<Q, R, F>(
    gate: &Gate,
    request: Request<Q>,
    call: impl FnOnce(Channel, Request<Q>) -> F,
) -> Result<Response<R>, Status>
where
    Q: Contextual,
    F: Future<Output = Result<Response<R>, Status>>,
{
    let (metadata, _, message) = request.into_parts();
    let (channel, message) = admit(gate, &metadata, message).await?;
    answer(call(channel, outgoing(&metadata, message)).await)
}

/// One message, many answers.
pub(super) async fn answers<Q, R, F>(
    gate: &Arc<Gate>,
    request: Request<Q>,
    call: impl FnOnce(Channel, Request<Q>) -> F,
) -> Result<Response<Answers<R>>, Status>
where
    Q: Contextual,
    R: Send + 'static,
    F: Future<Output = Result<Response<Streaming<R>>, Status>>,
{
    let (metadata, _, message) = request.into_parts();
    let (channel, message) = admit(gate, &metadata, message).await?;
    let dismissed = Arc::clone(gate).until_dismissed(token(&metadata)?.to_owned());
    let answers = answer(call(channel, outgoing(&metadata, message)).await)?.into_inner();
    let answers = answers.map(|answer| answer.map_err(|status| refuse::passed_on(&status)));
    Ok(Response::new(Box::pin(until(answers, dismissed))))
}

/// Many messages, of which the first says for whom; one answer.
pub(super) async fn messages<Q, R, F>(
    gate: &Arc<Gate>,
    request: Request<Streaming<Q>>,
    call: impl FnOnce(Channel, Request<Messages<Q>>) -> F,
) -> Result<Response<R>, Status>
where
    Q: Contextual,
    F: Future<Output = Result<Response<R>, Status>>,
{
    let (metadata, _, mut messages) = request.into_parts();
    let first = messages.message().await?.ok_or_else(|| refuse::invalid("a stream without a message"))?;
    let (channel, first) = admit(gate, &metadata, first).await?;
    let all = Messages { first: Some(first), rest: messages };
    let dismissed = Arc::clone(gate).until_dismissed(token(&metadata)?.to_owned());
    tokio::select! {
        answered = call(channel, outgoing(&metadata, all)) => answer(answered),
        status = dismissed => Err(status),
    }
}

async fn admit<Q: Contextual>(
    gate: &Gate,
    metadata: &MetadataMap,
    mut message: Q,
) -> Result<(Channel, Q), Status> {
    let said = message.context().and_then(Option::take);
    let admitted = gate.admit(metadata, said).await?;
    if let Some(context) = message.context() {
        *context = Some(admitted.context);
    }
    Ok((admitted.channel, message))
}

/// With nothing of the caller's metadata but the deadline.
fn outgoing<Q>(metadata: &MetadataMap, message: Q) -> Request<Q> {
    let mut request = Request::new(message);
    if let Some(timeout) = metadata.get(TIMEOUT) {
        request.metadata_mut().insert(TIMEOUT, timeout.clone());
    }
    request
}

fn answer<R>(answer: Result<Response<R>, Status>) -> Result<Response<R>, Status> {
    answer.map(|answer| Response::new(answer.into_inner())).map_err(|status| refuse::passed_on(&status))
}

/// The answers, until there are no more or the caller is dismissed.
fn until<R: Send + 'static>(
    answers: impl Stream<Item = Result<R, Status>> + Send + Unpin + 'static,
    mut dismissed: BoxFuture<'static, Status>,
) -> impl Stream<Item = Result<R, Status>> + Send {
    let mut answers = Some(answers);
    stream::poll_fn(move |ctx| {
        let Some(open) = &mut answers else { return Poll::Ready(None) };
        if let Poll::Ready(status) = dismissed.poll_unpin(ctx) {
            answers = None;
            return Poll::Ready(Some(Err(status)));
        }
        open.poll_next_unpin(ctx)
    })
}

#[cfg(test)]
mod tests {
    use futures::channel::{mpsc, oneshot};
    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn a_stream_ends_when_its_caller_is_dismissed() {
        let (sender, answers) = mpsc::unbounded();
        let (dismiss, dismissed) = oneshot::channel();
        let dismissed = async { dismissed.await.expect("a dismissal") }.boxed();
        let mut stream = Box::pin(until(answers, dismissed));
        sender.unbounded_send(Ok(1)).expect("open");
        assert_eq!(stream.next().await.expect("an answer").expect("one"), 1);
        dismiss.send(Status::unauthenticated("over")).expect("open");
        let ended = stream.next().await.expect("an end").expect_err("a status");
        assert_eq!(ended.code(), Code::Unauthenticated);
        assert!(stream.next().await.is_none());
        assert!(sender.is_closed(), "nobody reads the executor's answers any more");
    }

    #[test]
    fn of_the_metadata_only_the_deadline_goes_on() {
        let mut metadata = MetadataMap::new();
        metadata.insert(TIMEOUT, "5S".parse().expect("a value"));
        metadata.insert("authorization", "Bearer secret".parse().expect("a value"));
        let request = outgoing(&metadata, ());
        assert_eq!(request.metadata().len(), 1);
        assert_eq!(request.metadata().get(TIMEOUT).expect("the deadline"), "5S");
    }
}
