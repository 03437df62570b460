//! Where a local environment lives: the session's folder, and the product's own folder beside it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mooring_proto::v1;
use tokio_util::task::TaskTracker;

use super::BindError;
use crate::environment::identity::{Identity, from_hex, to_hex};
use crate::environment::lease::Leases;
use crate::environment::state;
use crate::environment::workspace::{Workspace, WorkspaceId};
use crate::files::{Files, Stage};
use crate::operation::Operations;
use crate::root::Root;

const MAX_PATH_BYTES: usize = 4096;
const MAX_READ_ONLY: usize = 256;
/// The record that says whose state folder this is.
const RECORD: &str = "environment";
const HEADER: &str = "mooring environment 1";
/// A header, a revision, a workspace id, a time and an id of 4096 bytes in hexadecimal.
const MAX_RECORD_BYTES: usize = 16 * 1024;
/// How long a predecessor that was told to go may hold the state folder.
const HOLD_PATIENCE: Duration = Duration::from_secs(5);
const HOLD_RETRY: Duration = Duration::from_millis(25);

/// A layout whose texts are within their bounds.
#[derive(Debug)]
pub(super) struct Layout {
    tree: PathBuf,
    state: PathBuf,
    read_only: Vec<PathBuf>,
}

/// What is open and on disk when a layout was prepared.
pub(super) struct Prepared {
    pub(super) state: OwnedFd,
    pub(super) leases: Leases,
    pub(super) main: Workspace,
    pub(super) read_only: Vec<PathBuf>,
}

impl Layout {
    /// Checks the texts alone. The tree must be the environment's id, so that no id ever opens another folder.
    pub(super) fn parse(identity: &Identity, local: v1::LocalLayout) -> Result<Self, BindError> {
        if local.tree != identity.id() {
            return Err(BindError::Malformed("the tree of a local environment is its id"));
        }
        if local.read_only.len() > MAX_READ_ONLY {
            return Err(BindError::Malformed("read_only has at most 256 entries"));
        }
        Ok(Self {
            tree: parse_path(local.tree)?,
            state: parse_path(local.state)?,
            read_only: local.read_only.into_iter().map(parse_path).collect::<Result<_, _>>()?,
        })
    }

    /// Opens the tree, makes the state folder and takes it for this process.
    ///
    /// Waits up to 5 s for a predecessor to let go of it.
    pub(super) async fn prepare(
        self,
        identity: &Identity,
        tasks: TaskTracker,
    ) -> Result<Prepared, BindError> {
        let deadline = tokio::time::Instant::now() + HOLD_PATIENCE;
        let state = state::make_private(&self.state)?;
        while !state::lock(&state)? {
            if tokio::time::Instant::now() >= deadline {
                return Err(BindError::Held);
            }
            tokio::time::sleep(HOLD_RETRY).await;
        }
        let identity = identity.clone();
        tokio::task::spawn_blocking(move || self.prepare_held(state, &identity, tasks))
            .await
            .map_err(std::io::Error::other)?
    }

    fn prepare_held(
        self,
        state: OwnedFd,
        identity: &Identity,
        tasks: TaskTracker,
    ) -> Result<Prepared, BindError> {
        if std::fs::canonicalize(&self.tree).map_err(|_| BindError::NoFolder("the tree"))? != self.tree {
            return Err(BindError::Malformed("the tree is not canonical"));
        }
        let tree = state::open_directory(&self.tree).map_err(|_| BindError::NoFolder("the tree"))?;
        let state_path = std::fs::canonicalize(&self.state)?;
        if state_path.starts_with(&self.tree) || self.tree.starts_with(&state_path) {
            return Err(BindError::Malformed("the tree and the state folder hold one another"));
        }
        let read_only = check_grants(&self.read_only, &state_path)?;

        let record = Record::open(&state, identity)?;
        let [home, tmp, stage] = ["home", "tmp", "stage"].map(|name| state_path.join(name));
        state::make_private(&home)?;
        state::make_private(&tmp)?;
        let stage = state::make_private(&stage)?;
        let root = Arc::new(Root::new(tree, self.tree));
        let stage = Stage::open(&stage, &root)?;
        rustix::fs::fsync(&state).map_err(std::io::Error::from)?;

        let leases = Leases::open(state.try_clone()?)?;
        let main = Workspace {
            id: record.workspace,
            files: Files::new(record.workspace.to_string(), Arc::clone(&root), stage, Arc::default()),
            root,
            home,
            tmp,
            created_unix_millis: record.created_unix_millis,
            operations: Operations::new(tasks),
        };
        Ok(Prepared { state, leases, main, read_only })
    }
}

/// Absolute, 1..=4096 bytes, no NUL.
fn parse_path(text: String) -> Result<PathBuf, BindError> {
    if !(1..=MAX_PATH_BYTES).contains(&text.len()) || text.contains('\0') || !text.starts_with('/') {
        return Err(BindError::Malformed("a path of the layout is absolute and has 1..=4096 bytes"));
    }
    Ok(PathBuf::from(text))
}

/// The canonical forms of `grants`. None of them may show the product's own folder.
fn check_grants(grants: &[PathBuf], state: &Path) -> Result<Vec<PathBuf>, BindError> {
    let mut checked = Vec::with_capacity(grants.len());
    for grant in grants {
        let grant = std::fs::canonicalize(grant).map_err(|_| BindError::NoFolder("a read-only grant"))?;
        if !grant.is_dir() {
            return Err(BindError::NoFolder("a read-only grant"));
        }
        if state.starts_with(&grant) || grant.starts_with(state) {
            return Err(BindError::Malformed("a read-only grant shows the state folder"));
        }
        checked.push(grant);
    }
    Ok(checked)
}

/// Whose state folder this is, and what its main workspace is called.
struct Record {
    workspace: WorkspaceId,
    created_unix_millis: i64,
}

impl Record {
    /// Reads the record, or makes it for `identity` when the folder is new. A folder never changes hands.
    fn open(state: &OwnedFd, identity: &Identity) -> Result<Self, BindError> {
        if let Some(text) = state::read_record(state, RECORD, MAX_RECORD_BYTES)? {
            let (id, revision, record) = Self::parse(&text).ok_or(BindError::Damaged)?;
            let is_ours = id == identity.id() && revision == identity.revision();
            return if is_ours { Ok(record) } else { Err(BindError::WrongEnvironment) };
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Self {
            workspace: WorkspaceId::new(random),
            created_unix_millis: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        };
        state::write_record(state, RECORD, &record.print(identity))?;
        Ok(record)
    }

    fn print(&self, identity: &Identity) -> String {
        format!(
            "{HEADER}\nid {}\nrevision {}\nworkspace {}\ncreated {}\n",
            to_hex(identity.id().as_bytes()),
            identity.revision(),
            self.workspace,
            self.created_unix_millis
        )
    }

    fn parse(text: &str) -> Option<(String, String, Self)> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let id = String::from_utf8(from_hex(field("id")?)?).ok()?;
        let revision = field("revision")?.to_owned();
        let workspace = WorkspaceId::parse(field("workspace")?)?;
        let created_unix_millis = field("created")?.parse().ok()?;
        lines.next().is_none().then_some((id, revision, Self { workspace, created_unix_millis }))
    }
}
