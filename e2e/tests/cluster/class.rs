//! A class and its network policy outlast whoever deletes them, as long as a pod stands on them.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use mooring_e2e::platform::{Session, Sighting, Watch};
use serde_json::json;

use super::lifecycle::is_gone;
use super::stage::{Stage, on_stage};
use super::turn::said;

/// The garbage collector of a busy machine.
const COLLECTOR_DEADLINE: Duration = Duration::from_secs(30);
const GONE_DEADLINE: Duration = Duration::from_secs(45);

fn classes(stage: &Stage) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("mooring.dev", "v1alpha1", "ExecutorClass"));
    Api::namespaced_with(stage.ground.client.clone(), &stage.namespace.name, &kind)
}

/// Waits until the class is being deleted and the collector has ended all that the class owns.
async fn is_leaving(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let find = |seen: &[Sighting<DynamicObject>]| {
        let class = seen.last()?.object.as_ref()?;
        let is_collected = !class.finalizers().iter().any(|it| it == "foregroundDeletion");
        (class.metadata.deletion_timestamp.is_some() && is_collected).then_some(())
    };
    let told = |class: &DynamicObject| format!("{:?}", class.metadata);
    Watch::of(classes(stage), name)
        .until(COLLECTOR_DEADLINE, "the class is being deleted, without what it owns", find, told)
        .await
}

/// Waits until the class says that this pod holds it back.
async fn is_told(stage: &Stage, name: &str, pod: &str) -> anyhow::Result<()> {
    let find = |seen: &[Sighting<DynamicObject>]| {
        let class = seen.last()?.object.as_ref()?;
        let valid = class.data["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == "Valid")?;
        let message = valid["message"].as_str()?;
        (valid["reason"] == "InUse" && message.contains(pod)).then_some(())
    };
    let told = |class: &DynamicObject| class.data["status"].to_string();
    Watch::of(classes(stage), name).until(COLLECTOR_DEADLINE, "it says what holds it back", find, told).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_deleted_under_a_session_keeps_its_policy_until_the_session_is_gone() {
    on_stage("leaving", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let bound = session.ready().await?;
        let policies = stage.ground.api::<NetworkPolicy>(&stage.namespace.name);
        let before = policies.list(&ListParams::default()).await?.items;
        ensure!(before.len() == 1, "{before:?}");
        let policy = before[0].name_any();
        let mut watch = Watch::of(policies.clone(), &policy);
        let find = |seen: &[Sighting<NetworkPolicy>]| seen.last()?.object.as_ref().map(drop);
        watch.until(COLLECTOR_DEADLINE, "the policy is seen", find, |_| String::new()).await?;

        let class = "executorclass.mooring.dev/default";
        stage.namespace.kubectl(&["delete", class, "--cascade=foreground", "--wait=false"]).await?;
        is_leaving(stage, "default").await?;
        is_told(stage, "default", &bound.executor.pod).await?;
        let executor = session.connect(&bound, &stage.product).await?;
        assert_eq!(said(&executor, "echo alive").await?, "alive\n");
        assert_eq!(session.ready().await?, bound);
        let after = policies.list(&ListParams::default()).await?.items;
        assert_eq!(after.iter().map(|it| it.metadata.uid.clone()).collect::<Vec<_>>(), [before[0].uid()]);
        let mut seen = watch.sightings().into_iter().map(|sighting| sighting.object);
        ensure!(
            seen.all(|it| it.is_some_and(|it| it.metadata.deletion_timestamp.is_none())),
            "the policy was away for a while"
        );
        classes(stage).get("default").await.context("the class stays")?;

        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        is_gone(classes(stage), "default").await?;
        is_gone(policies, &policy).await
    })
    .await;
}
