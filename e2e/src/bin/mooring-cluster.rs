//! A real Kubernetes on this machine for tests and for trying things; see `e2e/cluster/README.md`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mooring_e2e::cluster::{self, Cluster, Component, State};

/// Builds, starts and stops a Kubernetes of one node. Needs root.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The folder of the run; by default `$XDG_STATE_HOME/mooring/cluster/default`.
    #[arg(long, global = true, value_name = "DIR", env = cluster::RUN_VARIABLE)]
    run: Option<PathBuf>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds the programs of the cluster that are missing in the cache folder, and prints their folder.
    Build,
    /// Starts a run, loads our images of this moment into it and prints the path of its kubeconfig. One that is up already gets
    /// the images alone.
    Up {
        /// Without our images.
        #[arg(long)]
        bare: bool,
    },
    /// Ends a run whatever state it is in; its logs stay.
    Down {
        /// Succeed when there is no such run.
        #[arg(long)]
        if_any: bool,
    },
    /// Prints what is known about each component; fails when one does not run.
    Status,
    /// Ends one component.
    Stop {
        /// Which one.
        component: Component,
        /// At once, as a crash would.
        #[arg(long)]
        kill: bool,
    },
    /// Starts one component again and waits until it does its work.
    Start {
        /// Which one.
        component: Component,
    },
    /// Loads the images of an archive as `docker save` writes it, and prints their references.
    Load {
        /// The archive.
        archive: PathBuf,
    },
    /// Provides the volumes of a run; started by `up`.
    #[command(hide = true)]
    Volumes,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(code) => code,
        Err(cause) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(std::io::stderr(), "cluster: {cause:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = args.run.map_or_else(cluster::default_run, Ok)?;
    let mut out = std::io::stdout();
    match args.task {
        Task::Build => writeln!(out, "{}", cluster::build().await?.display())?,
        Task::Up { bare } => writeln!(out, "{}", up(&folder, bare).await?.kubeconfig().display())?,
        Task::Down { if_any: true } if !folder.exists() => {}
        Task::Down { .. } => cluster::down(&folder).await?,
        Task::Status => return status(&Cluster::open(&folder)?),
        Task::Stop { component, kill: false } => Cluster::open(&folder)?.stop(component).await?,
        Task::Stop { component, kill: true } => Cluster::open(&folder)?.kill(component).await?,
        Task::Start { component } => Cluster::open(&folder)?.start(component).await?,
        Task::Load { archive } => {
            for reference in Cluster::open(&folder)?.load(&archive).await? {
                writeln!(out, "{reference}")?;
            }
        }
        Task::Volumes => cluster::provision(&folder).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Images are built while the cluster starts, which mostly waits; programs before, since that takes all there is.
async fn up(folder: &Path, bare: bool) -> anyhow::Result<Cluster> {
    if bare {
        return cluster::up(folder).await;
    }
    cluster::build().await?;
    // Not cut short by each other: half a cluster is harder to understand than a late error.
    let (cluster, images) = tokio::join!(cluster::up(folder), cluster::build_images());
    let cluster = cluster?;
    images?;
    cluster.load_built().await?;
    Ok(cluster)
}

fn status(cluster: &Cluster) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let mut all_run = true;
    for component in Component::ALL {
        let told = match cluster.state(component)? {
            State::Running { pid } => format!("runs as process {pid}"),
            State::Stopped => "is stopped".to_owned(),
            State::Dead => format!("is dead; its log is {}", cluster.log(component).display()),
        };
        all_run &= matches!(cluster.state(component)?, State::Running { .. });
        writeln!(out, "{component:<18} {told}", component = component.name())?;
    }
    writeln!(out, "export KUBECONFIG={}", cluster.kubeconfig().display())?;
    writeln!(out, "export PATH={}:$PATH", cluster.programs().display())?;
    Ok(if all_run { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
