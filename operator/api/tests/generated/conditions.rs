//! The page about conditions.

use std::fmt::Write as _;

use mooring_operator_api::condition::{ClassReason, PreferencesReason, Row, SessionReason, TaskReason};

use super::NOTICE;

/// `docs/conditions.md`.
pub(super) fn page() -> String {
    let mut page = format!(
        "# Conditions\n\n<!-- {NOTICE} -->\n\nWhat `kubectl describe` shows of a resource: each condition with its reasons, what a reason means, and what to do \
         about it. Programs compare type, status and reason; the message is for people. What nothing sets yet \
         is marked *(planned)*.\n"
    );
    section(&mut page, "Session", SessionReason::ROWS);
    section(&mut page, "Task", TaskReason::ROWS);
    section(&mut page, "ExecutorClass", ClassReason::ROWS);
    section(&mut page, "Preferences", PreferencesReason::ROWS);
    page
}

fn section(page: &mut String, resource: &str, rows: &[Row]) {
    write!(page, "\n## {resource}\n\n| condition | reason | means | what to do |\n|---|---|---|---|\n")
        .expect("a string takes everything");
    for Row { condition, status, reason, meaning, remedy } in rows {
        writeln!(page, "| {condition}={} | `{reason}` | {meaning} | {remedy} |", status.as_str())
            .expect("a string takes everything");
    }
}
