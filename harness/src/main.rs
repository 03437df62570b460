//! `mooring serve`: sessions of coding agents.

use std::process::ExitCode;

use clap::Parser;
use mooring_harness::args::{Args, Config};
use mooring_harness::{cluster, key, run, telemetry};

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => run::report(&error),
    }
}

/// The key leaves the environment and the process its neighbours' sight before any thread starts.
fn start() -> anyhow::Result<()> {
    key::leave_environment()?;
    run::hide_process()?;
    let args = Args::parse();
    telemetry::start()?;
    run::install_crypto();
    match args.into_config()? {
        Config::Local(config) => run::until_signal(config),
        Config::Cluster(config) => cluster::until_signal(config),
    }
}
