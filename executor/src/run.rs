//! Puts a half together and takes it apart again.

mod local;
mod pod;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rustix::net::SocketType;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{Pod, Run, Serve};
use crate::commands::Commands;
use crate::environment::{BootId, Environment, Site};
use crate::grpc::{Calls, Health, Services};
use crate::inherited::take_socket;
use crate::runner::{self, LinkSlot};

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
/// When an inherited descriptor is no link.
pub fn run(run: Run) -> anyhow::Result<ExitCode> {
    match run {
        Run::Inherited(number) => {
            let link = take_socket(number, SocketType::SEQPACKET).context("taking the link")?;
            Ok(runner::run(link))
        }
        Run::Socket(path) => Ok(runner::run_at(&path)),
    }
}

/// The `serve` half: files and gRPC. Ends when SIGTERM has drained it, and in local mode also when the connection closes.
///
/// # Errors
/// When something it was given cannot be used, or the runtime cannot be made.
pub fn serve(serve: Serve) -> anyhow::Result<ExitCode> {
    // Descriptors are taken before anything else opens some.
    let way = match serve {
        Serve::Local(inherited) => Way::Local(local::Sockets::take(inherited)?),
        Serve::Pod(pod) => Way::Pod(pod),
    };
    guard_memory().context("guarding the memory of the process")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(async {
        match way {
            Way::Local(sockets) => local::serve(sockets).await,
            Way::Pod(pod) => pod::serve(pod).await,
        }
    })?;
    // Work that still blocks in the file system does not hold the process.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// How to serve, with what could be taken only once.
enum Way {
    Local(local::Sockets),
    Pod(Pod),
}

/// No core dump, and no reading of this process by another of the same user: variables pass through it.
fn guard_memory() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// What both ways to serve have in common: one environment, its commands, and how they end.
struct Server {
    environment: Arc<Environment>,
    commands: Arc<Commands>,
    calls: Calls,
    health: Health,
    /// Ends the gRPC server once its last call has ended.
    shut: CancellationToken,
}

impl Server {
    /// An environment at `site` whose commands go to the runner in `slot`, and its services, not served yet.
    fn new(site: Site, slot: LinkSlot) -> anyhow::Result<(Self, Services)> {
        let mut boot_id = [0; 16];
        getrandom::fill(&mut boot_id).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
        let environment = Environment::new(BootId::new(boot_id), site);
        let commands = Commands::new(slot, environment.boot_id().clone(), environment.tasks().clone());
        let services = Services::new(Arc::clone(&environment), Arc::clone(&commands));
        let (calls, health) = (services.calls(), services.health());
        tracing::info!(boot_id = environment.boot_id().as_str(), "serving");
        Ok((Self { environment, commands, calls, health, shut: CancellationToken::new() }, services))
    }

    /// Refuses new work, lets calls end, ends commands, lets readers take the ends. At most 10 s.
    async fn drain<T>(&self, mut served: JoinHandle<T>) {
        tracing::info!("draining");
        self.environment.drain();
        self.health.stop().await;
        // Past its grace a call is cut off by the end of the process.
        let _ = tokio::time::timeout(CALLS_GRACE, self.calls.idle()).await;
        self.commands.cancel_all(COMMANDS_GRACE).await;
        self.shut.cancel();
        self.environment.tasks().close();
        let rest = async { tokio::join!(&mut served, self.environment.tasks().wait()) };
        let _ = tokio::time::timeout(READERS_GRACE, rest).await;
    }
}
