//! Standard output: only what was asked for.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde::Serialize;

use crate::error::Error;
use crate::shown::{shown, shown_json};

/// How a list or an object is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Writes bytes as they are.
///
/// # Errors
/// [`Error::Output`].
pub(crate) fn bytes(content: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(content).and_then(|()| out.flush()).map_err(Error::Output)
}

/// Writes one line, escaped.
///
/// # Errors
/// [`Error::Output`].
pub(crate) fn line(text: &str) -> Result<(), Error> {
    bytes(format!("{}\n", shown(text)).as_bytes())
}

/// Writes a value as JSON or YAML, or as the lines of `table`.
///
/// # Errors
/// [`Error::Output`].
pub(crate) fn value<T: Serialize>(
    format: Format,
    value: &T,
    table: impl FnOnce() -> Vec<Vec<String>>,
) -> Result<(), Error> {
    let text = match format {
        Format::Table => columns(&table()),
        Format::Json => {
            let json = serde_json::to_string_pretty(value).map_err(|error| Error::Output(error.into()))?;
            shown_json(&json) + "\n"
        }
        // A writer of YAML leaves some characters bare that change how a terminal shows the rest.
        Format::Yaml => {
            let yaml =
                serde_yaml::to_string(value).map_err(|error| Error::Output(io::Error::other(error)))?;
            yaml.lines().map(|line| shown(line).into_owned() + "\n").collect()
        }
    };
    bytes(text.as_bytes())
}

/// Rows in columns as wide as their widest cell, three blanks between them.
fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if at + 1 < row.len() {
                line.extend(std::iter::repeat_n(' ', widths[at] - cell.chars().count() + 3));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "READY"], ["a", "True"], ["long\u{1b}name", ""]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(columns(&rows), "NAME           READY\na              True\nlong\\x1Bname\n");
    }
}
