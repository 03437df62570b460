//! What the program talks to here.
//!
//! ```text
//!  program ──HTTP──▶ api server    Exchange, Sessions, who you are
//!     └─────TLS────▶ gateway       files, commands, Import and Export, as a test scripts them
//! ```

mod api_server;
mod certificates;
mod commands;
mod content;
mod gateway;
mod program;

pub(crate) use api_server::ApiServer;
pub(crate) use commands::Play;
pub(crate) use gateway::Gateway;
pub(crate) use program::{Ran, World, await_condition, finish};

/// The namespace of the kubeconfig.
pub(crate) const NAMESPACE: &str = "team";
/// The one session that there is.
pub(crate) const SESSION: &str = "one";
/// The name in the gateway's certificate.
pub(crate) const SERVER_NAME: &str = "gateway.mooring.internal";
