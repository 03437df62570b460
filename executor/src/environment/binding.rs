//! Bind: from a request to an environment that calls can enter.

mod layout;
mod limits;

use std::sync::Arc;

use mooring_proto::v1::{self, seed};
use mooring_proto::{PROTOCOL, v1::BindRequest};

pub use limits::Limits;

use super::identity::{Epoch, Identity};
use super::lease::{LeaseError, Leases};
use super::site::Site;
use super::variables::Variables;
use super::workspace::{Workspace, WorkspaceId};
use super::{EnterError, Environment};
use crate::operation::ArgumentsDigest;
use layout::{Layout, Prepared, Tenant};

/// A bound environment.
#[derive(Debug)]
pub struct Bound {
    /// Compared exactly by every call.
    pub identity: Identity,
    /// Compared exactly by every call.
    pub epoch: Epoch,
    /// The minor version of the protocol that both sides speak.
    pub protocol: u32,
    /// What commands may use.
    pub limits: Limits,
    /// What commands start from, already scrubbed.
    pub variables: Variables,
    /// Shell for command texts.
    pub shell: v1::Shell,
    /// Canonical folders that commands may read besides the system's own.
    pub read_only: Vec<std::path::PathBuf>,
    /// The session's own workspace.
    pub main: Arc<Workspace>,
    pub(super) leases: Leases,
    arguments: ArgumentsDigest,
    /// Holds the environment for this process.
    _hold: std::os::fd::OwnedFd,
}

/// Why an environment was not bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A field is absent, too long or malformed.
    #[error("bind: {0}")]
    Malformed(&'static str),
    /// No protocol version is spoken by both sides.
    #[error("no common protocol version: this executor speaks {}..={}", PROTOCOL.min, PROTOCOL.max)]
    Protocol,
    /// A name cannot be let through.
    #[error(transparent)]
    Readmitted(#[from] crate::scrub::ReadmittedError),
    /// Asked for something this executor does not do.
    #[error("{0}")]
    Unsupported(&'static str),
    /// This executor, or the state folder, belongs to another environment.
    #[error("bound to another environment")]
    WrongEnvironment,
    /// The volume holds nothing of an environment that was bound before.
    #[error("the volume is empty")]
    EmptyWorkspace,
    /// Bound to this environment under another epoch, now or, on a volume, before.
    #[error("stale epoch: have {have}, current is {current}")]
    StaleEpoch {
        /// As the caller has it.
        have: u64,
        /// As it is bound.
        current: u64,
    },
    /// Bound to this environment with other arguments.
    #[error("this environment is bound with other arguments")]
    Conflict,
    /// Another executor process still holds the state folder or volume.
    #[error("another executor holds this environment")]
    Held,
    /// A folder that must exist does not, or is none.
    #[error("{0} is not an existing folder")]
    NoFolder(&'static str),
    /// The executor is shutting down.
    #[error("the executor is shutting down")]
    Draining,
    /// What an earlier executor kept cannot be read.
    #[error("the environment's kept state is damaged")]
    Damaged,
    /// The lease table cannot be used.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The state folder or volume cannot be prepared.
    #[error("cannot prepare the environment's folders")]
    Prepare(#[from] std::io::Error),
}

impl Environment {
    /// Binds this executor to an environment.
    ///
    /// Idempotent for equal arguments. Variables are scrubbed here; the rest is forgotten with the request.
    ///
    /// # Errors
    /// See [`BindError`]; nothing is bound then.
    pub async fn bind(&self, mut request: BindRequest) -> Result<Arc<Bound>, BindError> {
        if self.is_draining() {
            return Err(BindError::Draining);
        }
        // Says how to bind, not what, and changes once it was acknowledged: no part of the arguments that are compared.
        let may_be_new = std::mem::take(&mut request.may_be_new);
        let arguments = ArgumentsDigest::of("Bind", &request);
        let _turn = self.binding.lock().await;
        if let Some(bound) = self.bound() {
            return bound.compare(&request, arguments);
        }
        let Request { identity, epoch, protocol, limits, shell, layout, variables } =
            Request::parse(&self.site, request, may_be_new)?;
        let tenant = Tenant {
            identity: identity.clone(),
            epoch,
            boot_id: self.boot_id.clone(),
            tasks: self.tasks().clone(),
        };
        let Prepared { hold, leases, main, read_only } = layout.prepare(tenant).await?;
        let bound = Bound {
            identity,
            epoch,
            protocol,
            limits,
            variables,
            shell,
            read_only,
            main: Arc::new(main),
            leases,
            arguments,
            _hold: hold,
        };
        Ok(Arc::clone(self.bound.get_or_init(|| async { Arc::new(bound) }).await))
    }
}

impl Bound {
    /// The workspace of that id as it travels; empty means the main one.
    pub(super) fn workspace(&self, id: &str) -> Result<Arc<Workspace>, EnterError> {
        if id.is_empty() {
            return Ok(Arc::clone(&self.main));
        }
        let id = WorkspaceId::parse(id)
            .ok_or(EnterError::Malformed("workspace_id has 32 lower-case hexadecimal digits"))?;
        if id == self.main.id { Ok(Arc::clone(&self.main)) } else { Err(EnterError::UnknownWorkspace) }
    }

    /// All workspaces, the main one first.
    pub fn workspaces(&self) -> Vec<Arc<Workspace>> {
        vec![Arc::clone(&self.main)]
    }

    fn compare(
        self: &Arc<Self>,
        request: &BindRequest,
        arguments: ArgumentsDigest,
    ) -> Result<Arc<Self>, BindError> {
        if arguments == self.arguments {
            return Ok(Arc::clone(self));
        }
        if !self.identity.is(request.environment.as_ref()) {
            return Err(BindError::WrongEnvironment);
        }
        if request.epoch != self.epoch.get() {
            return Err(BindError::StaleEpoch { have: request.epoch, current: self.epoch.get() });
        }
        Err(BindError::Conflict)
    }
}

/// A request whose fields are within their bounds.
struct Request {
    identity: Identity,
    epoch: Epoch,
    protocol: u32,
    limits: Limits,
    shell: v1::Shell,
    layout: Layout,
    variables: Variables,
}

impl Request {
    fn parse(site: &Site, request: BindRequest, may_be_new: bool) -> Result<Self, BindError> {
        let identity = Identity::parse(request.environment.as_ref()).map_err(BindError::Malformed)?;
        let epoch = Epoch::new(request.epoch).ok_or(BindError::Malformed("epoch is 1..=2^63-1"))?;
        let protocol = common_protocol(request.protocol.as_ref())?;
        let limits = Limits::parse(&request.limits.unwrap_or_default())?;
        let shell = match v1::Shell::try_from(request.shell) {
            Ok(v1::Shell::Unspecified | v1::Shell::Sh) => v1::Shell::Sh,
            Ok(v1::Shell::Bash) => v1::Shell::Bash,
            Err(_) => return Err(BindError::Malformed("shell is unknown")),
        };
        match request.seed.and_then(|seed| seed.seed) {
            None | Some(seed::Seed::Empty(_)) => {}
            Some(seed::Seed::Stream(_)) => {
                return Err(BindError::Unsupported("a streamed seed is not built"));
            }
            Some(seed::Seed::Git(_)) => return Err(BindError::Unsupported("a git seed is not built")),
        }
        let layout = Layout::parse(site, &identity, request.local, may_be_new)?;
        let variables = Variables::parse(site.of_image(), request.variables, request.readmitted_names)?;
        Ok(Self { identity, epoch, protocol, limits, shell, layout, variables })
    }
}

fn common_protocol(range: Option<&v1::ProtocolRange>) -> Result<u32, BindError> {
    let range = range.ok_or(BindError::Malformed("protocol is absent"))?;
    if range.min == 0 || range.max > 65_535 || range.min > range.max {
        return Err(BindError::Malformed("protocol versions are 1..=65535, min not over max"));
    }
    let highest = range.max.min(PROTOCOL.max);
    if highest < range.min.max(PROTOCOL.min) { Err(BindError::Protocol) } else { Ok(highest) }
}

#[cfg(test)]
mod tests;
