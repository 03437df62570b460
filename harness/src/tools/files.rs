//! The file tools: one request each, and the answer as text.

use std::fmt::Write as _;

use mooring_proto::{MAX_FRAME_BYTES, v1};
use sha2::{Digest as _, Sha256};
use tonic::Status;

use super::call::{Edit, Glob, Grep, ListDir, Read, Remove, Transfer, Write};
use super::fence::fenced;
use super::perform::Scene;
use super::text::{MAX_RESULT_BYTES, head, visible};

/// What our own words around the data may take of a result.
const WORDS: usize = 600;
const MAX_DATA: usize = MAX_RESULT_BYTES - WORDS;

pub(super) async fn read(read: &Read, scene: &Scene<'_>) -> Result<String, Status> {
    let lines =
        v1::LineRange { offset: read.offset.unwrap_or(0), limit: read.limit.unwrap_or(0), max_bytes: 0 };
    let request = v1::ReadRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        path: read.path.clone(),
        range: Some(v1::read_request::Range::Lines(lines)),
    };
    let mut frames = scene.executor.files().read(request).await?.into_inner();
    let mut header = None;
    let mut content = Vec::new();
    let mut digest = Sha256::new();
    let mut end = None;
    while let Some(frame) = frames.message().await? {
        header = frame.header.or(header);
        digest.update(&frame.content);
        content.extend_from_slice(&frame.content);
        end = frame.end.or(end);
    }
    let (Some(header), Some(end)) = (header, end) else {
        return Err(Status::unavailable("the file did not come whole"));
    };
    let is_whole = end.total_bytes == content.len() as u64
        && (end.sha256.is_empty() || end.sha256.as_ref() == &digest.finalize()[..]);
    if !is_whole {
        return Err(Status::unavailable("the file did not come whole"));
    }
    Ok(show_read(read, &header, &content))
}

fn show_read(read: &Read, header: &v1::ReadHeader, content: &[u8]) -> String {
    let path = one_line(&read.path);
    let size = header.size_bytes;
    if !header.media_type.is_empty() {
        return format!(
            "{path} is an image ({}, {size} bytes); its content is not shown.",
            one_line(&header.media_type)
        );
    }
    let first = read.offset.unwrap_or(1);
    let mut text = format!("{path}, {size} bytes, from line {first}");
    if header.binary {
        text.push_str(", binary (bytes that are not UTF-8 are shown as U+FFFD)");
    }
    match &header.truncation {
        Some(cut) if cut.next_offset > 0 => {
            let _ = write!(text, "; there is more: go on with offset {}", cut.next_offset);
        }
        Some(_) => text.push_str("; there is more"),
        None if content.is_empty() && size == 0 => return format!("{text}; the file is empty."),
        None if content.is_empty() => return format!("{text}; there is no such line."),
        None => {}
    }
    text.push_str(".\n");
    text + &fenced("Read", &head(&visible(content), MAX_DATA))
}

pub(super) async fn list(list: &ListDir, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::ListDirectoryRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        path: list.path.clone().unwrap_or_default(),
        page_size: 0,
        page_token: String::new(),
    };
    let answer = scene.executor.files().list_directory(request).await?.into_inner();
    let mut lines = String::new();
    for entry in &answer.entries {
        let name = one_line(&entry.name);
        let _ = match entry.kind() {
            v1::FileKind::Directory => writeln!(lines, "{name}/"),
            v1::FileKind::Symlink => writeln!(lines, "{name} -> {}", one_line(&entry.link_target)),
            v1::FileKind::Special => writeln!(lines, "{name} (pipe, socket or device)"),
            v1::FileKind::Regular | v1::FileKind::Unspecified => {
                writeln!(lines, "{name} {} bytes", entry.size_bytes)
            }
        };
    }
    if answer.entries.is_empty() {
        return Ok("The folder is empty.".to_owned());
    }
    let shown = answer.entries.len();
    let more = if answer.next_page_token.is_empty() {
        ""
    } else {
        "; only the first are shown, use Glob for the rest"
    };
    Ok(format!("{shown} of {} entries{more}.\n{}", answer.total, fenced("ListDir", &head(&lines, MAX_DATA))))
}

pub(super) async fn write(write: &Write, scene: &Scene<'_>) -> Result<String, Status> {
    let content = write.content.as_bytes();
    let end = v1::TransferEnd {
        total_bytes: content.len() as u64,
        sha256: Sha256::digest(content).to_vec().into(),
    };
    let header = v1::WriteHeader {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        path: write.path.clone(),
    };
    let mut frames: Vec<v1::WriteRequest> = content
        .chunks(MAX_FRAME_BYTES)
        .map(|chunk| v1::WriteRequest { content: chunk.to_vec().into(), ..Default::default() })
        .collect();
    if frames.is_empty() {
        frames.push(v1::WriteRequest::default());
    }
    if let Some(first) = frames.first_mut() {
        first.header = Some(header);
    }
    if let Some(last) = frames.last_mut() {
        last.end = Some(end);
    }
    let answer = scene.executor.files().write(tokio_stream::iter(frames)).await?.into_inner();
    let did = if answer.created { "Created" } else { "Replaced" };
    Ok(format!("{did} {}, {} bytes.", one_line(&write.path), answer.size_bytes))
}

pub(super) async fn edit(edit: &Edit, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::EditRequest {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        path: edit.path.clone(),
        old: edit.old.clone().into_bytes().into(),
        new: edit.new.clone().into_bytes().into(),
        replace_all: edit.replace_all,
    };
    let answer = scene.executor.files().edit(request).await?.into_inner();
    let mut text = format!(
        "Edited {}: {} replaced, {} bytes now.",
        one_line(&edit.path),
        answer.replacements,
        answer.size_bytes
    );
    if answer.link_count > 1 {
        let _ = write!(
            text,
            " The file had {} names (hard links); the others keep the old content.",
            answer.link_count
        );
    }
    Ok(text)
}

pub(super) async fn copy(copy: &Transfer, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::CopyRequest {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        source: copy.source.clone(),
        destination: copy.destination.clone(),
    };
    let answer = scene.executor.files().copy(request).await?.into_inner();
    Ok(format!(
        "Copied {} to {}, {} bytes.",
        one_line(&copy.source),
        one_line(&copy.destination),
        answer.size_bytes
    ))
}

pub(super) async fn rename(moved: &Transfer, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::MoveRequest {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        source: moved.source.clone(),
        destination: moved.destination.clone(),
    };
    scene.executor.files().r#move(request).await?;
    Ok(format!("Moved {} to {}.", one_line(&moved.source), one_line(&moved.destination)))
}

pub(super) async fn remove(remove: &Remove, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::RemoveRequest {
        context: Some(scene.executor.context(scene.lease, scene.operation)),
        path: remove.path.clone(),
    };
    scene.executor.files().remove(request).await?;
    Ok(format!("Removed {}.", one_line(&remove.path)))
}

pub(super) async fn grep(grep: &Grep, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::GrepRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        pattern: grep.pattern.clone(),
        path: grep.path.clone().unwrap_or_default(),
        glob: grep.glob.clone().unwrap_or_default(),
        case_insensitive: grep.case_insensitive,
        include_ignored: grep.include_ignored,
        max_matches: 0,
        context_lines: grep.context_lines.unwrap_or(0),
        max_bytes: 0,
    };
    let answer = scene.executor.files().grep(request).await?.into_inner();
    let mut lines = String::new();
    for found in &answer.matches {
        let separator = if found.is_context { '-' } else { ':' };
        let cut = if found.cut { " […]" } else { "" };
        let text = visible(found.text.as_bytes());
        let _ = writeln!(lines, "{}{separator}{}{separator} {text}{cut}", one_line(&found.path), found.line);
    }
    let matches = answer.matches.iter().filter(|found| !found.is_context).count();
    let mut text = format!("{matches} matching lines{}", left_out(answer.truncation.as_ref()));
    text.push_str(&not_searched(answer.report.as_ref()));
    text.push_str(".\n");
    if lines.is_empty() { Ok(text) } else { Ok(text + &fenced("Grep", &head(&lines, MAX_DATA))) }
}

pub(super) async fn glob(glob: &Glob, scene: &Scene<'_>) -> Result<String, Status> {
    let request = v1::GlobRequest {
        context: Some(scene.executor.context(scene.lease, None)),
        pattern: glob.pattern.clone(),
        path: glob.path.clone().unwrap_or_default(),
        include_ignored: glob.include_ignored,
        max_paths: 0,
    };
    let answer = scene.executor.files().glob(request).await?.into_inner();
    let lines: String = answer.paths.iter().map(|path| one_line(path) + "\n").collect();
    let mut text = format!("{} paths{}", answer.paths.len(), left_out(answer.truncation.as_ref()));
    text.push_str(&not_searched(answer.report.as_ref()));
    text.push_str(".\n");
    if lines.is_empty() { Ok(text) } else { Ok(text + &fenced("Glob", &head(&lines, MAX_DATA))) }
}

fn left_out(truncation: Option<&v1::Truncation>) -> String {
    let Some(cut) = truncation else { return String::new() };
    let why = match cut.reason() {
        v1::TruncationReason::Count | v1::TruncationReason::Unspecified => "the limit of results was reached",
        v1::TruncationReason::Bytes => "the limit of bytes was reached",
        v1::TruncationReason::Time => "the search ran out of time",
    };
    match cut.total {
        Some(total) => format!(" shown of {total}: {why}, narrow the search"),
        None => format!(" shown, there may be more: {why}, narrow the search"),
    }
}

/// What a search did not look at, so that nothing found is not taken for nothing there.
fn not_searched(report: Option<&v1::SearchReport>) -> String {
    let Some(report) = report else { return String::new() };
    let mut parts = Vec::new();
    for (count, what) in [
        (report.binary_files_skipped, "binary files"),
        (report.links_skipped, "links"),
        (report.special_files_skipped, "special files"),
        (report.unreadable_skipped, "unreadable places"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if parts.is_empty() { String::new() } else { format!("; not searched: {}", parts.join(", ")) }
}

/// A name on one line, whatever is in it.
pub(super) fn one_line(name: &str) -> String {
    visible(name.as_bytes()).replace('\n', "\\u{a}").replace('\r', "\\u{d}").replace('\t', "\\u{9}")
}
