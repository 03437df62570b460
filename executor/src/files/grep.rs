//! Searching file contents by regular expression.

mod found;
mod sink;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use rustix::fs::{Mode, OFlags};

use self::found::Found;
use self::sink::{FileSink, Watched};
use super::glob::PathPattern;
use super::kind::Kind;
use super::read::Truncation;
use super::search::{Budget, SEARCH_THREADS, SearchReport, Tally, Walk};
use super::stop::Stop;
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;
use crate::root::{Fault, Root};

/// Longest pattern.
const PATTERN_BYTES: usize = 10_000;
/// Memory of one compiled pattern.
const REGEX_BYTES: usize = 16 * 1024 * 1024;
/// Memory for one line; a file with a longer one counts as unreadable.
const LINE_BYTES: usize = 16 * 1024 * 1024;
/// Files that are remembered for searching.
const MAX_CANDIDATES: usize = 1_000_000;

/// What to search for, and where.
#[derive(Clone, Debug)]
pub struct GrepQuery {
    /// File or directory.
    pub path: WorkspacePath,
    /// Only files whose path below `path` matches; one without a slash is held against the name alone.
    pub glob: Option<String>,
    /// Rust syntax, 1..=10,000 bytes; a line is searched at a time.
    pub pattern: String,
    /// Upper and lower case match each other.
    pub case_insensitive: bool,
    /// Search what ignore files name, and hidden files, too.
    pub include_ignored: bool,
    /// Most matching lines.
    pub max_matches: usize,
    /// Lines of context before and after.
    pub context_lines: usize,
    /// Most bytes of line text.
    pub max_bytes: usize,
    /// Most time.
    pub time: Duration,
}

/// One line of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepLine {
    /// Path from the workspace root.
    pub path: Vec<u8>,
    /// 1-based.
    pub line: u64,
    /// Without its end, at most 2,000 bytes; what is not UTF-8 is U+FFFD.
    pub text: String,
    /// Whether `text` was cut.
    pub cut: bool,
    /// A line around a match rather than one.
    pub is_context: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepAnswer {
    /// Sorted by path and line.
    pub lines: Vec<GrepLine>,
    /// Set when there are, or may be, more matching lines.
    pub truncation: Option<Truncation>,
    /// What was not looked at.
    pub report: SearchReport,
}

impl Files {
    /// Searches regular files. The answer is the same for the same tree, however the threads ran, unless time ran out. Links are
    /// not followed, binary files are skipped, special files never opened; all are counted.
    ///
    /// # Errors
    /// [`FileError::Invalid`] for a pattern or glob that does not parse; [`FileError::Resolve`] when the path does not resolve beneath
    /// the root; [`FileError::NotRegular`] for a special file.
    pub async fn grep(&self, query: GrepQuery) -> Result<GrepAnswer, FileError> {
        let matcher = matcher(&query)?;
        let glob = query.glob.as_deref().map(PathPattern::new).transpose()?;
        self.blocking(Weight::Heavy, move |inner, stop| {
            let budget = Budget { deadline: Instant::now() + query.time, stop: stop.clone() };
            let search = Search { query: &query, matcher, glob, budget, tally: Tally::default() };
            inner.grep(&search, stop)
        })
        .await
    }
}

/// One search on its way.
struct Search<'a> {
    query: &'a GrepQuery,
    matcher: RegexMatcher,
    glob: Option<PathPattern>,
    budget: Budget,
    tally: Tally,
}

/// One file's place in the answer.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// From the workspace root.
    path: &'a [u8],
    /// In the order of the answer.
    index: usize,
    /// Nothing of it can be in the answer any more.
    count_only: bool,
}

impl Inner {
    fn grep(&self, search: &Search<'_>, stop: &Stop) -> Result<GrepAnswer, FileError> {
        let query = search.query;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let handle = match self.root.open_beneath(&query.path, flags, Mode::empty()) {
            Err(error) if error.fault == Fault::Special => {
                return Err(FileError::NotRegular { path: query.path.clone(), kind: Kind::Special });
            }
            other => other?,
        };
        let stat = rustix::fs::fstat(&handle).map_err(|errno| FileError::system(&query.path, errno))?;
        let found = Found::new(query.max_matches, query.max_bytes);
        let complete = match Kind::of(&stat) {
            Kind::Directory => {
                let walk = Walk::new(&self.root, &query.path, handle, &search.budget, &search.tally)
                    .include_ignored(query.include_ignored)
                    .include_hidden(search.glob.as_ref().is_some_and(|glob| glob.is_hidden));
                let (files, all) = search.candidates(&walk)?;
                search.search_all(&walk, &files, &found) && all
            }
            Kind::Regular => {
                let path = query.path.without_dots();
                {
                    let place = Place { path: path.as_bytes(), index: 0, count_only: false };
                    search.search_one(&mut searcher(query), handle, place, &found)
                }
            }
            kind @ (Kind::Link | Kind::Special) => {
                return Err(FileError::NotRegular { path: query.path.clone(), kind });
            }
        };
        stop.check()?;
        let (lines, truncation) = found.finish(complete);
        Ok(GrepAnswer { lines, truncation, report: search.tally.report() })
    }
}

impl Search<'_> {
    /// The files to be searched, sorted, and whether these are all.
    fn candidates(&self, walk: &Walk<'_>) -> Result<(Vec<Vec<u8>>, bool), FileError> {
        let files = Mutex::new(Vec::new());
        let complete = walk.run(&|mut batch| {
            if let Some(glob) = &self.glob {
                batch.retain(|path| glob.matches_file(path));
            }
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            files.append(&mut batch);
            files.len() <= MAX_CANDIDATES
        })?;
        let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_unstable();
        Ok((files, complete))
    }

    /// Searches files in their order, several at a time; says whether all were.
    fn search_all(&self, walk: &Walk<'_>, files: &[Vec<u8>], found: &Found) -> bool {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut searcher = searcher(self.query);
            loop {
                // Asked before the index is taken: only then do all files that wait come before this one.
                let count_only = found.is_full();
                let index = next.fetch_add(1, Ordering::AcqRel);
                let Some(path) = files.get(index) else { return true };
                if self.budget.is_spent() {
                    return false;
                }
                let full = walk.full_path(path);
                let Some(file) = open_regular(walk.base(), path) else {
                    self.tally.unreadable.add(1);
                    found.skip(index);
                    continue;
                };
                let place = Place { path: &full, index, count_only };
                let complete = self.search_one(&mut searcher, file, place, found);
                if !complete {
                    return false;
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..SEARCH_THREADS).map(|_| scope.spawn(work)).collect();
            let mut complete = work();
            for other in others {
                complete &= other.join().unwrap_or(false);
            }
            complete
        })
    }

    /// Searches one open file; says whether it came to its end.
    fn search_one(&self, searcher: &mut Searcher, file: OwnedFd, place: Place<'_>, found: &Found) -> bool {
        let Place { path, index, count_only } = place;
        let mut sink = FileSink::new(path, self.query, count_only);
        let reader = Watched::new(file, &self.budget);
        let res = searcher.search_reader(&self.matcher, reader, &mut sink);
        if self.budget.is_spent() && res.is_err() {
            return false;
        }
        if sink.is_binary {
            self.tally.binary.add(1);
            found.skip(index);
        } else if res.is_err() {
            self.tally.unreadable.add(1);
            found.skip(index);
        } else {
            self.tally.searched.add(1);
            found.add(index, sink.into_lines());
        }
        true
    }
}

/// Opens a file that a walk found, unless it has become something else.
fn open_regular(base: &Root, path: &[u8]) -> Option<OwnedFd> {
    let path = WorkspacePath::from_bytes(path).ok()?;
    let file = base.open_without_links(&path, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let stat = rustix::fs::fstat(&file).ok()?;
    (Kind::of(&stat) == Kind::Regular).then_some(file)
}

fn matcher(query: &GrepQuery) -> Result<RegexMatcher, FileError> {
    if query.pattern.is_empty() || query.pattern.len() > PATTERN_BYTES {
        let reason = format!("a pattern has 1 to {PATTERN_BYTES} bytes");
        return Err(FileError::Invalid { reason });
    }
    RegexMatcherBuilder::new()
        .case_insensitive(query.case_insensitive)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .build(&query.pattern)
        .map_err(|error| FileError::Invalid { reason: format!("the pattern is not valid: {error}") })
}

fn searcher(query: &GrepQuery) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context_lines)
        .after_context(query.context_lines)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LINE_BYTES))
        .memory_map(MmapChoice::never())
        .build()
}
