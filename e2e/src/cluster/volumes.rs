//! The provisioner of the cluster's volumes, made as soon as a claim has its node: folders of the run, or file systems with the
//! size that was asked for, by the storage class's parameter `kind`.
//!
//! A volume is a `local` one, so the kubelet gives it to the pod's `fsGroup` as it does with a disk; a new one belongs to root
//! and nobody else may write to it, like a new file system.

mod place;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{
    LocalVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeSpec,
    VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};

use super::run::RunFolder;
use super::{NODE, client, say};
use place::{Place, PlaceError, bytes_of};

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
    #[error("the volume has no place")]
    Place(#[from] PlaceError),
    #[error("the claim has no {0}")]
    Incomplete(&'static str),
    #[error("storage class {class}: kind is `folder` or `disk`, not {kind}")]
    Kind { class: String, kind: String },
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
    volumes.make_place(spec, &Place::new(&volumes.folder, &volume.name_any())).await?;
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
    Place::new(&volumes.folder, &volume.name_any()).remove().await?;
    let api: Api<PersistentVolume> = Api::all(volumes.client.clone());
    match api.delete(&volume.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
        Err(cause) => Err(cause.into()),
        Ok(_) => Ok(Action::await_change()),
    }
}

impl Volumes {
    async fn make_place(
        &self,
        claim: &PersistentVolumeClaimSpec,
        place: &Place,
    ) -> Result<(), ProvisionError> {
        let class = claim.storage_class_name.as_deref().ok_or(ProvisionError::Incomplete("storage class"))?;
        let found = Api::<StorageClass>::all(self.client.clone()).get(class).await?;
        let kind = found.parameters.and_then(|mut parameters| parameters.remove("kind")).unwrap_or_default();
        match kind.as_str() {
            "folder" => place.make_folder()?,
            "disk" => {
                let requests = claim.resources.as_ref().and_then(|resources| resources.requests.as_ref());
                let size = requests.and_then(|requests| requests.get("storage"));
                place.make_disk(bytes_of(&size.ok_or(ProvisionError::Incomplete("size"))?.0)?).await?;
            }
            _ => return Err(ProvisionError::Kind { class: class.to_owned(), kind }),
        }
        Ok(())
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
                path: Place::new(folder, &name).folder().display().to_string(),
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
