//! Writes that Sessions and classes have in common, each over the version that was planned from.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::FIELD_MANAGER;
use crate::context::Context;
use crate::refusal::Refusable;
use crate::session::Cause;

/// Why a write was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// Somebody wrote in between; nothing was changed.
    #[error("written by somebody else meanwhile")]
    Conflict,
    /// The API server is busy, and says for how long.
    #[error("the API server asks for a pause of {0:?}")]
    Throttled(Duration),
    /// It will not, for a reason that a person can mend.
    #[error("refused: {}", cause.message)]
    Refused {
        /// What was refused.
        step: Refusable,
        /// Why.
        cause: Cause,
    },
    /// It did not answer, or not so that anything follows from it. What was done is seen when it is read again.
    #[error("the API server did not carry it out")]
    Failed(#[source] Box<kube::Error>),
    /// The code is wrong: what is made from a class was planned without one.
    #[error("planned without a class")]
    NoClass,
    /// No certificate can be issued.
    #[error(transparent)]
    Certificate(#[from] crate::certificate::AuthorityError),
    /// The system gives no randomness.
    #[error("no randomness: {0}")]
    Randomness(getrandom::Error),
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = &error {
            if status.code == 409 {
                return Self::Conflict;
            }
            if status.code == 429 {
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                return Self::Throttled(Duration::from_secs(u64::from(seconds.clamp(1, 300))));
            }
        }
        Self::Failed(Box::new(error))
    }
}

/// Puts a finalizer of ours on an object or takes it off; those of others stay. Answers with the object as it then is.
pub(crate) async fn finalizer<K>(
    client: &Client,
    object: &K,
    finalizer: &str,
    wanted: bool,
) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|it| it != finalizer);
    if wanted {
        finalizers.push(finalizer.to_owned());
    }
    let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    of(client, object).patch(&object.name_any(), &params, &Patch::Merge(&patch)).await
}

/// Server-side apply of the fields of a status that are ours. Answers with the object as it then is.
pub(crate) async fn status<K, S>(client: &Client, object: &K, status: &S) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned,
    S: Serialize + Sync,
{
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "name": object.name_any(),
            "namespace": object.namespace(),
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
        },
        "status": status,
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    of(client, object).patch_status(&object.name_any(), &params, &Patch::Apply(&patch)).await
}

/// Makes a network policy, or makes the one that is there equal to it. Not by server-side apply, which leaves alone what
/// others have added to a list that is empty here.
pub(crate) async fn network_policy(ctx: &Context, policy: &NetworkPolicy) -> Result<(), kube::Error> {
    let policies = of(&ctx.client, policy);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    let name = policy.name_any();
    let written = match policies.create(&params, policy).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let mut found = policies.get(&name).await?;
            found.spec.clone_from(&policy.spec);
            found.metadata.owner_references = None;
            found.labels_mut().extend(policy.labels().clone());
            policies.replace(&name, &params, &found).await?
        }
        created => created?,
    };
    tracing::info!(policy = name, "network policy written");
    ctx.caches.policies.wrote(written);
    Ok(())
}

fn of<K>(client: &Client, object: &K) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}
