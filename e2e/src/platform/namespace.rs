//! A namespace of one test's own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace as Kind, ServiceAccount};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use super::{Ground, Watch};

/// The service account controller of a busy machine.
const ACCOUNT_DEADLINE: Duration = Duration::from_secs(30);
/// From the deletion to the last of it: pods have a grace of fifteen seconds each, all at once.
const GONE_DEADLINE: Duration = Duration::from_mins(2);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A namespace in which Pod Security `restricted` is enforced.
#[derive(Clone)]
pub struct Namespace {
    /// The cluster.
    pub ground: Ground,
    /// Its name.
    pub name: String,
}

impl Namespace {
    /// A new one, with an ExecutorClass `default` of the image `environment`.
    ///
    /// # Errors
    /// When the cluster does not make it.
    pub async fn make(ground: &Ground, word: &str) -> anyhow::Result<Self> {
        let namespace = Self::bare(ground, word).await?;
        let class = json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": "ExecutorClass",
            "metadata": {"name": "default"}, "spec": class(&ground.image("environment")?),
        });
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("mooring.dev", "v1alpha1", "ExecutorClass"));
        let classes: Api<DynamicObject> = Api::namespaced_with(ground.client.clone(), &namespace.name, &kind);
        classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
        Ok(namespace)
    }

    /// A new one without any class.
    ///
    /// # Errors
    /// As [`Namespace::make`].
    pub async fn bare(ground: &Ground, word: &str) -> anyhow::Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self::named(ground, &format!("e2e-{}-{number}-{word}", std::process::id())).await
    }

    /// A new one of exactly this name, without any class.
    ///
    /// # Errors
    /// As [`Namespace::make`].
    pub async fn named(ground: &Ground, name: &str) -> anyhow::Result<Self> {
        let namespace = Self { ground: ground.clone(), name: name.to_owned() };
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        });
        let namespaces: Api<Kind> = Api::all(ground.client.clone());
        namespaces.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let mut account = Watch::of(ground.api::<ServiceAccount>(name), "default");
        let find = |seen: &[super::Sighting<ServiceAccount>]| seen.last()?.object.as_ref().map(drop);
        let what = "the namespace's default service account";
        account.until(ACCOUNT_DEADLINE, what, find, |_| String::new()).await?;
        Ok(namespace)
    }

    /// Applies an object of `mooring.dev` with this `spec`, as the cluster's admin, with kubectl.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply(&self, kind: &str, name: &str, spec: &Value) -> anyhow::Result<()> {
        self.apply_raw(json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name}, "spec": spec,
        }))
        .await
    }

    /// Applies an object of any kind into this namespace.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply_raw(&self, mut object: Value) -> anyhow::Result<()> {
        object["metadata"]["namespace"] = json!(self.name);
        self.ground.kubectl.apply(&object).await
    }

    /// What kubectl prints to `arguments` in this namespace.
    ///
    /// # Errors
    /// When it fails.
    pub async fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut all = vec!["--namespace", self.name.as_str()];
        all.extend(arguments);
        self.ground.kubectl.run(&all).await
    }

    /// Has it deleted, and does not wait for the end.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn remove(self) -> anyhow::Result<()> {
        let namespaces: Api<Kind> = Api::all(self.ground.client.clone());
        Ok(namespaces.delete(&self.name, &DeleteParams::default()).await.map(drop)?)
    }

    /// Deletes it and waits until nothing of it is left.
    ///
    /// # Errors
    /// When something of it stays, with what the cluster says about it.
    pub async fn remove_whole(self) -> anyhow::Result<()> {
        let mut watch = Watch::of(Api::<Kind>::all(self.ground.client.clone()), &self.name);
        let tell = |namespace: &Kind| serde_json::to_string(&namespace.status).unwrap_or_default();
        self.remove().await?;
        let find =
            |seen: &[super::Sighting<Kind>]| seen.last().filter(|last| last.object.is_none()).map(drop);
        watch.until(GONE_DEADLINE, "the namespace is gone", find, tell).await
    }
}

/// An ExecutorClass of small pods: many of them share one machine.
pub(super) fn class(image: &str) -> Value {
    json!({
        "image": image,
        "shell": "bash",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "2Gi"}},
        "storage": {"size": "1Gi"},
    })
}
