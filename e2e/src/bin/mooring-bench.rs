//! Measures the product beside its references, prints the rows and writes `executor.json` and `cluster.json`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use mooring_e2e::bench::{self, Row};
use mooring_e2e::program::{self, beside_build};

/// Every row is ours beside a reference taken in the same run; rows that lose are shown like the others.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where the results go, and the folders that are measured on; by default `bench` beside the build, `target/bench`.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// What is measured.
    #[arg(long, value_enum, default_value_t = Suite::Executor)]
    suite: Suite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// The executor as a pair of processes, of this program's own build.
    Executor,
    /// Sessions and commands on the cluster that MOORING_CLUSTER or KUBECONFIG names.
    Cluster,
    /// Both.
    All,
}

#[tokio::main]
async fn main() -> ExitCode {
    program::end("bench", run(Args::parse()).await)
}

async fn run(args: Args) -> anyhow::Result<()> {
    let folder = args.folder.map_or_else(|| beside_build("bench"), Ok)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    if args.suite != Suite::Cluster {
        let build = if cfg!(debug_assertions) {
            "debug build: times are of unoptimised code"
        } else {
            "release build"
        };
        show(build, &bench::executor(&folder).await?, &folder.join("executor.json"))?;
    }
    if args.suite != Suite::Executor {
        let (rows, build) = bench::cluster().await?;
        show(&format!("on a cluster whose images hold {build}"), &rows, &folder.join("cluster.json"))?;
    }
    Ok(())
}

fn show(what: &str, rows: &[Row], path: &Path) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{what}")?;
    bench::print(rows, &mut out)?;
    bench::write_json(rows, path)?;
    writeln!(out, "written: {}", path.display())?;
    Ok(())
}
