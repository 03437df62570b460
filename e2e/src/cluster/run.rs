//! One run's folder: where everything of it lies, and the names that only it uses on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Component;
use crate::digest;

/// The variable every process of a run carries, so that it is found even when nobody wrote its id down.
pub(super) const MARKER: &str = "MOORING_CLUSTER_RUN";
/// The file by which a run folder is known; it stays when the run is taken down, like the logs.
pub(super) const MARK: &str = "mooring-cluster.txt";
const MARK_TEXT: &str =
    "A run of mooring-cluster. All of this folder but the logs is deleted with the run.\n";
/// A path of a Unix socket has 108 bytes with its end (unix(7)); the longest below a run folder takes this many.
const LONGEST_SOCKET: usize = "/containerd/containerd.sock.ttrpc".len();
const LONGEST_SOCKET_PATH: usize = 107;

/// A run folder, by its canonical path. Everything outside the folder is named after a digest of that path, so a run can be
/// taken down whatever state it was left in.
#[derive(Clone, Debug)]
pub(super) struct RunFolder {
    path: PathBuf,
    id: String,
}

impl RunFolder {
    /// The folder at `path`, made when it is missing. One that holds anything else is refused: what a run leaves in its folder
    /// is deleted with it.
    pub(super) fn make(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("make {}", path.display()))?;
        let mark = path.join(MARK);
        if !mark.exists() {
            let mut entries = std::fs::read_dir(path).with_context(|| format!("read {}", path.display()))?;
            if entries.next().is_some() {
                bail!("{} holds other things: a run needs a folder of its own", path.display());
            }
            std::fs::write(&mark, MARK_TEXT).with_context(|| format!("write {}", mark.display()))?;
        }
        Self::open(path)
    }

    /// The folder at `path`, which was made for a run.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = path.canonicalize().with_context(|| format!("no run folder {}", path.display()))?;
        if !path.join(MARK).is_file() {
            bail!("{} is no run folder: it has no file {MARK}", path.display());
        }
        let length = path.as_os_str().len();
        if length + LONGEST_SOCKET > LONGEST_SOCKET_PATH {
            bail!(
                "{} is too long: a run folder's path has at most {} bytes, for the sockets in it",
                path.display(),
                LONGEST_SOCKET_PATH - LONGEST_SOCKET
            );
        }
        let id = digest::short(path.as_os_str().as_encoded_bytes())[..8].to_owned();
        Ok(Self { path, id })
    }

    /// Eight hexadecimal digits of this run.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A path below the folder.
    pub(super) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.join(path)
    }

    /// The network namespace of the node, as ip-netns(8) knows it.
    pub(super) fn network(&self) -> String {
        format!("mooring-{}", self.id)
    }

    /// The host's end of the link to the node, at most 15 bytes (IFNAMSIZ).
    pub(super) fn link(&self) -> String {
        format!("mrg{}", self.id)
    }

    /// The control group below which all pods run, without a leading slash.
    pub(super) fn cgroup(&self) -> String {
        format!("mooring-{}", self.id)
    }

    /// `NAME=VALUE` that every process of the run carries.
    pub(super) fn marker(&self) -> String {
        format!("{MARKER}={}", self.id)
    }

    /// What a component writes.
    pub(super) fn log(&self, component: Component) -> PathBuf {
        self.join(format!("log/{component}.log"))
    }

    /// The socket of this run's containerd.
    pub(super) fn containerd_socket(&self) -> PathBuf {
        self.join("containerd/containerd.sock")
    }

    /// The kubeconfig of a user of the cluster.
    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.join(format!("kubeconfig/{user}"))
    }

    /// Reads a record; none when it was never written.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let path = self.join(name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause).with_context(|| format!("read {}", path.display())),
        };
        serde_json::from_slice(&bytes).map(Some).with_context(|| format!("understand {}", path.display()))
    }

    /// Writes a record, whole or not at all.
    pub(super) fn write<T: Serialize>(&self, name: &str, record: &T) -> anyhow::Result<()> {
        let path = self.join(name);
        let folder = path.parent().context("a record lies in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).context("a record's file")?;
        serde_json::to_writer_pretty(&mut file, record)?;
        file.persist(&path).with_context(|| format!("write {}", path.display()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_two_runs_differ_and_fit_the_kernel() {
        let folder = tempfile::tempdir().expect("folder");
        let one = RunFolder::make(&folder.path().join("one")).expect("run");
        let two = RunFolder::make(&folder.path().join("two")).expect("run");
        assert_ne!(one.id(), two.id());
        assert!(one.link().len() <= 15, "{}", one.link());
        assert_eq!(one.id(), RunFolder::open(one.path()).expect("again").id());
    }

    #[test]
    fn a_folder_with_other_things_in_it_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("letter.txt"), "dear").expect("write");
        assert!(RunFolder::make(folder.path()).is_err());
        assert!(RunFolder::open(folder.path()).is_err());
    }

    #[test]
    fn a_folder_too_deep_for_sockets_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let deep = folder.path().join("x".repeat(100));
        assert!(RunFolder::make(&deep).is_err());
    }
}
