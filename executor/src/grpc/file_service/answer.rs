//! From what the files said to what travels.

use mooring_proto::v1;
use mooring_proto::v1::file_version;

use crate::files::{
    Description, Entry, GlobAnswer, GrepAnswer, Kind, Listing, SearchReport, Truncation, TruncationReason,
    Version,
};
use crate::path::escape;

pub(super) fn version(version: Version) -> v1::FileVersion {
    let version = match version {
        Version::Content(digest) => file_version::Version::Sha256(digest.to_vec().into()),
        Version::Stat(stat) => file_version::Version::Stat(v1::StatVersion {
            device: stat.device,
            inode: stat.inode,
            size_bytes: stat.size,
            mtime_nanos: stat.mtime_nanos,
            ctime_nanos: stat.ctime_nanos,
        }),
    };
    v1::FileVersion { version: Some(version) }
}

pub(super) fn kind(kind: Kind) -> v1::FileKind {
    match kind {
        Kind::Regular => v1::FileKind::Regular,
        Kind::Directory => v1::FileKind::Directory,
        Kind::Link => v1::FileKind::Symlink,
        Kind::Special => v1::FileKind::Special,
    }
}

pub(super) fn truncation(truncation: &Truncation) -> v1::Truncation {
    let reason = match truncation.reason {
        TruncationReason::Count => v1::TruncationReason::Count,
        TruncationReason::Bytes => v1::TruncationReason::Bytes,
        TruncationReason::Time => v1::TruncationReason::Time,
    };
    v1::Truncation {
        reason: reason.into(),
        total: truncation.total,
        sent: truncation.sent,
        next_offset: truncation.next_offset,
    }
}

pub(super) fn listing(listing: &Listing) -> v1::ListDirectoryResponse {
    let last = listing.last_name.as_deref();
    v1::ListDirectoryResponse {
        entries: listing.entries.iter().map(entry).collect(),
        next_page_token: last.map(escape).unwrap_or_default(),
        total: listing.total,
    }
}

fn entry(entry: &Entry) -> v1::DirectoryEntry {
    v1::DirectoryEntry {
        name: escape(&entry.name),
        kind: kind(entry.kind).into(),
        size_bytes: entry.size,
        link_target: escape(&entry.link_target),
    }
}

pub(super) fn description(description: &Description) -> v1::StatResponse {
    v1::StatResponse {
        kind: kind(description.kind).into(),
        size_bytes: description.size,
        mode: description.mode,
        mtime_nanos: description.mtime_nanos,
        version: description.version.map(version),
        link_target: escape(&description.link_target),
    }
}

pub(super) fn grep(answer: GrepAnswer) -> v1::GrepResponse {
    let matches = answer.lines.into_iter().map(|line| v1::GrepMatch {
        path: escape(&line.path),
        line: line.line,
        text: line.text,
        cut: line.cut,
        is_context: line.is_context,
    });
    v1::GrepResponse {
        matches: matches.collect(),
        truncation: answer.truncation.as_ref().map(truncation),
        report: Some(report(answer.report)),
    }
}

pub(super) fn glob(answer: &GlobAnswer) -> v1::GlobResponse {
    v1::GlobResponse {
        paths: answer.paths.iter().map(|path| escape(path)).collect(),
        truncation: answer.truncation.as_ref().map(truncation),
        report: Some(report(answer.report)),
    }
}

fn report(report: SearchReport) -> v1::SearchReport {
    v1::SearchReport {
        files_searched: report.files_searched,
        binary_files_skipped: report.binary_files_skipped,
        links_skipped: report.links_skipped,
        special_files_skipped: report.special_files_skipped,
        unreadable_skipped: report.unreadable_skipped,
    }
}
