//! Entry point of both halves.

use std::process::ExitCode;

use clap::Parser as _;
use mooring_executor::args::{Args, Half};
use mooring_executor::{run, telemetry};

fn main() -> ExitCode {
    let args = Args::parse();
    telemetry::start();
    let outcome = match args.half {
        Half::Serve(serve) => run::serve(serve),
        Half::Run(run) => run::run(run),
    };
    outcome.unwrap_or_else(|error| {
        tracing::error!("{error:#}");
        ExitCode::FAILURE
    })
}
