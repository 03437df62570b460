//! Where a session's tools act, found again by exact identity or refused.
//!
//! ```text
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
mod local;
mod process;
mod resolve;

pub use executor::{Executor, StartError};
#[cfg(test)]
pub(crate) use fake::FakeExecutor;
pub use given::{Given, Variable, given};
pub use local::LocalEnvironment;
pub use resolve::{Environment, EnvironmentResolver, LocalSettings, ResolveError, SettingsError};
