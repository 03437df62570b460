//! The calls on a real tree. Rows of attacks are named after what must not happen.

mod attacks;
mod changes;
mod import;
mod reading;
mod searching;
mod stage;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use mooring_proto::v1::ErrorCode;
use prost::bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::*;

const ACTOR: &str = "session:s";

/// A workspace `ws` beside `ws-secret`, its stage, and nothing else.
struct Fixture {
    outside: TempDir,
    tree: PathBuf,
    files: Files,
}

type Outcome<T> = Result<T, FileError>;

impl Fixture {
    fn new() -> Self {
        Self::within(tempfile::tempdir().expect("a folder"))
    }

    /// Tree and stage both in `outside`.
    fn within(outside: TempDir) -> Self {
        let stage = outside.path().join("stage");
        fs::create_dir(&stage).expect("a folder");
        Self::with_stage(outside, &stage)
    }

    fn with_stage(outside: TempDir, stage: &std::path::Path) -> Self {
        let tree = outside.path().canonicalize().expect("a folder").join("ws");
        fs::create_dir_all(&tree).expect("a folder");
        fs::create_dir_all(outside.path().join("ws-secret")).expect("a folder");
        fs::write(outside.path().join("ws-secret/loot"), "loot").expect("a file");
        let root = Arc::new(Root::open(&tree).expect("the root"));
        let stage = fs::File::open(stage).expect("the stage");
        let stage = Stage::open(&stage, &root).expect("the stage");
        let files = Files::new("w", root, stage, Arc::default());
        Self { outside, tree, files }
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.tree.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    fn link(&self, name: &str, target: &str) {
        symlink(target, self.tree.join(name)).expect("a link");
    }

    fn on_disk(&self, name: &str) -> Vec<u8> {
        fs::read(self.tree.join(name)).expect("a file")
    }

    fn path(&self, text: &str) -> WorkspacePath {
        self.files.root().parse(text).expect("a path")
    }

    async fn reading(&self, text: &str, range: Range) -> Outcome<Reading> {
        self.files.read(ACTOR, self.files.root().parse(text)?, range).await
    }

    async fn lines(&self, text: &str, offset: u64, limit: u64, max_bytes: usize) -> Outcome<Reading> {
        self.reading(text, Range::Lines(LineRange { offset, limit, max_bytes })).await
    }

    async fn read(&self, text: &str) -> Outcome<Vec<u8>> {
        let reading = self.reading(text, Range::Bytes(ByteRange { offset: 0, limit: None })).await?;
        collect(reading).await
    }

    async fn write(&self, text: &str, content: impl AsRef<[u8]>) -> Outcome<Written> {
        self.write_as(ACTOR, text, content.as_ref()).await
    }

    async fn write_as(&self, actor: &str, text: &str, content: &[u8]) -> Outcome<Written> {
        let path = self.files.root().parse(text)?;
        let mut upload = self.files.upload(path.clone());
        for piece in content.chunks(1024 * 1024) {
            upload.push(Bytes::copy_from_slice(piece)).await?;
        }
        let content = upload.finish(content.len() as u64, &Sha256::digest(content))?;
        self.files.write(actor, path, content).await
    }

    async fn edit(&self, text: &str, old: &str, new: &str) -> Outcome<Edited> {
        let edit = Edit::new(old.into(), new.into(), false)?;
        self.files.edit(ACTOR, self.files.root().parse(text)?, edit).await
    }

    async fn copy(&self, from: &str, to: &str) -> Outcome<u64> {
        let root = self.files.root();
        self.files.copy(root.parse(from)?, root.parse(to)?).await
    }

    async fn relocate(&self, from: &str, to: &str) -> Outcome<()> {
        let root = self.files.root();
        self.files.relocate(root.parse(from)?, root.parse(to)?).await
    }

    async fn remove(&self, text: &str) -> Outcome<Kind> {
        self.files.remove(self.files.root().parse(text)?).await
    }

    async fn list(&self, text: &str) -> Outcome<Vec<String>> {
        let listing = self.files.list(self.files.root().parse(text)?, Vec::new(), 1000).await?;
        Ok(listing.entries.iter().map(|entry| crate::path::escape(&entry.name)).collect())
    }

    /// No temporary anywhere, and the loot as it was.
    #[track_caller]
    fn check_clean(&self) {
        let stage = self.outside.path().join("stage");
        let left: Vec<_> = fs::read_dir(stage).expect("the stage").collect();
        assert!(left.is_empty(), "left in the stage: {left:?}");
        let beside = walk(&self.tree)
            .into_iter()
            .find(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".mooring-")));
        assert_eq!(beside, None, "left in the tree");
        assert_eq!(fs::read(self.outside.path().join("ws-secret/loot")).expect("loot"), b"loot");
        assert_eq!(fs::read_dir(self.outside.path().join("ws-secret")).expect("a folder").count(), 1);
    }
}

/// Every path below `folder`, links not followed.
fn walk(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

async fn collect(reading: Reading) -> Outcome<Vec<u8>> {
    match reading.content {
        Content::Whole { bytes, sha256 } => {
            assert_eq!(sha256, <[u8; 32]>::from(Sha256::digest(&bytes)));
            Ok(bytes.to_vec())
        }
        Content::Streamed(mut streamed) => {
            let mut content = Vec::new();
            let mut end = None;
            while let Some(frame) = streamed.next_frame().await? {
                assert!(frame.bytes.len() <= mooring_proto::MAX_FRAME_BYTES);
                content.extend_from_slice(&frame.bytes);
                end = frame.end;
            }
            assert_eq!(end, Some((content.len() as u64, Sha256::digest(&content).into())));
            Ok(content)
        }
    }
}

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> ErrorCode {
    outcome.expect_err("a refusal").code()
}
