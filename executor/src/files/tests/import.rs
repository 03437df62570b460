//! Archives into the tree and out of it.

mod hostile;
mod laws;
mod places;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::stage::Mount;
use super::*;
use crate::archive::sample::Sample;

const AMPLE: ImportBudget = ImportBudget { bytes: 1 << 30, entries: 100_000, time: Duration::from_mins(1) };

/// What is at a path: everything that an archive carries of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Directory,
    File { content: Vec<u8>, is_executable: bool, mtime: (i64, i64) },
    Link { target: Vec<u8>, mtime: (i64, i64) },
    Special,
}

/// Everything below a folder, by path.
fn picture(folder: &Path) -> BTreeMap<Vec<u8>, Found> {
    let mut picture = BTreeMap::new();
    for path in walk(folder) {
        let meta = fs::symlink_metadata(&path).expect("an entry");
        let mtime = (meta.mtime(), meta.mtime_nsec());
        let found = if meta.is_dir() {
            Found::Directory
        } else if meta.is_symlink() {
            Found::Link {
                target: fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec(),
                mtime,
            }
        } else if meta.is_file() {
            let is_executable = meta.permissions().mode() & 0o100 != 0;
            Found::File { content: fs::read(&path).expect("a file"), is_executable, mtime }
        } else {
            Found::Special
        };
        let path = path.strip_prefix(folder).expect("below").as_os_str().as_bytes().to_vec();
        picture.insert(path, found);
    }
    picture
}

impl Fixture {
    async fn unpack(
        &self,
        path: &str,
        archive: &[u8],
        budget: ImportBudget,
    ) -> Result<Unpacked, ImportError> {
        let path = self.files.root().parse(path).map_err(FileError::from)?;
        let mut import = self.files.import(path, budget).await?;
        for pieces in archive.chunks(100_000) {
            let pieces = pieces.chunks(30_000).map(Bytes::copy_from_slice).collect();
            import = import.push(pieces).await?;
        }
        import.finish().await
    }

    async fn import_at(&self, path: &str, archive: &[u8]) -> Result<Imported, ImportError> {
        self.files.bring_in(self.unpack(path, archive, AMPLE).await?).await
    }

    async fn import(&self, archive: &[u8]) -> Result<Imported, ImportError> {
        self.import_at("", archive).await
    }

    async fn pack(&self, path: &str) -> Outcome<(Vec<u8>, PackReport)> {
        let mut pack = self.files.pack(self.files.root().parse(path)?).await?;
        let (mut archive, mut end) = (Vec::new(), None);
        while let Some(frame) = pack.next_frame().await? {
            assert!(frame.bytes.len() <= mooring_proto::MAX_FRAME_BYTES);
            archive.extend_from_slice(&frame.bytes);
            end = frame.end;
        }
        let end = end.expect("an end");
        assert_eq!(end.total_bytes, archive.len() as u64);
        assert_eq!(end.sha256, <[u8; 32]>::from(Sha256::digest(&archive)));
        Ok((archive, end.report))
    }

    /// Waits until what an Import replaced is gone too.
    async fn becomes_clean(&self) {
        let deadline = std::time::Instant::now() + Duration::from_mins(1);
        let stage = self.outside.path().join("stage");
        while fs::read_dir(&stage).expect("the stage").count() > 0 {
            assert!(std::time::Instant::now() < deadline, "the stage is never emptied");
            tokio::task::yield_now().await;
        }
        self.check_clean();
    }

    fn picture(&self) -> BTreeMap<Vec<u8>, Found> {
        picture(&self.tree)
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, ImportError>) -> ErrorCode {
    outcome.expect_err("a refusal").code()
}

/// A name that no header holds and that is no UTF-8.
fn long_bytes() -> Vec<u8> {
    [&b"\xfe".repeat(120)[..], b"x"].concat()
}

/// A tree with everything in it that an archive can carry.
fn plant(ws: &Fixture) {
    ws.put("a/run.sh", "#!/bin/sh\n");
    fs::set_permissions(ws.tree.join("a/run.sh"), fs::Permissions::from_mode(0o755)).expect("chmod");
    ws.put("empty", "");
    ws.put("a/odd name\n\x1b\\x\"'", "odd");
    ws.put("a/ä/ö", "UTF-8");
    ws.put(&format!("long/{0}/{0}", "n".repeat(200)), "long");
    ws.put("large", vec![b'l'; 3 << 20]);
    ws.put("edge", vec![b'e'; (1 << 20) - 512]);
    let bytes = std::ffi::OsStr::from_bytes(b"not\xffUTF-8");
    fs::write(ws.tree.join(bytes), "bytes").expect("a file");
    let long = std::ffi::OsStr::from_bytes(&long_bytes()).to_owned();
    fs::write(ws.tree.join("a").join(long), "bytes").expect("a file");
    fs::create_dir_all(ws.tree.join("none/at/all")).expect("folders");
    ws.link("a/up", "../empty");
    ws.link("dangling", "nowhere");
    ws.link("a/far", &format!("../{}", "t/".repeat(100)));
    fs::hard_link(ws.tree.join("empty"), ws.tree.join("a/also-empty")).expect("a link");
}

#[tokio::test]
async fn what_was_packed_is_brought_back_as_it_was() {
    let (one, other) = (Fixture::new(), Fixture::new());
    plant(&one);
    let (archive, report) = one.pack("").await.expect("packed");
    assert_eq!((report.skipped_total, report.files), (0, 10));
    let imported = other.import(&archive).await.expect("imported");
    assert_eq!((imported.files, imported.bytes), (report.files, report.bytes));
    assert_eq!(other.picture(), one.picture());
    assert!(other.pack("").await.expect("packed").0.len() == archive.len());
    other.check_clean();
}

#[tokio::test]
async fn equal_trees_give_equal_archives() {
    let ws = Fixture::new();
    plant(&ws);
    let (first, _) = ws.pack("").await.expect("packed");
    assert!(ws.pack("").await.expect("packed").0 == first);
    let names: Vec<_> = tar::Archive::new(&first[..])
        .entries()
        .expect("entries")
        .map(|entry| entry.expect("an entry").path_bytes().into_owned())
        .filter(|name| name.len() < 9)
        .collect();
    let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
    assert_eq!(
        names,
        [
            "a/", "a/far", "a/run.sh", "a/up", "a/ä/", "a/ä/ö", "dangling", "edge", "empty", "large",
            "long/", "none/", "none/at/"
        ]
    );
}

#[tokio::test]
async fn the_systems_tar_reads_ours_and_its_formats_are_read() {
    let ws = Fixture::new();
    plant(&ws);
    let outside = ws.outside.path();
    let theirs = outside.join("theirs");
    fs::create_dir(&theirs).expect("a folder");
    let (archive, _) = ws.pack("").await.expect("packed");
    fs::write(outside.join("ours.tar"), archive).expect("an archive");
    let tar = |arguments: &[&str]| {
        let done = Command::new("tar").args(arguments).current_dir(outside).status();
        assert!(done.expect("tar").success(), "{arguments:?}");
    };
    tar(&["xpf", "ours.tar", "-C", "theirs"]);
    let full = ws.picture();
    assert_eq!(picture(&theirs), full);

    // Too long for the oldest.
    fs::remove_file(ws.tree.join("a/far")).expect("removed");
    fs::remove_file(ws.tree.join("a").join(std::ffi::OsStr::from_bytes(&long_bytes()))).expect("removed");
    fs::remove_dir_all(ws.tree.join("long")).expect("removed");
    for format in ["v7", "ustar", "oldgnu", "gnu", "posix"] {
        let other = Fixture::new();
        tar(&["cf", "theirs.tar", &format!("--format={format}"), "-C", "ws", "."]);
        let archive = fs::read(outside.join("theirs.tar")).expect("an archive");
        other.import(&archive).await.unwrap_or_else(|error| panic!("{format}: {error}"));
        let whole_seconds = format != "posix";
        assert_eq!(rounded(other.picture(), whole_seconds), rounded(ws.picture(), whole_seconds), "{format}");
        let partners = fs::metadata(other.tree.join("empty")).expect("a file").nlink();
        assert_eq!(partners, 2, "{format}");
        other.check_clean();
    }
}

fn rounded(mut picture: BTreeMap<Vec<u8>, Found>, to_seconds: bool) -> BTreeMap<Vec<u8>, Found> {
    for found in picture.values_mut().filter(|_| to_seconds) {
        match found {
            Found::File { mtime, .. } | Found::Link { mtime, .. } => mtime.1 = 0,
            Found::Directory | Found::Special => {}
        }
    }
    picture
}

#[tokio::test]
async fn what_leads_out_and_what_is_no_file_is_left_out_and_listed() {
    let ws = Fixture::new();
    ws.put("sub/f", "f");
    ws.link("sub/out", "../../ws-secret/loot");
    ws.link("sub/above", "../f");
    ws.link("sub/absolute", "/etc/passwd");
    assert!(Command::new("mkfifo").arg(ws.tree.join("sub/pipe")).status().expect("mkfifo").success());
    let (archive, report) = ws.pack("sub").await.expect("packed");
    let skipped: Vec<_> = report.skipped.iter().map(|(path, why)| (&path[..], *why)).collect();
    assert_eq!(
        skipped,
        [
            (&b"above"[..], Skipped::LinkLeaves),
            (b"absolute", Skipped::LinkLeaves),
            (b"out", Skipped::LinkLeaves),
            (b"pipe", Skipped::Special)
        ]
    );
    let other = Fixture::new();
    other.import(&archive).await.expect("all of it");
    assert_eq!(other.picture().len(), 1);
    assert_eq!(ws.pack("sub/f").await.expect_err("a file").code(), ErrorCode::InvalidArgument);
    assert_eq!(ws.pack("sub/out").await.expect_err("outside").code(), ErrorCode::PathEscapes);
    assert_eq!(ws.pack("../ws-secret").await.expect_err("outside").code(), ErrorCode::PathEscapes);
}

#[tokio::test]
async fn a_file_that_changes_its_size_never_breaks_the_archive() {
    let ws = Fixture::new();
    ws.put("a", vec![b'a'; 5 << 20]);
    ws.put("b", "b");
    let mut pack = ws.files.pack(ws.path("")).await.expect("begun");
    pack.next_frame().await.expect("a frame").expect("a frame");
    fs::OpenOptions::new().append(true).open(ws.tree.join("a")).expect("a").set_len(9 << 20).expect("grown");
    let mut n_bytes = 0;
    while let Some(frame) = pack.next_frame().await.expect("a frame") {
        n_bytes += frame.bytes.len();
    }
    assert!(n_bytes < 5 << 20, "as long as it was when its header was made: {n_bytes}");

    let mut pack = ws.files.pack(ws.path("")).await.expect("begun");
    pack.next_frame().await.expect("a frame").expect("a frame");
    fs::OpenOptions::new().write(true).open(ws.tree.join("a")).expect("a").set_len(1 << 19).expect("shrunk");
    let outcome = pack.next_frame().await.map(drop);
    assert_eq!(outcome, Err(FileError::Changed { path: ws.path("a") }));
}
