//! Sessions, the agent loop, HTTP and the store.
//!
//! ```text
//! main ─▶ args ─▶ run ─┬─▶ http ────────────────▶ store ◀─────────────── agent ─▶ model ─▶ provider
//!                      │    a person's words        ▲ rows, events          │
//!                      │    and answers, nudges ────┼──────────────────────▶│
//!                      │                            │                       ├─▶ mooring-authority (decides)
//!                      └─▶ environment ─────────────┴── references          └─▶ tools ─▶ environment ─▶ executor
//! ```
//!
//! In a cluster, `cluster` in place of `run`: `gateway` and `exchange` serve, `caller` knows who calls.
//!
//! `http` and `agent` meet in the store alone: what one wants of the other is a row first and a nudge second, so nothing is
//! lost when either ends. To embed it, start a [`run::Harness`].

#[macro_use]
mod closed_text;

pub mod agent;
pub mod args;
pub mod caller;
pub mod cluster;
pub mod environment;
mod exchange;
pub mod gateway;
pub mod http;
mod json;
pub mod key;
pub mod model;
pub mod run;
pub mod session;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod tools;
