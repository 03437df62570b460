//! Puts a half together and takes it apart again.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use rustix::net::SocketType;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{RunArgs, ServeArgs};
use crate::commands::Commands;
use crate::environment::{BootId, Environment};
use crate::grpc::{Connection, Services};
use crate::inherited::take_socket;
use crate::runner::{self, Link};

/// Threads that serve calls. Few, so that an idle executor is small; blocking work has threads of its own.
const WORKERS: usize = 2;
/// Threads for file system work, made when needed and let go after 10 s.
const MAX_BLOCKING_THREADS: usize = 64;
/// How long a draining executor waits for calls that are being served.
const CALLS_GRACE: Duration = Duration::from_secs(5);
/// How long it then waits for commands to end: TERM, 2 s, KILL, and some room.
const COMMANDS_GRACE: Duration = Duration::from_secs(4);
/// How long it then waits for readers to take the ends, and for operations whose caller has gone.
const READERS_GRACE: Duration = Duration::from_secs(1);

/// The `run` half: commands, for as long as the link holds.
///
/// # Errors
/// When the descriptor is no link.
pub fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let link = take_socket(args.link_fd, SocketType::SEQPACKET).context("taking the link")?;
    Ok(runner::run(link))
}

/// The `serve` half: files and gRPC, until the connection closes or SIGTERM has drained it.
///
/// # Errors
/// When a descriptor is none of ours or the runtime cannot be made.
pub fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let grpc = take_socket(args.grpc_fd, SocketType::STREAM).context("taking the gRPC socket")?;
    let link = take_socket(args.runner_fd, SocketType::SEQPACKET).context("taking the runner's socket")?;
    guard_memory().context("guarding the memory of the process")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let code = runtime.block_on(serve_connection(grpc, link))?;
    // Work that still blocks in the file system does not hold the process.
    runtime.shutdown_background();
    Ok(code)
}

/// No core dump, and no reading of this process by another of the same user: variables pass through it.
fn guard_memory() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

async fn serve_connection(grpc: OwnedFd, link: OwnedFd) -> anyhow::Result<ExitCode> {
    let mut boot_id = [0; 16];
    getrandom::fill(&mut boot_id).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    let environment = Environment::new(BootId::new(boot_id));
    let link = Link::connect(link).context("connecting to the runner")?;
    let commands = Commands::new(link.clone(), environment.boot_id().clone(), environment.tasks().clone());
    let stream = UnixStream::from(grpc);
    stream.set_nonblocking(true).context("preparing the gRPC socket")?;
    let stream = tokio::net::UnixStream::from_std(stream).context("preparing the gRPC socket")?;
    let connection = Connection::new(stream);
    let closed = connection.closed();

    let services = Services::new(environment.clone(), commands.clone());
    let calls = services.calls();
    let health = services.health();
    let shut = CancellationToken::new();
    let mut server = tokio::spawn(services.serve(connection, shut.clone()));
    let mut terminated = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    tracing::info!(boot_id = environment.boot_id().as_str(), "serving");
    tokio::select! {
        () = closed.cancelled() => tracing::info!("the connection closed"),
        served = &mut server => served.context("the server panicked")?.context("serving")?,
        _ = terminated.recv() => {
            tracing::info!("draining");
            environment.drain();
            health.stop().await;
            // Past its grace a call is cut off by the end of the process.
            let _ = tokio::time::timeout(CALLS_GRACE, calls.idle()).await;
            commands.cancel_all(COMMANDS_GRACE).await;
            shut.cancel();
            environment.tasks().close();
            let rest = async { tokio::join!(&mut server, environment.tasks().wait()) };
            let _ = tokio::time::timeout(READERS_GRACE, rest).await;
        }
    }
    link.close();
    Ok(ExitCode::SUCCESS)
}
