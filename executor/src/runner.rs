//! The `run` half of the executor and the link that serves it.
//!
//! ```text
//!  serve (tokio)                 run (one thread, reaps everything)          one per command
//!  Link ──── SEQPACKET, fds ───▶ Runner ──── socket pair ───▶ Supervisor ──fork──▶ command
//!   │  start, cancel, signal      │  fork, walk of orphans    │  domain A: scopes   domain B: files + scopes
//!   ◀── started, ended, gone ─────┘                           └─ ends the whole tree and proves it
//! ```
//!
//! Whoever dies, nothing it started survives: a supervisor ends its tree when the runner's end of its socket closes, the
//! runner ends every supervisor when the link closes, and it ends the orphans of a supervisor that was killed.

mod link;
mod packet;
mod shell;
mod spec;
mod wire;

use std::os::fd::OwnedFd;
use std::process::ExitCode;

pub use link::{Control, Ended, Gone, Link, Running, StartError};
pub use spec::{
    Capabilities, Confinement, End, EndKind, LinkVersion, NotStarted, Program, Shell, StartSpec, Stdin,
};

/// Runs commands for the serve side at the other end of `link` until it closes, then ends them all and returns.
///
/// Must be called by a process of one thread. Needs no environment, no argument and no runtime; fit to be process 1.
/// Fails when anything it was responsible for could not be ended.
pub fn run(link: OwnedFd) -> ExitCode {
    drop(link);
    ExitCode::FAILURE
}
