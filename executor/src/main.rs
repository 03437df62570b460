//! Entry point of both halves.

use std::process::ExitCode;

use mooring_executor::args::Half;
use mooring_executor::{run, telemetry};

fn main() -> ExitCode {
    let half = Half::from_command_line();
    telemetry::start();
    let outcome = match half {
        Half::Serve(serve) => run::serve(serve),
        Half::Run(run) => run::run(run),
    };
    outcome.unwrap_or_else(|error| {
        tracing::error!("{error:#}");
        ExitCode::FAILURE
    })
}
