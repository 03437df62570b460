//! The ten calls on files.

mod answer;
mod transfer;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use mooring_proto::v1::{
    CopyRequest, DirectoryEntry, EditRequest, GlobRequest, GrepRequest, ListDirectoryRequest, MoveRequest,
    RemoveRequest, StatRequest,
};

use crate::args::FilesCommand;
use crate::error::Error;
use crate::gateway::{Gateway, effect, read};
use crate::output::{self, Format};
use answer::{Found, Listed, Matches, Paths};

/// The most results of a search: as many as the service gives at all.
const MOST_MATCHES: u32 = 10_000;
const MOST_PATHS: u32 = 100_000;
const MOST_GREP_BYTES: u32 = 1024 * 1024;

/// Makes one call on files.
///
/// # Errors
/// What it is refused with; [`Error::Output`].
pub(crate) async fn files(gateway: &Gateway, command: FilesCommand) -> Result<(), Error> {
    match command {
        FilesCommand::Read { path, offset, limit, .. } => {
            transfer::read_file(gateway, &workspace_path(&path)?, offset, limit).await
        }
        FilesCommand::Write { path, from, .. } => {
            transfer::write_file(gateway, &workspace_path(&path)?, from.as_deref()).await
        }
        FilesCommand::List { path, output, .. } => list(gateway, &workspace_path(&path)?, output).await,
        FilesCommand::Stat { path, output, .. } => {
            let request = StatRequest { context: Some(read()), path: workspace_path(&path)? };
            let found = gateway.call(async || gateway.files().stat(request.clone()).await).await?;
            let found = Found::from(found.into_inner());
            output::value(output, &found, || found.table())
        }
        FilesCommand::Edit { path, old, new, all, .. } => {
            let bytes = |text: &OsStr| text.as_bytes().to_vec().into();
            let request = EditRequest {
                context: Some(effect()),
                path: workspace_path(&path)?,
                old: bytes(&old),
                new: bytes(&new),
                replace_all: all,
            };
            gateway.call(async || gateway.files().edit(request.clone()).await).await.map(drop)
        }
        FilesCommand::Copy { source, destination, .. } => {
            let (source, destination) = (workspace_path(&source)?, workspace_path(&destination)?);
            let request = CopyRequest { context: Some(effect()), source, destination };
            gateway.call(async || gateway.files().copy(request.clone()).await).await.map(drop)
        }
        FilesCommand::Move { source, destination, .. } => {
            let (source, destination) = (workspace_path(&source)?, workspace_path(&destination)?);
            let request = MoveRequest { context: Some(effect()), source, destination };
            gateway.call(async || gateway.files().r#move(request.clone()).await).await.map(drop)
        }
        FilesCommand::Remove { path, .. } => {
            let request = RemoveRequest { context: Some(effect()), path: workspace_path(&path)? };
            gateway.call(async || gateway.files().remove(request.clone()).await).await.map(drop)
        }
        FilesCommand::Grep { pattern, path, glob, ignore_case, all, output, .. } => {
            let request = GrepRequest {
                context: Some(read()),
                pattern,
                path: workspace_path(&path)?,
                glob,
                case_insensitive: ignore_case,
                include_ignored: all,
                max_matches: MOST_MATCHES,
                context_lines: 0,
                max_bytes: MOST_GREP_BYTES,
            };
            let found = gateway.call(async || gateway.files().grep(request.clone()).await).await?;
            answer::tell_truncation(found.get_ref().truncation.as_ref());
            write_matches(&Matches::from(found.into_inner()), output)
        }
        FilesCommand::Glob { pattern, path, all, output, .. } => {
            let path = workspace_path(&path)?;
            let (context, include_ignored) = (Some(read()), all);
            let request = GlobRequest { context, pattern, path, include_ignored, max_paths: MOST_PATHS };
            let found = gateway.call(async || gateway.files().glob(request.clone()).await).await?;
            answer::tell_truncation(found.get_ref().truncation.as_ref());
            let found = Paths::from(found.into_inner());
            output::value(output, &found, || found.table())
        }
    }
}

/// As `grep` writes them, in a table: aligned, source text could not be read.
fn write_matches(found: &Matches, format: Format) -> Result<(), Error> {
    match format {
        Format::Table => found.lines().iter().try_for_each(|line| output::line(line)),
        Format::Json | Format::Yaml => output::value(format, found, Vec::new),
    }
}

async fn list(gateway: &Gateway, path: &str, format: Format) -> Result<(), Error> {
    let mut entries: Vec<DirectoryEntry> = Vec::new();
    let mut token = String::new();
    loop {
        let request = ListDirectoryRequest {
            context: Some(read()),
            path: path.to_owned(),
            page_size: 0,
            page_token: token.clone(),
        };
        let page = gateway.call(async || gateway.files().list_directory(request.clone()).await).await?;
        let page = page.into_inner();
        entries.extend(page.entries);
        // A page that leads to itself would never end.
        if page.next_page_token.is_empty() || page.next_page_token == token {
            break;
        }
        token = page.next_page_token;
    }
    let listed = Listed::from(entries);
    output::value(format, &listed, || listed.table())
}

/// A path as the protocol spells it: bytes that are not UTF-8 as `\xHH`, all others as they are.
///
/// # Errors
/// [`Error::Usage`] when it is longer than any path.
pub(crate) fn workspace_path(path: &OsStr) -> Result<String, Error> {
    let mut spelt = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        spelt.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(spelt, "\\x{byte:02X}");
        }
    }
    if spelt.len() > 4096 {
        return Err(Error::Usage("a path has at most 4096 bytes".to_owned()));
    }
    Ok(spelt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_spelt_as_the_protocol_has_it() {
        for (bytes, expected) in
            [(&b"a/b"[..], "a/b"), (b"a\xffb\xc3", "a\\xFFb\\xC3"), ("ä".as_bytes(), "ä")]
        {
            assert_eq!(workspace_path(OsStr::from_bytes(bytes)).expect("a path"), expected);
        }
        assert!(workspace_path(OsStr::from_bytes(&[b'a'; 4097])).is_err());
    }
}
