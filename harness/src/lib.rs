//! Sessions, the agent loop, HTTP and the store.

#[macro_use]
mod closed_text;

pub mod session;
pub mod store;
