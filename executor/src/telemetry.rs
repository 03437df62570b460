//! The log: to standard error, ids and counts only. Never an argument, a variable, a path of the host or a content.

mod tally;

pub use tally::Tally;

use tracing_subscriber::EnvFilter;

/// Whole, since a default level counts only where no directive stands at all.
const FILTER: &str = "info,h2=warn";

/// Sends the log to standard error, `info` and above, and panics with their place alone: their text may hold a content.
pub fn start() {
    let filter = EnvFilter::new(FILTER);
    // A second start, in a test, keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .try_init();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        tracing::error!(place, "panicked");
    }));
}
