//! Folders of this machine into a workspace, as a tar stream that is never held whole.

use std::ffi::OsStr;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use mooring_proto::MAX_FRAME_BYTES;
use mooring_proto::v1::{ImportHeader, ImportRequest, ImportResponse, TransferEnd};
use sha2::{Digest as _, Sha256};
use tokio::process::Command;
use tokio::sync::mpsc;
use tonic::Status;

use super::Executor;

/// Frames that are ready and not sent yet.
const FRAMES_AHEAD: usize = 4;

/// Files below a folder, to be brought into a workspace.
pub struct Tree {
    root: PathBuf,
    paths: Vec<PathBuf>,
    /// Holds `root` when it is only for this.
    _folder: Option<tempfile::TempDir>,
}

/// What an Import brought over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imported {
    /// What the executor says.
    pub response: ImportResponse,
    /// Bytes of the tar stream.
    pub stream_bytes: u64,
}

impl Tree {
    /// This repository with its `.git`: what git knows of the files, not what a build left. From a linked worktree, whose
    /// `.git` is no folder, it is a clone of the commit it stands on.
    ///
    /// # Errors
    /// When git is missing or this is no checkout.
    pub async fn checkout() -> anyhow::Result<Self> {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository of this program")?;
        let (root, folder) = if own.join(".git").is_dir() {
            (own.to_owned(), None)
        } else {
            let folder =
                tempfile::Builder::new().prefix("mooring-checkout-").tempdir().context("a folder")?;
            let root = folder.path().join("tree");
            let (from, to) = (own.to_str().context("UTF-8")?, root.to_str().context("UTF-8")?);
            git(own, &["clone", "--quiet", "--no-hardlinks", from, to]).await?;
            (root, Some(folder))
        };
        let listed = git(&root, &["ls-files", "-z", "--cached"]).await?;
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut paths: Vec<PathBuf> = names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
        // What is deleted and not committed is not there.
        paths.retain(|path| root.join(path).symlink_metadata().is_ok());
        walk(&root, Path::new(".git"), &mut paths)?;
        Ok(Self { root, paths, _folder: folder })
    }

    /// The Go program `reach` of this repository, built for a system of any kind, as a folder with that one file.
    ///
    /// # Errors
    /// When Go is missing.
    pub async fn reach() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mooring-reach-").tempdir().context("a folder")?;
        let mut command = Command::new("go");
        command.args(["build", "-trimpath", "-o"]).arg(folder.path()).arg(".");
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("reach"));
        command.envs([("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOWORK", "off")]).stdin(Stdio::null());
        let output = command.kill_on_drop(true).output().await.context("start go")?;
        if !output.status.success() {
            bail!("go build: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(Self { root: folder.path().to_owned(), paths: vec!["reach".into()], _folder: Some(folder) })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How many regular files it has.
    pub fn files(&self) -> u64 {
        let is_regular =
            |path: &&PathBuf| self.root.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
        self.paths.iter().filter(is_regular).count() as u64
    }

    /// What git prints in it.
    ///
    /// # Errors
    /// When git fails.
    pub async fn git(&self, arguments: &[&str]) -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&git(&self.root, arguments).await?).into_owned())
    }
}

impl Executor {
    /// Streams a tree into `folder` of the workspace; empty: its root.
    ///
    /// # Errors
    /// When a file cannot be read, or what the executor refuses the stream with.
    pub async fn import(&self, tree: &Tree, folder: &str) -> anyhow::Result<Imported> {
        let (sender, mut frames) = mpsc::channel(FRAMES_AHEAD);
        let header = ImportHeader { context: Some(self.context()), path: folder.to_owned(), budget: None };
        let (root, paths) = (tree.root.clone(), tree.paths.clone());
        let packing = tokio::task::spawn_blocking(move || pack(&root, &paths, Frames::new(header, sender)));
        let stream = futures::stream::poll_fn(move |ctx| frames.poll_recv(ctx));
        let answer = self.workspaces().import(stream).await;
        let packed = packing.await?;
        // A refusal ends the stream early, which packing then trips over: the refusal is the cause.
        let response = answer.context("import")?.into_inner();
        Ok(Imported { response, stream_bytes: packed? })
    }

    /// Streams bytes as they are, whether they are a tar stream or not.
    ///
    /// # Errors
    /// What the executor refuses them with.
    pub async fn import_bytes(&self, folder: &str, content: &[u8]) -> Result<ImportResponse, Status> {
        let header = ImportHeader { context: Some(self.context()), path: folder.to_owned(), budget: None };
        let end = TransferEnd {
            total_bytes: content.len() as u64,
            sha256: Sha256::digest(content).to_vec().into(),
        };
        let frame = ImportRequest { header: Some(header), content: content.to_vec().into(), end: Some(end) };
        Ok(self.workspaces().import(futures::stream::iter([frame])).await?.into_inner())
    }
}

/// Packs `paths` below `root` and gives the bytes of the stream.
fn pack(root: &Path, paths: &[PathBuf], frames: Frames) -> anyhow::Result<u64> {
    let mut archive = tar::Builder::new(BufWriter::with_capacity(MAX_FRAME_BYTES / 2, frames));
    archive.follow_symlinks(false);
    for path in paths {
        let added = archive.append_path_with_name(root.join(path), path);
        added.with_context(|| format!("pack {}", path.display()))?;
    }
    let buffer = archive.into_inner().context("end the archive")?;
    let frames = buffer.into_inner().map_err(io::IntoInnerError::into_error).context("end the archive")?;
    frames.finish().context("end the stream")
}

/// Makes a frame of every write.
struct Frames {
    header: Option<ImportHeader>,
    sender: mpsc::Sender<ImportRequest>,
    digest: Sha256,
    bytes: u64,
}

impl Frames {
    fn new(header: ImportHeader, sender: mpsc::Sender<ImportRequest>) -> Self {
        Self { header: Some(header), sender, digest: Sha256::new(), bytes: 0 }
    }

    fn send(&mut self, content: &[u8], end: Option<TransferEnd>) -> io::Result<()> {
        let frame = ImportRequest { header: self.header.take(), content: content.to_vec().into(), end };
        self.sender.blocking_send(frame).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn finish(mut self) -> io::Result<u64> {
        let sha256 = std::mem::take(&mut self.digest).finalize().to_vec().into();
        let end = TransferEnd { total_bytes: self.bytes, sha256 };
        self.send(&[], Some(end))?;
        Ok(self.bytes)
    }
}

impl Write for Frames {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        let content = &content[..content.len().min(MAX_FRAME_BYTES)];
        self.digest.update(content);
        self.bytes += content.len() as u64;
        self.send(content, None)?;
        Ok(content.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds the folder `path` below `root`, itself and everything in it.
fn walk(root: &Path, path: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    found.push(path.to_owned());
    let folder = root.join(path);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
    let mut names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let path = path.join(name);
        if root.join(&path).symlink_metadata()?.is_dir() {
            walk(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

async fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("git");
    // The checkout may belong to another user than the tests run as.
    command.args(["-c", "safe.directory=*"]).args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await.context("start git")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn frames_together_are_the_archive_and_end_with_its_digest() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("a")).expect("folder");
        std::fs::write(folder.path().join("a/b"), vec![7; 3 * MAX_FRAME_BYTES]).expect("file");
        let (sender, mut receiver) = mpsc::channel(100);
        let paths = [PathBuf::from("a"), PathBuf::from("a/b")];
        let bytes = pack(folder.path(), &paths, Frames::new(ImportHeader::default(), sender)).expect("pack");
        let (mut content, mut headers, mut end) = (Vec::new(), 0, None);
        while let Ok(frame) = receiver.try_recv() {
            assert!(frame.content.len() <= MAX_FRAME_BYTES);
            headers += usize::from(frame.header.is_some());
            content.extend_from_slice(&frame.content);
            end = frame.end;
        }
        assert_eq!((headers, content.len() as u64), (1, bytes));
        assert_eq!(end.expect("end").sha256, Sha256::digest(&content)[..]);
        let mut archive = tar::Archive::new(content.as_slice());
        let mut entries = archive.entries().expect("archive");
        assert!(entries.next().expect("folder").expect("folder").header().entry_type().is_dir());
        let mut file = Vec::new();
        entries.next().expect("file").expect("file").read_to_end(&mut file).expect("read");
        assert_eq!(file.len(), 3 * MAX_FRAME_BYTES);
    }
}
