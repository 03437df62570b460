//! The two halves of an executor as children of this process.
//!
//! Each half gets an empty environment, `/` as its folder, and of our descriptors exactly the ends of socket pairs that its
//! command line names by number; no path leads to them. They travel as standard input and output, since those are set in
//! the child alone: no descriptor of ours is inheritable at any moment, whatever else this program starts meanwhile. Each
//! half takes them over before it opens anything. Both end when the other end of their socket does, however this process
//! ends.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

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
    let serve = half(program)
        .args(["serve", "--local", "--grpc-fd", "0", "--runner-fd", "1"])
        .stdin(theirs)
        .stdout(link_of_serve)
        .spawn()?;
    let run =
        half(program).args(["run", "--link-fd", "0"]).stdin(link_of_run).stdout(Stdio::null()).spawn()?;
    let ours = std::os::unix::net::UnixStream::from(ours);
    ours.set_nonblocking(true)?;
    Ok(Halves { serve, run, stream: UnixStream::from_std(ours)? })
}

fn pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

fn half(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .current_dir("/")
        .stderr(Stdio::inherit())
        // Out of the terminal's foreground group: an interrupt there is ours to handle, in order.
        .process_group(0)
        .kill_on_drop(true);
    command
}
