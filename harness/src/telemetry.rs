//! The log: one line per event on standard error.

use std::error::Error;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// The variable that chooses what is logged, as `tracing_subscriber::EnvFilter` reads it. Default: `info`.
pub const LOG_VARIABLE: &str = "MOORING_LOG";

/// Sends the log to standard error. Colours only for a terminal, and not with `NO_COLOR` (no-color.org).
///
/// # Errors
/// When a log is set up already, or [`LOG_VARIABLE`] cannot be read.
pub fn start() -> anyhow::Result<()> {
    let chosen = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| "info".to_owned());
    let filter = EnvFilter::try_new(chosen)?;
    let colours =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .try_init()
        .map_err(|error| anyhow::anyhow!("cannot set up the log: {error}"))
}

/// An error and its causes in one line: the log's format shows the outermost alone.
pub(crate) fn story(error: &dyn Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        // Some errors say what their cause says.
        if !story.ends_with(&told) {
            story.push_str(": ");
            story.push_str(&told);
        }
        cause = error.source();
    }
    story
}
