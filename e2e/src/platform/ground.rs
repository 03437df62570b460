//! Which cluster the tests stand on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Resource};

use super::Kubectl;
use crate::cluster::{Cluster, RUN_VARIABLE, connect};

/// Names the kubeconfig of another cluster than a run of ours.
const KUBECONFIG: &str = "KUBECONFIG";
/// A JSON object from the names of images (`environment`, `harness`, `operator`, `busybox`) to references which the nodes of that other
/// cluster can use.
const IMAGES: &str = "MOORING_IMAGES";

/// A cluster, and its admin's hands.
#[derive(Clone)]
pub struct Ground {
    /// A client with all rights.
    pub client: Client,
    /// kubectl with all rights.
    pub kubectl: Kubectl,
    run: Option<Cluster>,
}

impl Ground {
    /// The run that `MOORING_CLUSTER` names, or else the cluster of `KUBECONFIG`.
    ///
    /// # Errors
    /// When there is neither, with what to do.
    pub async fn open() -> anyhow::Result<Self> {
        let client = connect().await?;
        let other = std::env::var_os(KUBECONFIG).filter(|_| std::env::var_os(RUN_VARIABLE).is_none());
        if let Some(kubeconfig) = other {
            return Ok(Self {
                client,
                kubectl: Kubectl::new("kubectl".into(), kubeconfig.into()),
                run: None,
            });
        }
        let run = Cluster::from_environment()?;
        let kubectl = Kubectl::new(run.programs().join("kubectl"), run.kubeconfig());
        Ok(Self { client, kubectl, run: Some(run) })
    }

    /// The run, for tests that stop parts of the cluster or look at it from its node.
    ///
    /// # Errors
    /// On any other cluster.
    pub fn run(&self) -> anyhow::Result<&Cluster> {
        self.run.as_ref().with_context(|| {
            format!(
                "needs the node and the parts of a cluster of this repository ({RUN_VARIABLE} is not set): \
                 ./taskw test, or ./taskw cluster:up"
            )
        })
    }

    /// helm.
    pub fn helm(&self) -> PathBuf {
        self.run.as_ref().map_or_else(|| "helm".into(), |run| run.programs().join("helm"))
    }

    /// The reference of an image: `environment`, `harness`, `operator`, `busybox`.
    ///
    /// # Errors
    /// When the cluster has none of that name.
    pub fn image(&self, name: &str) -> anyhow::Result<String> {
        if let Some(run) = &self.run {
            return run.image(name);
        }
        let path = std::env::var_os(IMAGES);
        let path = path.with_context(|| format!("{IMAGES} names no list of images for this cluster"))?;
        let text = std::fs::read(&path).with_context(|| format!("read {}", Path::new(&path).display()))?;
        let images: BTreeMap<String, String> = serde_json::from_slice(&text).context("the list of images")?;
        images
            .get(name)
            .cloned()
            .with_context(|| format!("no image `{name}` in {}", Path::new(&path).display()))
    }

    /// Objects of one of Kubernetes' own kinds.
    pub fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Sessions, as anybody sees them who has not our types.
    pub fn sessions(&self, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("mooring.dev", "v1alpha1", "Session"));
        Api::namespaced_with(self.client.clone(), namespace, &kind)
    }
}
