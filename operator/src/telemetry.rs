//! The log: one line of JSON for each event on standard error. Ids and counts, never a value or an object.

use tracing_subscriber::EnvFilter;

/// The variable that chooses what is logged, as `tracing_subscriber::EnvFilter` reads it. Default: `info`.
pub const LOG_VARIABLE: &str = "MOORING_LOG";

/// Sends the log to standard error.
///
/// # Errors
/// When a log is set up already, or [`LOG_VARIABLE`] cannot be read.
pub fn start() -> anyhow::Result<()> {
    let chosen = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| "info".to_owned());
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(EnvFilter::try_new(chosen)?)
        .with_writer(std::io::stderr)
        .try_init()
        .map_err(|error| anyhow::anyhow!("cannot set up the log: {error}"))
}
