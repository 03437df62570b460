//! Sessions, the agent loop, HTTP and the store.

#[macro_use]
mod closed_text;

pub mod environment;
pub mod model;
pub mod session;
pub mod store;
pub mod tools;
