//! Measures the executor beside its references, prints the rows and writes `executor.json`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mooring_e2e::bench;
use mooring_e2e::program::{self, beside_build};

/// Every row is ours beside a reference taken in the same run; rows that lose are shown like the others.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where the results go, and the folders that are measured on; by default `bench` beside the build, `target/bench`.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    program::end("bench", run(Args::parse()).await)
}

async fn run(args: Args) -> anyhow::Result<()> {
    let folder = args.folder.map_or_else(|| beside_build("bench"), Ok)?;
    let mut out = std::io::stdout();
    let build =
        if cfg!(debug_assertions) { "debug build: times are of unoptimised code" } else { "release build" };
    writeln!(out, "{build}")?;
    let rows = bench::executor(&folder).await?;
    bench::print(&rows, &mut out)?;
    let path = folder.join("executor.json");
    bench::write_json(&rows, &path)?;
    writeln!(out, "written: {}", path.display())?;
    Ok(())
}
