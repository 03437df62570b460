//! Where an environment lives on disk, checked first and prepared then.

mod folders;
mod record;
mod volume;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mooring_proto::v1::{self, EnvironmentKind};
use tokio_util::task::TaskTracker;

use super::BindError;
use crate::environment::identity::{BootId, Epoch, Identity};
use crate::environment::lease::Leases;
use crate::environment::site::Site;
use crate::environment::state;
use crate::environment::workspace::Workspace;
use crate::files::{Files, Stage};
use crate::operation::Operations;
use crate::root::Root;
use folders::Folders;
use record::Record;
use volume::OnVolume;

/// How long a predecessor that was told to go may hold the environment.
const HOLD_PATIENCE: Duration = Duration::from_secs(5);
const HOLD_RETRY: Duration = Duration::from_millis(25);

/// A layout whose texts are within their bounds.
#[derive(Debug)]
pub(super) enum Layout {
    Folders(Folders),
    Volume(OnVolume),
}

/// For whom a layout is prepared.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) identity: Identity,
    pub(super) epoch: Epoch,
    pub(super) boot_id: BootId,
    pub(super) tasks: TaskTracker,
}

/// What is open and on disk when a layout was prepared.
pub(super) struct Prepared {
    /// Holds the environment for this process.
    pub(super) hold: OwnedFd,
    pub(super) leases: Leases,
    pub(super) main: Workspace,
    pub(super) read_only: Vec<PathBuf>,
}

impl Layout {
    /// Checks the texts alone.
    pub(super) fn parse(
        site: &Site,
        identity: &Identity,
        local: Option<v1::LocalLayout>,
        may_be_new: bool,
    ) -> Result<Self, BindError> {
        match (site, identity.kind(), local) {
            (Site::Folders, EnvironmentKind::Local, Some(local)) => {
                Ok(Self::Folders(Folders::parse(identity, local)?))
            }
            (Site::Folders, EnvironmentKind::Local, None) => {
                Err(BindError::Malformed("a local environment needs its layout"))
            }
            (Site::Volume(volume), EnvironmentKind::Kubernetes, None) => {
                Ok(Self::Volume(OnVolume::parse(volume, identity, may_be_new)?))
            }
            (Site::Volume(_), EnvironmentKind::Kubernetes, Some(_)) => {
                Err(BindError::Malformed("only a local environment has a layout"))
            }
            (Site::Folders, EnvironmentKind::Kubernetes | EnvironmentKind::Unspecified, _) => {
                Err(BindError::Unsupported("this executor serves local environments only"))
            }
            (Site::Volume(_), EnvironmentKind::Local | EnvironmentKind::Unspecified, _) => {
                Err(BindError::Unsupported("this executor serves environments of kind kubernetes only"))
            }
        }
    }

    /// Takes the environment for this process and makes what is missing of it.
    ///
    /// Waits up to 5 s for a predecessor to let go of it.
    pub(super) async fn prepare(self, tenant: Tenant) -> Result<Prepared, BindError> {
        let hold = match &self {
            Self::Folders(folders) => folders.hold()?,
            Self::Volume(volume) => volume.hold()?,
        };
        let deadline = tokio::time::Instant::now() + HOLD_PATIENCE;
        while !state::lock(&hold)? {
            if tokio::time::Instant::now() >= deadline {
                return Err(BindError::Held);
            }
            tokio::time::sleep(HOLD_RETRY).await;
        }
        let prepared = tokio::task::spawn_blocking(move || match self {
            Self::Folders(folders) => folders.prepare(hold, tenant),
            Self::Volume(volume) => volume.prepare(hold, &tenant),
        });
        prepared.await.map_err(std::io::Error::other)?
    }
}

/// A workspace over folders that are all there.
fn workspace(
    record: &Record,
    (tree, visible): (OwnedFd, PathBuf),
    [home, tmp]: [PathBuf; 2],
    stage: &OwnedFd,
    tasks: TaskTracker,
) -> std::io::Result<Workspace> {
    let root = Arc::new(Root::new(tree, visible));
    let stage = Stage::open(stage, &root)?;
    Ok(Workspace {
        id: record.workspace,
        files: Files::new(record.workspace.to_string(), Arc::clone(&root), stage, Arc::default()),
        root,
        home,
        tmp,
        created_unix_millis: record.created_unix_millis,
        operations: Operations::new(tasks),
    })
}
