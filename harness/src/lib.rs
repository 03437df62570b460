//! Sessions, the agent loop, HTTP and the store.

#[macro_use]
mod closed_text;

pub mod agent;
pub mod args;
pub mod environment;
pub mod http;
pub mod key;
pub mod model;
pub mod run;
pub mod session;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod tools;
