//! `mooring-operator`: prepares an execution environment for each Session and keeps it.

use std::process::ExitCode;

use clap::Parser;
use mooring_operator::args::Args;
use mooring_operator::{run, telemetry};

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => run::report(&error),
    }
}

fn start() -> anyhow::Result<()> {
    let args = Args::parse();
    telemetry::start()?;
    run::install_crypto();
    run::until_signal(args.into())
}
