//! The two halves of an executor as children of this process.
//!
//! Each half gets an empty environment, `/` as its folder, no standard input or output, and of our descriptors exactly
//! those that its command line names: ends of socket pairs, with no path that anything else could connect to. Both end
//! when the other end of their socket does, however this process ends.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// While one half is being started, two descriptors of ours are inheritable: no other child may be started then. This is
/// the only place in the program that starts processes.
static STARTING: Mutex<()> = Mutex::new(());

/// A pair that was started; whether it works is for Bind to say.
pub(crate) struct Halves {
    /// `serve`: gRPC and files.
    pub(crate) serve: Child,
    /// `run`: commands.
    pub(crate) run: Child,
    /// Our end of the gRPC connection.
    pub(crate) stream: UnixStream,
}

/// Starts both halves of `program`. They are killed when the value is dropped.
///
/// # Errors
/// The system's error of socketpair(2), fork or exec; then neither half lives.
pub(crate) fn start(program: &Path) -> io::Result<Halves> {
    let (ours, theirs) = pair(SocketType::STREAM)?;
    // Whole packets with descriptors travel between the halves.
    let (link_of_serve, link_of_run) = pair(SocketType::SEQPACKET)?;
    let mut serve = half(program, "serve");
    serve.arg("--local");
    let serve = spawn(serve, &[("--grpc-fd", theirs), ("--runner-fd", link_of_serve)])?;
    let run = spawn(half(program, "run"), &[("--link-fd", link_of_run)])?;
    let ours = std::os::unix::net::UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok(Halves { serve, run, stream: UnixStream::from_std(ours)? })
}

fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

fn half(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg(name)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        // Out of the terminal's foreground group: an interrupt there is ours to handle, in order.
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Starts `command` with each descriptor named by its number, and closes our copies.
fn spawn(mut command: Command, descriptors: &[(&str, OwnedFd)]) -> io::Result<Child> {
    for (option, descriptor) in descriptors {
        command.arg(option).arg(descriptor.as_raw_fd().to_string());
    }
    let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, descriptor) in descriptors {
        fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    let child = command.spawn();
    for (_, descriptor) in descriptors {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    child
}
