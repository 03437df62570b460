//! The `run` half of the executor and the link that serves it.
//!
//! ```text
//!  serve (tokio)                 run (one thread, reaps everything)          one per command
//!  Link ──── SEQPACKET, fds ───▶ Runner ──── socket pair ───▶ Supervisor ──fork──▶ command
//!   │  start, cancel, signal      │  fork, walk of orphans    │  domain A: scopes   domain B: files + scopes
//!   ◀── started, ended, gone ─────┘                           └─ ends the whole tree and proves it
//! ```
//!
//! Locally both ends of the link are inherited. In a pod the serving half makes a socket (`Host`), a runner connects once
//! (`dial`), and when it is lost the next one takes its place in the `LinkSlot`; what it ran ends with it.
//!
//! Whoever dies, nothing it started survives: a supervisor ends its tree when the runner's end of its socket closes, the
//! runner ends every supervisor when the link closes, and it ends the orphans of a supervisor that was killed.

mod dial;
#[expect(unsafe_code, reason = "two Landlock calls without a safe wrapper")]
mod domain;
mod host;
#[expect(unsafe_code, reason = "execve with prepared pointers")]
mod image;
#[expect(unsafe_code, reason = "system calls without a safe wrapper")]
mod kernel;
#[expect(unsafe_code, reason = "only raw system calls between fork and exec")]
mod launch;
mod link;
mod memory;
mod packet;
#[expect(unsafe_code, reason = "capability calls without a safe wrapper")]
mod privilege;
mod scope;
#[expect(unsafe_code, reason = "one prctl without a safe wrapper")]
mod seccomp;
mod shell;
mod slot;
mod socket;
mod spawner;
mod spec;
mod supervisor;
mod tree;
mod wire;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

pub use host::{Host, HostError};
pub use link::{Control, Ended, Gone, Link, Running, StartError};
pub use slot::LinkSlot;
pub use socket::PlaceError;
pub use spec::{
    Capabilities, Confinement, End, EndKind, Folder, LinkVersion, NotStarted, Program, Shell, StartSpec,
    Stdin,
};

/// Waits for the serve side to make a socket at `path`, then runs commands for it as [`run`] does.
///
/// Waits for a minute, then fails, so that whoever keeps the process starts it again. SIGTERM ends the waiting.
pub fn run_at(path: &Path) -> ExitCode {
    match dial::dial(path) {
        Ok(link) => run(link),
        Err(dial::DialError::Terminated) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "the runner cannot connect");
            ExitCode::FAILURE
        }
    }
}

/// Runs commands for the serve side at the other end of `link` until it closes or SIGTERM comes, then ends them all.
///
/// Must be called by a process of one thread. Needs no environment, no argument and no runtime; fit to be process 1. It
/// closes every descriptor above 2 but `link`, gives up all capabilities and cannot be inspected by others of its user.
/// Fails when it could not set itself up, or when something it was responsible for could not be ended.
pub fn run(link: OwnedFd) -> ExitCode {
    match spawner::Runner::new(link) {
        Ok(runner) => ExitCode::from(u8::from(!runner.serve())),
        Err(error) => {
            tracing::error!(%error, "the runner cannot start");
            ExitCode::FAILURE
        }
    }
}
