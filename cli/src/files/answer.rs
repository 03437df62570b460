//! Answers as they are written out: field names as in the API, names as the protocol spells them.

use jiff::Timestamp;
use mooring_proto::v1::{
    DirectoryEntry, FileKind, GlobResponse, GrepResponse, StatResponse, Truncation, TruncationReason,
};
use serde::Serialize;

use crate::progress::tell;

/// A folder.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    kind: &'static str,
    size_bytes: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    link_target: String,
}

impl From<Vec<DirectoryEntry>> for Listed {
    fn from(entries: Vec<DirectoryEntry>) -> Self {
        let entries = entries.into_iter().map(|entry| Entry {
            kind: kind(entry.kind()),
            name: entry.name,
            size_bytes: entry.size_bytes,
            link_target: entry.link_target,
        });
        Self { entries: entries.collect() }
    }
}

impl Listed {
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let mut rows = vec![["KIND", "SIZE", "NAME"].map(str::to_owned).to_vec()];
        for entry in &self.entries {
            rows.push(vec![
                entry.kind.to_owned(),
                entry.size_bytes.to_string(),
                arrow(&entry.name, &entry.link_target),
            ]);
        }
        rows
    }
}

/// One path.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    kind: &'static str,
    size_bytes: u64,
    mode: String,
    modified: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    link_target: String,
}

impl From<StatResponse> for Found {
    fn from(found: StatResponse) -> Self {
        let modified = Timestamp::from_nanosecond(found.mtime_nanos.into());
        Self {
            kind: kind(found.kind()),
            size_bytes: found.size_bytes,
            mode: format!("{:04o}", found.mode),
            modified: modified.map_or_else(|_| String::new(), |time| time.to_string()),
            link_target: found.link_target,
        }
    }
}

impl Found {
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let size = self.size_bytes.to_string();
        vec![
            ["KIND", "SIZE", "MODE", "MODIFIED", "TARGET"].map(str::to_owned).to_vec(),
            [self.kind, &size, &self.mode, &self.modified, &self.link_target].map(str::to_owned).to_vec(),
        ]
    }
}

/// Lines that match.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Matches {
    matches: Vec<Match>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    path: String,
    line: u64,
    text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

impl From<GrepResponse> for Matches {
    fn from(found: GrepResponse) -> Self {
        let matches = found.matches.into_iter().map(|found| Match {
            path: found.path,
            line: found.line,
            text: found.text,
            cut: found.cut,
        });
        Self { matches: matches.collect() }
    }
}

impl Matches {
    pub(super) fn lines(&self) -> Vec<String> {
        self.matches.iter().map(|found| format!("{}:{}:{}", found.path, found.line, found.text)).collect()
    }
}

/// Paths.
#[derive(Debug, Serialize)]
pub(super) struct Paths {
    paths: Vec<String>,
}

impl From<GlobResponse> for Paths {
    fn from(found: GlobResponse) -> Self {
        Self { paths: found.paths }
    }
}

impl Paths {
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        self.paths.iter().map(|path| vec![path.clone()]).collect()
    }
}

/// Says when there is more than was sent.
pub(super) fn tell_truncation(truncation: Option<&Truncation>) {
    let Some(truncation) = truncation else { return };
    let bound = match truncation.reason() {
        TruncationReason::Count => "the most that is given at once",
        TruncationReason::Bytes => "the most text that is given at once",
        TruncationReason::Time => "its time",
        TruncationReason::Unspecified => "a bound",
    };
    tell(&format!("note: there is more: the search reached {bound} after {} results", truncation.sent));
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Regular => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Special => "special",
        FileKind::Unspecified => "unknown",
    }
}

fn arrow(name: &str, target: &str) -> String {
    if target.is_empty() { name.to_owned() } else { format!("{name} -> {target}") }
}
