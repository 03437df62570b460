//! The command line of the two halves: as it is written, and what it means.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

/// Files and commands of one execution environment.
#[derive(Debug, Parser)]
#[command(name = "mooring-executor", version)]
struct Args {
    /// Which half to be.
    #[command(subcommand)]
    half: HalfArgs,
}

/// The two halves. No secret is ever on their command lines.
#[derive(Debug, Subcommand)]
enum HalfArgs {
    /// Serve files and commands over gRPC.
    Serve(ServeArgs),
    /// Run commands for the serving half.
    Run(RunArgs),
}

#[derive(Debug, clap::Args)]
struct ServeArgs {
    /// Serve an environment of kind `local`, the only kind that inherited sockets can carry.
    #[arg(long, requires_all = ["grpc_fd", "runner_fd"], conflicts_with = "listen")]
    local: bool,
    /// Descriptor of a connected Unix stream socket to speak gRPC over. The process ends when it closes.
    #[arg(long, value_name = "N", requires = "local")]
    grpc_fd: Option<RawFd>,
    /// Descriptor of a connected Unix seqpacket socket with the runner at the other end.
    #[arg(long, value_name = "M", requires = "local")]
    runner_fd: Option<RawFd>,
    /// Serve an environment of kind `kubernetes` at this address and port, to callers with a certificate of a known role.
    #[arg(long, value_name = "ADDR", requires_all = ["tls", "runner_socket", "workspace"])]
    listen: Option<SocketAddr>,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`. Read anew when they change.
    #[arg(long, value_name = "DIR", requires = "listen")]
    tls: Option<PathBuf>,
    /// Where to make the socket that the runner connects to, in a folder that no command can write. At most 100 bytes.
    #[arg(long, value_name = "PATH", requires = "listen")]
    runner_socket: Option<PathBuf>,
    /// Root of the environment's volume.
    #[arg(long, value_name = "DIR", requires = "listen")]
    workspace: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct RunArgs {
    /// Descriptor of a connected Unix seqpacket socket with the serving half at the other end. The process, and every
    /// command, ends when it closes.
    #[arg(long, value_name = "M")]
    link_fd: Option<RawFd>,
    /// Socket that the serving half makes. Waited for, connected to once; the process, and every command, ends when the
    /// connection closes.
    #[arg(long, value_name = "PATH")]
    link: Option<PathBuf>,
}

/// What this process is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Half {
    /// The serving half.
    Serve(Serve),
    /// The running half.
    Run(Run),
}

/// The two ways to serve. Each serves one kind of environment and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serve {
    /// Kind `local`, as a child of the harness.
    Local(Inherited),
    /// Kind `kubernetes`, in a pod.
    Pod(Pod),
}

/// Sockets that the parent process handed down by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Of a connected Unix stream socket.
    pub grpc_fd: RawFd,
    /// Of a connected Unix seqpacket socket.
    pub runner_fd: RawFd,
}

/// Where a pod has what the serving half needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Where to accept TLS connections.
    pub listen: SocketAddr,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub tls: PathBuf,
    /// Where to make the runner's socket.
    pub runner_socket: PathBuf,
    /// Root of the volume.
    pub workspace: PathBuf,
}

/// The two ways to reach the serving half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// An inherited, connected socket.
    Inherited(RawFd),
    /// A socket by path, which the serving half makes.
    Socket(PathBuf),
}

impl Half {
    /// Reads the command line of this process. Prints help, version or what is wrong, and ends the process, like
    /// [`clap::Parser::parse`].
    pub fn from_command_line() -> Self {
        Self::parse(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Reads a command line, entry 0 being the program's name.
    ///
    /// # Errors
    /// What clap says of an incomplete, contradictory or unknown argument; help and version come as errors too.
    pub fn parse(
        arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        match Args::try_parse_from(arguments)?.half {
            HalfArgs::Serve(args) => args.into_serve().map(Self::Serve),
            HalfArgs::Run(args) => args.into_run().map(Self::Run),
        }
    }
}

impl ServeArgs {
    fn into_serve(self) -> Result<Serve, clap::Error> {
        if let (true, Some(grpc_fd), Some(runner_fd)) = (self.local, self.grpc_fd, self.runner_fd) {
            return Ok(Serve::Local(Inherited { grpc_fd, runner_fd }));
        }
        if let (Some(listen), Some(tls), Some(runner_socket), Some(workspace)) =
            (self.listen, self.tls, self.runner_socket, self.workspace)
        {
            return Ok(Serve::Pod(Pod { listen, tls, runner_socket, workspace }));
        }
        Err(incomplete("serve needs --local or --listen with what belongs to it"))
    }
}

impl RunArgs {
    fn into_run(self) -> Result<Run, clap::Error> {
        match (self.link_fd, self.link) {
            (Some(number), None) => Ok(Run::Inherited(number)),
            (None, Some(path)) => Ok(Run::Socket(path)),
            (Some(_), Some(_)) | (None, None) => Err(incomplete("run needs --link-fd or --link")),
        }
    }
}

fn incomplete(message: &str) -> clap::Error {
    Args::command().error(ErrorKind::MissingRequiredArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a case is a value")]
    fn check(line: &str, expected: Option<Half>) {
        let parsed = Half::parse(std::iter::once("mooring-executor").chain(line.split(' ')));
        assert_eq!(parsed.ok(), expected, "{line}");
    }

    #[test]
    fn each_mode_is_complete_or_refused() {
        let pod = Pod {
            listen: "0.0.0.0:7443".parse().expect("an address"),
            tls: "/t".into(),
            runner_socket: "/l/s".into(),
            workspace: "/w".into(),
        };
        let inherited = Inherited { grpc_fd: 0, runner_fd: 1 };
        check("serve --local --grpc-fd 0 --runner-fd 1", Some(Half::Serve(Serve::Local(inherited))));
        check(
            "serve --listen 0.0.0.0:7443 --tls /t --runner-socket /l/s --workspace /w",
            Some(Half::Serve(Serve::Pod(pod))),
        );
        check("run --link-fd 5", Some(Half::Run(Run::Inherited(5))));
        check("run --link /l/s", Some(Half::Run(Run::Socket("/l/s".into()))));
        for line in [
            "serve",
            "serve --local",
            "serve --local --grpc-fd 0",
            "serve --grpc-fd 0 --runner-fd 1",
            "serve --listen 0.0.0.0:7443",
            "serve --listen 0.0.0.0:7443 --tls /t --runner-socket /l/s",
            "serve --listen somewhere --tls /t --runner-socket /l/s --workspace /w",
            "serve --tls /t --runner-socket /l/s --workspace /w",
            "serve --local --grpc-fd 0 --runner-fd 1 --workspace /w",
            "serve --local --grpc-fd 0 --runner-fd 1 --listen 0.0.0.0:1 --tls /t --runner-socket /l --workspace /w",
            "run",
            "run --link-fd 5 --link /l/s",
            "run --local",
        ] {
            check(line, None);
        }
    }
}
