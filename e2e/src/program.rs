//! The edges of this crate's programs: where they put things by default, and how they end.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

/// The folder `name` beside the build: `target/NAME` when the running program lies in `target/debug` or `target/release`.
///
/// # Errors
/// When the program's own path is not known or too short.
pub fn beside_build(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("the path of this program")?;
    let target = own.parent().and_then(|profile| profile.parent()).context("the target folder")?;
    Ok(target.join(name))
}

/// How a program ends: a failure is told on standard error as one line that begins with `name`.
pub fn end(name: &str, outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            // Nothing can be done about a standard error that is closed.
            let _ = writeln!(std::io::stderr(), "{name}: {cause:#}");
            ExitCode::FAILURE
        }
    }
}
