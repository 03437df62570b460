//! The provisioner of the cluster's volumes: folders of the run, made as soon as a claim has its node.
//!
//! A volume is a `local` one, so the kubelet gives it to the pod's `fsGroup` as it does with a disk; a new one belongs to root
//! and nobody else may write to it, like a new file system.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{
    LocalVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};

use super::run::RunFolder;
use super::{NODE, client, say};

/// As in the storage class.
const PROVISIONER: &str = "volumes.mooring.test";
/// Set on a claim by the volume controller once somebody outside has to provide (pkg/controller/volume/persistentvolume).
const WANTED_FROM: &str = "volume.kubernetes.io/storage-provisioner";
/// Set on a claim by the scheduler.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Set on a volume by who made it; the volume controller leaves deleting it to us then.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);

/// Why a volume was not made or deleted; it is tried again.
#[derive(Debug, thiserror::Error)]
enum ProvisionError {
    #[error("the API server refused")]
    Api(#[from] kube::Error),
    #[error("volume folder {path}")]
    Folder {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the claim has no {0}")]
    Incomplete(&'static str),
}

struct Volumes {
    client: Client,
    folder: PathBuf,
}

/// Makes and deletes volumes of the run in the folder `run` until the process is ended.
///
/// # Errors
/// When the run has no kubeconfig for it.
pub async fn provision(run: &Path) -> anyhow::Result<()> {
    let run = RunFolder::open(run)?;
    let client = client(&run.kubeconfig("volumes")).await.context("the provisioner's client")?;
    let volumes = Arc::new(Volumes { client: client.clone(), folder: run.join("volumes") });
    let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
    let made = Controller::new(claims, watcher::Config::default())
        .run(make, again, Arc::clone(&volumes))
        .for_each(async |outcome| tell(outcome.err()));
    let released: Api<PersistentVolume> = Api::all(client);
    let deleted = Controller::new(released, watcher::Config::default())
        .run(delete, again, volumes)
        .for_each(async |outcome| tell(outcome.err()));
    tokio::join!(made, deleted);
    Ok(())
}

async fn make(claim: Arc<PersistentVolumeClaim>, volumes: Arc<Volumes>) -> Result<Action, ProvisionError> {
    let annotation = |name: &str| claim.annotations().get(name).map(String::as_str);
    let spec = claim.spec.as_ref().ok_or(ProvisionError::Incomplete("spec"))?;
    let is_ours = annotation(WANTED_FROM) == Some(PROVISIONER) && annotation(SELECTED_NODE) == Some(NODE);
    if !is_ours || spec.volume_name.is_some() || claim.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let volume = desired_volume(&claim, &volumes.folder)?;
    let path = volumes.folder.join(volume.name_any());
    std::fs::create_dir_all(&path).map_err(|source| ProvisionError::Folder { path, source })?;
    let created = Api::all(volumes.client.clone()).create(&PostParams::default(), &volume).await;
    match created {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Action::await_change()),
        Err(cause) => Err(cause.into()),
        Ok::<PersistentVolume, _>(_) => Ok(Action::await_change()),
    }
}

async fn delete(volume: Arc<PersistentVolume>, volumes: Arc<Volumes>) -> Result<Action, ProvisionError> {
    let is_ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER);
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    if !is_ours || phase != Some("Released") || policy != Some("Delete") {
        return Ok(Action::await_change());
    }
    let path = volumes.folder.join(volume.name_any());
    match std::fs::remove_dir_all(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(ProvisionError::Folder { path, source });
        }
        Ok(()) | Err(_) => {}
    }
    let api: Api<PersistentVolume> = Api::all(volumes.client.clone());
    match api.delete(&volume.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
        Err(cause) => Err(cause.into()),
        Ok(_) => Ok(Action::await_change()),
    }
}

/// The volume for a claim, named after the claim's UID, so that making it twice makes it once.
fn desired_volume(claim: &PersistentVolumeClaim, folder: &Path) -> Result<PersistentVolume, ProvisionError> {
    let spec = claim.spec.as_ref().ok_or(ProvisionError::Incomplete("spec"))?;
    let uid = claim.uid().ok_or(ProvisionError::Incomplete("UID"))?;
    let name = format!("pvc-{uid}");
    let on_node = NodeSelectorRequirement {
        key: "kubernetes.io/hostname".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![NODE.to_owned()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![on_node]), ..NodeSelectorTerm::default() };
    Ok(PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(BTreeMap::from([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes.clone(),
            capacity: spec.resources.as_ref().and_then(|resources| resources.requests.clone()),
            claim_ref: Some(ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("PersistentVolumeClaim".to_owned()),
                name: claim.metadata.name.clone(),
                namespace: claim.metadata.namespace.clone(),
                uid: Some(uid),
                ..ObjectReference::default()
            }),
            local: Some(LocalVolumeSource {
                path: folder.join(&name).display().to_string(),
                ..LocalVolumeSource::default()
            }),
            node_affinity: Some(VolumeNodeAffinity {
                required: Some(NodeSelector { node_selector_terms: vec![term] }),
            }),
            persistent_volume_reclaim_policy: Some("Delete".to_owned()),
            storage_class_name: spec.storage_class_name.clone(),
            volume_mode: Some("Filesystem".to_owned()),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    })
}

fn again<K>(_object: Arc<K>, _cause: &ProvisionError, _volumes: Arc<Volumes>) -> Action {
    Action::requeue(RETRY)
}

/// Into the component's log.
fn tell(cause: Option<impl std::error::Error>) {
    if let Some(cause) = cause {
        let chain = std::iter::successors(Some(&cause as &dyn std::error::Error), |cause| cause.source());
        let words: Vec<String> = chain.map(ToString::to_string).collect();
        // Nothing can be done about a log that cannot be written.
        let _ = say(&words.join(": "));
    }
}
