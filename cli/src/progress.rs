//! What a person sees while a long transfer runs.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::shown::shown;

/// How often an animation without a known end moves.
const TICK: Duration = Duration::from_millis(120);

/// A bar on standard error, when that is a terminal; nothing otherwise.
pub(crate) fn bar(total_bytes: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match total_bytes {
        Some(total) => {
            (ProgressBar::new(total), "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}")
        }
        None => (ProgressBar::no_length(), "{spinner} {bytes} {binary_bytes_per_sec}"),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if total_bytes.is_none() {
        bar.enable_steady_tick(TICK);
    }
    bar
}

/// One line on standard error, escaped.
pub(crate) fn tell(line: &str) {
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(std::io::stderr(), "{}", shown(line));
}

/// `12.3 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    HumanBytes(count).to_string()
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
