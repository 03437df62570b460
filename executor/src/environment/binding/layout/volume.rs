//! Where the environment of a pod lives: one volume, with the product's own folder and one folder for each workspace.
//!
//! ```text
//!   .mooring/            mode 0700, no command is ever granted it
//!     lock               held by the one executor that uses the volume
//!     identity           whose volume this is; on disk before anything else is used
//!     epoch              the highest bound, and by which process
//!     leases, reserve
//!   w/<workspace id>/    mode 0700
//!     tree, home, tmp, stage
//! ```
//!
//! Whatever else lies on the volume (`lost+found`, what was there before) is left alone.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::{BindError, Prepared, Record, Tenant, workspace};
use crate::environment::fence::Fence;
use crate::environment::identity::Identity;
use crate::environment::lease::Leases;
use crate::environment::site::Volume;
use crate::environment::state::{self, Records};

const OWN: &str = ".mooring";
const LOCK: &str = "lock";
const IDENTITY: &str = "identity";
const WORKSPACES: &str = "w";

/// The volume as a Bind wants it.
#[derive(Debug)]
pub(in crate::environment::binding) struct OnVolume {
    root: PathBuf,
    /// No Bind was ever acknowledged: what is absent may be made.
    may_be_new: bool,
}

impl OnVolume {
    /// Checks the id alone.
    pub(super) fn parse(volume: &Volume, identity: &Identity, may_be_new: bool) -> Result<Self, BindError> {
        if !identity.names_session() {
            return Err(BindError::Malformed(
                "the id of kind kubernetes is <namespace>/<session>/<session UID>",
            ));
        }
        Ok(Self { root: volume.root.clone(), may_be_new })
    }

    /// The lock file. On a volume that is empty and must not be, nothing is made.
    pub(super) fn hold(&self) -> Result<OwnedFd, BindError> {
        let own = self.own()?;
        if !self.may_be_new && !state::exists(&own, IDENTITY)? {
            return Err(BindError::EmptyWorkspace);
        }
        Ok(state::open_lock(&own, LOCK)?)
    }

    fn own(&self) -> Result<OwnedFd, BindError> {
        let root = state::open_directory(&self.root)?;
        if !self.may_be_new && !state::exists(&root, OWN)? {
            return Err(BindError::EmptyWorkspace);
        }
        let own = state::make_private_at(&root, OWN)?;
        rustix::fs::fsync(&root).map_err(io::Error::from)?;
        Ok(own)
    }

    /// Compares or writes the identity, raises the epoch, then opens or makes the main workspace. `hold` is locked.
    pub(super) fn prepare(self, hold: OwnedFd, tenant: &Tenant) -> Result<Prepared, BindError> {
        let own = self.own()?;
        let records = Records::of(own);
        let record = match Record::find(&records, IDENTITY, &tenant.identity)? {
            Some(record) => record,
            None if self.may_be_new => Record::make(&records, IDENTITY, &tenant.identity)?,
            None => return Err(BindError::EmptyWorkspace),
        };
        let records = records.with_reserve();
        Fence::raise(&records, tenant.epoch, &tenant.boot_id)?;
        let leases = Leases::open(records)?;

        let name = record.workspace.to_string();
        let place = self.root.join(WORKSPACES).join(&name);
        let [tree, stage] = self.open_workspace(&name)?;
        let folders = [place.join("home"), place.join("tmp")];
        let main = workspace(&record, (tree, place.join("tree")), folders, &stage, tenant.tasks.clone())?;
        Ok(Prepared { hold, leases, main, read_only: Vec::new() })
    }

    /// Tree and stage of the workspace `name`. A tree that was there once is never made anew.
    fn open_workspace(&self, name: &str) -> Result<[OwnedFd; 2], BindError> {
        let root = state::open_directory(&self.root)?;
        let all = state::make_private_at(&root, WORKSPACES)?;
        let place = state::make_private_at(&all, name)?;
        if !self.may_be_new && !state::exists(&place, "tree")? {
            return Err(BindError::EmptyWorkspace);
        }
        let tree = state::make_directory_at(&place, "tree")?;
        state::make_private_at(&place, "home")?;
        state::make_private_at(&place, "tmp")?;
        let stage = state::make_private_at(&place, "stage")?;
        for folder in [&place, &all, &root] {
            rustix::fs::fsync(folder).map_err(io::Error::from)?;
        }
        Ok([tree, stage])
    }
}
