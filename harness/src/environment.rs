//! Where a session's tools act, found again by exact identity or refused.
//!
//! ```text
//! gateway ── EnvironmentRef ─▶ KubernetesResolver ──▶ PodEnvironment: a connection to the executor in a pod
//!
//! agent ── EnvironmentRef ──▶ EnvironmentResolver ──▶ Environment::None
//!                                  │  folder, binding        │ Local
//!                                  ▼                         ▼
//!                            ResolveError          LocalEnvironment ── starts ──▶ mooring-executor serve │ run
//!                                                            └──▶ Executor: the typed client of one such pair
//! ```
//!
//! Nothing falls back: a reference that cannot be matched in all three parts is an error, and a local environment without
//! a working executor is [`ResolveError::NotReady`], never this process acting on the files itself.

mod executor;
#[cfg(test)]
mod fake;
mod folder;
mod given;
pub mod kubernetes;
mod local;
mod process;
mod resolve;

use mooring_proto::v1;

use crate::session::{EnvironmentKind, EnvironmentRef};

pub use executor::{Executor, StartError};
#[cfg(test)]
pub(crate) use fake::FakeExecutor;
pub use given::{Given, Variable, given};
pub use local::LocalEnvironment;
pub use resolve::{Environment, EnvironmentResolver, LocalSettings, NotReady, ResolveError, SettingsError};

/// A reference as the protocol has it.
pub(crate) fn wire(reference: &EnvironmentRef) -> v1::EnvironmentRef {
    let kind = match reference.kind {
        EnvironmentKind::Local => v1::EnvironmentKind::Local,
        EnvironmentKind::Kubernetes => v1::EnvironmentKind::Kubernetes,
        // None has an executor.
        EnvironmentKind::None => v1::EnvironmentKind::Unspecified,
    };
    v1::EnvironmentRef { kind: kind.into(), id: reference.id.clone(), revision: reference.revision.clone() }
}
