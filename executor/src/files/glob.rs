//! Finding files by glob.

use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};

use super::read::{Truncation, TruncationReason};
use super::search::{Budget, SearchReport, Tally, Walk};
use super::stop::Stop;
use super::{FileError, Files, Inner, Weight};
use crate::path::WorkspacePath;

/// What to find.
#[derive(Clone, Debug)]
pub struct GlobQuery {
    matcher: PathPattern,
    path: WorkspacePath,
    include_ignored: bool,
    max_paths: usize,
    time: Duration,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobAnswer {
    /// Paths from the workspace root, sorted by bytes.
    pub paths: Vec<Vec<u8>>,
    /// Set when there are, or may be, more.
    pub truncation: Option<Truncation>,
    /// What was not looked at.
    pub report: SearchReport,
}

/// A glob over paths relative to where a search begins.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    glob: GlobMatcher,
    /// A part of it begins with a dot, so it means hidden names.
    pub(super) is_hidden: bool,
    /// It holds no slash.
    is_name: bool,
}

impl PathPattern {
    /// Parses `* ? [] {} **`; `*` and `?` never match a slash.
    pub(super) fn new(pattern: &str) -> Result<Self, FileError> {
        let invalid = |reason: String| FileError::Invalid { reason };
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        if pattern.is_empty() || pattern.len() > 4096 {
            return Err(invalid("a glob has 1 to 4096 bytes".to_owned()));
        }
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(invalid(
                "a glob is relative to the folder that is searched, and does not leave it".to_owned(),
            ));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| invalid(format!("the glob is not valid: {}", error.kind())))?
            .compile_matcher();
        let is_hidden = pattern.split('/').any(|part| part.starts_with('.'));
        Ok(Self { glob, is_hidden, is_name: !pattern.contains('/') })
    }

    /// Whether the whole path matches.
    fn matches(&self, path: &[u8]) -> bool {
        self.glob.is_match(Path::new(OsStr::from_bytes(path)))
    }

    /// Whether the path matches, or its last name when the pattern is one for names.
    pub(super) fn matches_file(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        self.matches(if self.is_name { name } else { path })
    }
}

impl GlobQuery {
    /// Files below `path` whose path from there matches `pattern`; at most `max_paths` of them, the first by bytes, found within
    /// `time`. Files that ignore files name, and hidden ones that the pattern does not name, count only with `include_ignored`.
    ///
    /// # Errors
    /// [`FileError::Invalid`] for a pattern that is no glob, begins with a slash or holds `..`.
    pub fn new(
        pattern: &str,
        path: WorkspacePath,
        include_ignored: bool,
        max_paths: usize,
        time: Duration,
    ) -> Result<Self, FileError> {
        Ok(Self { matcher: PathPattern::new(pattern)?, path, include_ignored, max_paths, time })
    }
}

impl Files {
    /// Finds regular files. Links are not followed, so cycles end and each file comes once; they are counted in the report.
    ///
    /// # Errors
    /// [`FileError::NotDirectory`], or [`FileError::Resolve`] when the path does not resolve beneath the root.
    pub async fn glob(&self, query: GlobQuery) -> Result<GlobAnswer, FileError> {
        self.blocking(Weight::Heavy, move |inner, stop| inner.glob(&query, stop)).await
    }
}

impl Inner {
    fn glob(&self, query: &GlobQuery, stop: &Stop) -> Result<GlobAnswer, FileError> {
        let directory = self.open_listable(&query.path)?;
        let budget = Budget { deadline: Instant::now() + query.time, stop: stop.clone() };
        let tally = Tally::default();
        let walk = Walk::new(&self.root, &query.path, directory, &budget, &tally)
            .include_ignored(query.include_ignored)
            .include_hidden(query.matcher.is_hidden);
        let found = Mutex::new((BinaryHeap::new(), 0_u64));
        let complete = walk.run(&|files| {
            tally.searched.add(files.len() as u64);
            let hits: Vec<_> = files.into_iter().filter(|path| query.matcher.matches(path)).collect();
            let (first, total) = &mut *found.lock().unwrap_or_else(PoisonError::into_inner);
            for path in hits {
                *total += 1;
                first.push(path);
                if first.len() > query.max_paths {
                    first.pop();
                }
            }
            true
        })?;
        let (first, total) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let paths: Vec<_> = first.into_sorted_vec().iter().map(|path| walk.full_path(path)).collect();
        let sent = paths.len() as u64;
        let reason = match complete {
            false => Some(TruncationReason::Time),
            true if sent < total => Some(TruncationReason::Count),
            true => None,
        };
        let truncation = reason.map(|reason| Truncation {
            reason,
            total: complete.then_some(total),
            sent,
            next_offset: 0,
        });
        Ok(GlobAnswer { paths, truncation, report: tally.report() })
    }
}
