//! The log: one line of JSON for each event on standard error. Ids and counts, never a value or an object.

use std::error::Error;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot write")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn a_story_has_every_cause_once() {
        let refused = || std::io::Error::from_raw_os_error(111);
        assert_eq!(story(&Outer(refused())), "cannot write: Connection refused (os error 111)");
        assert_eq!(story(&std::io::Error::other(refused())), "Connection refused (os error 111)");
    }
}
