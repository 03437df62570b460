//! The main job of local mode, from end to end; the exit code says whether every check held.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser;
use mooring_e2e::demo::demonstrate;
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
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(std::io::stderr(), "demo:local: {cause:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> anyhow::Result<()> {
    let folder = args.folder.map_or_else(beside_build, Ok)?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Whichever way this ends, dropping the demo ends the processes it started.
    tokio::select! {
        outcome = demonstrate(&folder) => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

/// `target/demo` when this program is `target/debug/mooring-demo-local`.
fn beside_build() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program")?;
    let target = own.parent().and_then(|profile| profile.parent()).context("the target folder")?;
    Ok(target.join("demo"))
}
