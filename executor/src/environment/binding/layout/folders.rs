//! Where a local environment lives: the session's folder, and the product's own folder beside it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use mooring_proto::v1;

use super::{BindError, Prepared, Record, Tenant, workspace};
use crate::environment::identity::Identity;
use crate::environment::lease::Leases;
use crate::environment::state::{self, Records};

const MAX_PATH_BYTES: usize = 4096;
const MAX_READ_ONLY: usize = 256;
/// The record that says whose state folder this is.
const RECORD: &str = "environment";

/// The paths of a Bind.
#[derive(Debug)]
pub(in crate::environment::binding) struct Folders {
    tree: PathBuf,
    state: PathBuf,
    read_only: Vec<PathBuf>,
}

impl Folders {
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

    /// The state folder, made if it is missing: what the lock is on.
    pub(super) fn hold(&self) -> Result<OwnedFd, BindError> {
        Ok(state::make_private(&self.state)?)
    }

    /// Opens the tree and makes the rest of the state folder, which is `hold`.
    pub(super) fn prepare(self, hold: OwnedFd, tenant: Tenant) -> Result<Prepared, BindError> {
        if std::fs::canonicalize(&self.tree).map_err(|_| BindError::NoFolder("the tree"))? != self.tree {
            return Err(BindError::Malformed("the tree is not canonical"));
        }
        let tree = state::open_directory(&self.tree).map_err(|_| BindError::NoFolder("the tree"))?;
        let state_path = std::fs::canonicalize(&self.state)?;
        if state_path.starts_with(&self.tree) || self.tree.starts_with(&state_path) {
            return Err(BindError::Malformed("the tree and the state folder hold one another"));
        }
        let read_only = check_grants(&self.read_only, &state_path)?;

        let records = Records::of(hold.try_clone()?);
        let record = match Record::find(&records, RECORD, &tenant.identity)? {
            Some(record) => record,
            None => Record::make(&records, RECORD, &tenant.identity)?,
        };
        let [home, tmp, stage] = ["home", "tmp", "stage"].map(|name| state_path.join(name));
        state::make_private(&home)?;
        state::make_private(&tmp)?;
        let stage = state::make_private(&stage)?;
        rustix::fs::fsync(&hold).map_err(std::io::Error::from)?;

        let main = workspace(&record, (tree, self.tree), [home, tmp], &stage, tenant.tasks)?;
        Ok(Prepared { hold, leases: Leases::open(records)?, main, read_only })
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
