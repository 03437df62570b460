//! Who calls, and what each caller may call: one closed table for every service, asked before any of them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mooring_proto::refusal;
use mooring_proto::v1::ErrorCode;
use mooring_proto::v1::command_service_server::SERVICE_NAME as COMMANDS;
use mooring_proto::v1::file_service_server::SERVICE_NAME as FILES;
use mooring_proto::v1::workspace_service_server::SERVICE_NAME as WORKSPACES;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::quota::Quota;
use crate::telemetry::Tally;

const HEALTH: &str = tonic_health::pb::health_server::SERVICE_NAME;

/// What a certificate can name its holder to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Named [`mooring_proto::certificate::HARNESS`].
    Harness,
    /// Named [`mooring_proto::certificate::OPERATOR`].
    Operator,
}

/// Who is at the other end of a connection. Every connection carries one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The process that started this one and handed the connection down: every role in one.
    Parent,
    /// The holder of a verified certificate.
    Remote(Role),
}

/// To whom a call is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Harness,
    Operator,
    Both,
}

/// Every call there is. What is not here is refused to everyone.
const CALLS: &[(&str, Audience, &[&str])] = &[
    (HEALTH, Audience::Both, &["Check", "Watch"]),
    (
        FILES,
        Audience::Harness,
        &["Read", "ListDirectory", "Write", "Edit", "Copy", "Move", "Remove", "Grep", "Glob", "Stat"],
    ),
    (
        COMMANDS,
        Audience::Harness,
        &["Start", "Attach", "Status", "List", "Signal", "Cancel", "WriteInput", "ResizePty"],
    ),
    (WORKSPACES, Audience::Both, &["ListWorkspaces", "Import", "Export", "Diff"]),
    (WORKSPACES, Audience::Operator, &["Bind", "Fork", "Drop", "Apply"]),
];

impl Caller {
    /// Whether the call with this HTTP path (`/package.Service/Method`) is open to the caller.
    pub fn may_call(self, path: &str) -> bool {
        let Some((service, method)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
            return false;
        };
        CALLS.iter().any(|(known, audience, methods)| {
            *known == service && methods.contains(&method) && self.is_among(*audience)
        })
    }

    fn is_among(self, audience: Audience) -> bool {
        match self {
            Self::Parent => true,
            Self::Remote(Role::Harness) => audience != Audience::Operator,
            Self::Remote(Role::Operator) => audience != Audience::Harness,
        }
    }
}

/// Refuses every call that is not open to its caller, with `permission_denied`; lets every one beyond what the caller's role
/// may have at one time wait.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    quota: Quota,
    refused: Arc<Tally>,
}

impl<S> Layer<S> for Roles {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner, roles: self.clone() }
    }
}

/// A service behind [`Roles`].
#[derive(Clone, Debug)]
pub struct Guarded<S> {
    inner: S,
    roles: Roles,
}

impl Roles {
    /// The caller of `request`, when the call is open to it.
    fn admit(&self, request: &Request<Body>) -> Result<Caller, Status> {
        let caller = request.extensions().get::<Caller>().copied();
        if let Some(caller) = caller.filter(|caller| caller.may_call(request.uri().path())) {
            return Ok(caller);
        }
        if let Some(count) = self.refused.note() {
            tracing::warn!(?caller, count, "calls were refused to a role");
        }
        Err(refusal(ErrorCode::PermissionDenied, "this call is not open to the caller's role", []))
    }
}

impl<S> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let caller = match self.roles.admit(&request) {
            Ok(caller) => caller,
            Err(refused) => return Box::pin(std::future::ready(Ok(refused.into_http()))),
        };
        // The service that was found ready is the one that is called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let quota = self.roles.quota.clone();
        Box::pin(async move {
            let place = quota.take(caller).await;
            Ok(place.held_by(inner.call(request).await?))
        })
    }
}

#[cfg(test)]
mod tests;
