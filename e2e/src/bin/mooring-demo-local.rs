//! The main job of local mode, from end to end; the exit code says whether every check held.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use mooring_e2e::demo::demonstrate;
use mooring_e2e::program::{self, beside_build};
use tokio::signal::unix::{SignalKind, signal};

/// Runs a harness, a scripted model and a git server on loopback, has a bug fixed and pushed, and checks it all.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where the demo's folder is made; by default `demo` beside the build, `target/demo`.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    program::end("demo:local", run(Args::parse()).await)
}

async fn run(args: Args) -> anyhow::Result<()> {
    let folder = args.folder.map_or_else(|| beside_build("demo"), Ok)?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Whichever way this ends, dropping the demo ends the processes it started.
    tokio::select! {
        outcome = demonstrate(&folder) => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}
