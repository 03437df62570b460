//! From what travels to what the files are asked: bounds are checked and defaults decided here, once.

use std::time::Duration;

use mooring_proto::v1;
use mooring_proto::v1::read_request;

use crate::files::{ByteRange, FileError, GlobQuery, GrepQuery, LIST_PAGE_ENTRIES, LineRange, Range};
use crate::path::{WorkspacePath, unescape};

/// Time for one search.
const SEARCH_TIME: Duration = Duration::from_secs(20);

const DEFAULT_LINES: u64 = 2000;
const MAX_LINES: u64 = 100_000;
const DEFAULT_TEXT_BYTES: usize = 25_000;
const MAX_TEXT_BYTES: u64 = 1024 * 1024;
const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: u64 = 10_000;
const MAX_CONTEXT_LINES: u64 = 20;
const DEFAULT_PATHS: usize = 1000;
const MAX_PATHS: u64 = 100_000;
const MAX_GLOB_BYTES: usize = 4096;
const MAX_TOKEN_BYTES: usize = 4096;

/// A number within its bound; 0 means the default.
fn bounded(what: &str, value: u64, max: u64, default: usize) -> Result<usize, FileError> {
    if value > max {
        return Err(FileError::Invalid { reason: format!("{what} is 0..={max}") });
    }
    Ok(if value == 0 { default } else { usize::try_from(value).unwrap_or(default) })
}

pub(super) fn range(range: Option<read_request::Range>) -> Result<Range, FileError> {
    let lines = match range {
        Some(read_request::Range::Bytes(bytes)) => {
            let limit = (bytes.limit > 0).then_some(bytes.limit);
            return Ok(Range::Bytes(ByteRange { offset: bytes.offset, limit }));
        }
        Some(read_request::Range::Lines(lines)) => lines,
        None => v1::LineRange::default(),
    };
    if i64::try_from(lines.offset).is_err() {
        return Err(FileError::Invalid { reason: "lines.offset is 0..=2^63-1".to_owned() });
    }
    bounded("lines.limit", lines.limit, MAX_LINES, 0)?;
    Ok(Range::Lines(LineRange {
        offset: lines.offset.max(1),
        limit: if lines.limit == 0 { DEFAULT_LINES } else { lines.limit },
        max_bytes: bounded("lines.max_bytes", lines.max_bytes, MAX_TEXT_BYTES, DEFAULT_TEXT_BYTES)?,
    }))
}

/// The name after which a page begins, and its size.
pub(super) fn page(request: &v1::ListDirectoryRequest) -> Result<(Vec<u8>, usize), FileError> {
    let max = LIST_PAGE_ENTRIES;
    let page_size = bounded("page_size", request.page_size.into(), max as u64, max)?;
    let after = unescape(&request.page_token);
    if request.page_token.len() > MAX_TOKEN_BYTES || after.contains(&b'/') || after.contains(&0) {
        return Err(FileError::Invalid { reason: "page_token is not one that a page gave".to_owned() });
    }
    Ok((after, page_size))
}

pub(super) fn grep(request: v1::GrepRequest, path: WorkspacePath) -> Result<GrepQuery, FileError> {
    if request.glob.len() > MAX_GLOB_BYTES {
        return Err(FileError::Invalid { reason: format!("glob has at most {MAX_GLOB_BYTES} bytes") });
    }
    Ok(GrepQuery {
        path,
        glob: (!request.glob.is_empty()).then_some(request.glob),
        pattern: request.pattern,
        case_insensitive: request.case_insensitive,
        include_ignored: request.include_ignored,
        max_matches: bounded("max_matches", request.max_matches.into(), MAX_MATCHES, DEFAULT_MATCHES)?,
        context_lines: bounded("context_lines", request.context_lines.into(), MAX_CONTEXT_LINES, 0)?,
        max_bytes: bounded("max_bytes", request.max_bytes.into(), MAX_TEXT_BYTES, DEFAULT_TEXT_BYTES)?,
        time: SEARCH_TIME,
    })
}

pub(super) fn glob(request: &v1::GlobRequest, path: WorkspacePath) -> Result<GlobQuery, FileError> {
    let max_paths = bounded("max_paths", request.max_paths.into(), MAX_PATHS, DEFAULT_PATHS)?;
    GlobQuery::new(&request.pattern, path, request.include_ignored, max_paths, SEARCH_TIME)
}
