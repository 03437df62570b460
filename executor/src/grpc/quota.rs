//! How many calls a role may have at one time, over all its connections, so that no caller takes what another needs.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::Response;

use super::role::{Caller, Role};

/// Calls of the harness, streams included until their end.
const MAX_OF_HARNESS: usize = 256;
/// Calls of the operator.
const MAX_OF_OPERATOR: usize = 64;

/// The places that are left. Whoever finds none waits for one, first come first served, as HTTP/2 makes callers wait on one
/// connection; the only connection of a parent process needs no other bound.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    harness: Arc<Semaphore>,
    operator: Arc<Semaphore>,
}

impl Default for Quota {
    fn default() -> Self {
        let places = |limit| Arc::new(Semaphore::new(limit));
        Self { harness: places(MAX_OF_HARNESS), operator: places(MAX_OF_OPERATOR) }
    }
}

/// One call's place, given back when dropped.
#[derive(Debug)]
pub(super) struct Place(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Quota {
    /// A place for one call of `caller`.
    pub(super) async fn take(&self, caller: Caller) -> Place {
        let places = match caller {
            Caller::Parent => return Place(None),
            Caller::Remote(Role::Harness) => &self.harness,
            Caller::Remote(Role::Operator) => &self.operator,
        };
        // Never closed.
        Place(Arc::clone(places).acquire_owned().await.ok())
    }
}

impl Place {
    /// `response`, which has this place until its body was sent or dropped.
    pub(super) fn held_by(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Body::new(Holding { body, _place: self }))
    }
}

/// A body that holds its call's place.
struct Holding {
    body: Body,
    _place: Place,
}

impl http_body::Body for Holding {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_taken_to_the_end_of_the_answer_and_roles_do_not_share() {
        let quota = Quota::default();
        let harness = Caller::Remote(Role::Harness);
        let mut answers = Vec::new();
        for _ in 0..MAX_OF_HARNESS {
            answers.push(quota.take(harness).await.held_by(Response::new(Body::empty())));
        }
        let mut late = std::pin::pin!(quota.take(harness));
        assert!(futures::poll!(late.as_mut()).is_pending());
        quota.take(Caller::Remote(Role::Operator)).await;
        quota.take(Caller::Parent).await;
        answers.pop();
        assert!(futures::poll!(late.as_mut()).is_ready());
    }
}
