//! Around every call: it is counted while it is answered, and a panic in it is answered `internal`.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use mooring_proto::refusal;
use mooring_proto::v1::ErrorCode;
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

/// The calls that are being answered. A stream counts until its first message is under way.
#[derive(Clone, Debug)]
pub struct Calls(Arc<watch::Sender<usize>>);

impl Calls {
    /// None yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Waits until no call is being answered.
    pub async fn idle(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|calls| *calls == 0).await;
    }

    fn enter(&self) -> Entered {
        self.0.send_modify(|calls| *calls += 1);
        Entered(Arc::clone(&self.0))
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self::new()
    }
}

struct Entered(Arc<watch::Sender<usize>>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

impl<S> Layer<S> for Calls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, calls: self.clone() }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    calls: Calls,
}

impl<S> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let entered = self.calls.enter();
        let answer = AssertUnwindSafe(self.inner.call(request)).catch_unwind();
        Box::pin(async move {
            let _entered = entered;
            answer.await.unwrap_or_else(|_| {
                Ok(refusal(ErrorCode::Internal, "the call failed unexpectedly", []).into_http())
            })
        })
    }
}
