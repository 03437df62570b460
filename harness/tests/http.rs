//! The HTTP API as a caller meets it: real requests over loopback.

#[path = "http/wire.rs"]
mod wire;

#[path = "http/approvals.rs"]
mod approvals;
#[path = "http/callers.rs"]
mod callers;
#[path = "http/events.rs"]
mod events;
#[path = "http/input.rs"]
mod input;
#[path = "http/life.rs"]
mod life;
