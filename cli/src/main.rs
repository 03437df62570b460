//! `kubectl mooring`: sessions, their files and their commands, from a person's own machine.

use std::process::ExitCode;

fn main() -> ExitCode {
    mooring_cli::run::install_crypto();
    mooring_cli::run::run(std::env::args_os())
}
