//! What tests, demo and benchmarks share: the binaries as processes, the HTTP API from outside, and what `/proc` says.
//!
//! Errors here end a test or a program with a sentence; nobody branches on them, so they are `anyhow`.

mod binaries;
mod client;
mod deadline;
mod events;
mod harness;
mod process;
mod world;

pub use binaries::binary;
pub use client::{Client, Reply};
pub use deadline::await_condition;
pub use events::{Event, Events};
pub use harness::{Harness, HarnessOptions};
pub use process::{Seen, descendants, is_alive, kill, processes, with_marker};
pub use world::{NOBODY, ToolResult, World, sequence, tool_results};
