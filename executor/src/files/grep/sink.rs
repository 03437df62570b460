//! The lines of one file.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::super::search::Budget;
use super::GrepLine;
use super::GrepQuery;

/// Most bytes of one line's text.
const TEXT_BYTES: usize = 2000;

/// What one file brought.
#[derive(Debug)]
pub(super) struct FileLines {
    /// At most as many as one answer may hold.
    pub(super) lines: Vec<GrepLine>,
    /// Matching lines in all.
    pub(super) n_matches: u64,
}

/// Collects the lines of one file, and counts the rest.
#[derive(Debug)]
pub(super) struct FileSink<'a> {
    path: &'a [u8],
    lines: Vec<GrepLine>,
    n_matches: u64,
    n_bytes: usize,
    /// Matching lines and bytes that are still worth keeping.
    max_matches: u64,
    max_bytes: usize,
    pub(super) is_binary: bool,
}

impl<'a> FileSink<'a> {
    /// A sink for the file at `path`; `count_only` when nothing of it can be in the answer any more.
    pub(super) fn new(path: &'a [u8], query: &GrepQuery, count_only: bool) -> Self {
        let max_matches = if count_only { 0 } else { query.max_matches as u64 };
        let max_bytes = query.max_bytes;
        Self { path, lines: Vec::new(), n_matches: 0, n_bytes: 0, max_matches, max_bytes, is_binary: false }
    }

    pub(super) fn into_lines(self) -> FileLines {
        FileLines { lines: self.lines, n_matches: self.n_matches }
    }

    fn keep(&mut self, line: Option<u64>, bytes: &[u8], is_context: bool) {
        if self.n_matches > self.max_matches || self.max_matches == 0 || self.n_bytes > self.max_bytes {
            return;
        }
        let (text, cut) = text_of(bytes);
        self.n_bytes += text.len();
        self.lines.push(GrepLine {
            path: self.path.to_vec(),
            line: line.unwrap_or(0),
            text,
            cut,
            is_context,
        });
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.n_matches += 1;
        self.keep(found.line_number(), found.bytes(), false);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.keep(context.line_number(), context.bytes(), true);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// A line without its end, as text of bounded length; and whether it was cut.
fn text_of(bytes: &[u8]) -> (String, bool) {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    // Each byte gives at least one byte of text, so what lies beyond is not needed.
    let near = &bytes[..bytes.len().min(TEXT_BYTES + 4)];
    let mut text = String::from_utf8_lossy(near).into_owned();
    let cut = text.len() > TEXT_BYTES || near.len() < bytes.len();
    if text.len() > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
    }
    (text, cut)
}

/// A file that fails to read once the search is to end, so that no single file outlasts the budget.
#[derive(Debug)]
pub(super) struct Watched<'a> {
    file: OwnedFd,
    budget: &'a Budget,
}

impl<'a> Watched<'a> {
    pub(super) fn new(file: OwnedFd, budget: &'a Budget) -> Self {
        Self { file, budget }
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.budget.is_spent() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(&self.file, &mut *buffer))?)
    }
}
