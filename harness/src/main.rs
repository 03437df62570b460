//! `mooring serve`: sessions of coding agents.

use std::process::ExitCode;

use clap::Parser;
use mooring_harness::args::Args;
use mooring_harness::{key, run, telemetry};

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
    run::until_signal(args.into_config()?)
}
