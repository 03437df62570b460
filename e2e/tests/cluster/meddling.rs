//! What somebody does to objects that are the operator's is undone, or told and made good.

use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt;
use kube::api::ListParams;
use mooring_e2e::fixture::await_condition;
use mooring_e2e::platform::{Bound, Session};
use serde_json::json;

use super::stage::{Stage, on_stage};

/// A pod's grace is fifteen seconds; everything else is quick.
const DEADLINE: Duration = Duration::from_secs(45);
/// From the change to the operator's answer.
const TOLD_DEADLINE: Duration = Duration::from_secs(10);

async fn policies(stage: &Stage) -> Vec<NetworkPolicy> {
    let api = stage.ground.api::<NetworkPolicy>(&stage.namespace.name);
    api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_somebody_opened_is_closed_again_and_then_left_alone() {
    on_stage("opened", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        session.ready().await?;
        let name = policies(stage).await.first().map(ResourceExt::name_any).unwrap_or_default();
        let patch = json!({"spec": {"egress": [{}]}, "metadata": {"ownerReferences": null}}).to_string();
        let opened =
            stage.namespace.kubectl(&["patch", "networkpolicy", &name, "--type=merge", "-p", &patch]).await?;
        ensure!(opened.contains("patched"), "{opened}");
        let closed = async || {
            let policy = policies(stage).await.into_iter().find(|it| it.name_any() == name)?;
            let egress = policy.spec.as_ref()?.egress.clone().unwrap_or_default();
            egress.is_empty().then_some(policy)
        };
        let closed = await_condition(TOLD_DEADLINE, "the policy is closed again", closed).await?;
        // Others start meanwhile, and nobody writes it anew each time.
        Session::apply(&stage.namespace, "two", &json!({})).await?.ready().await?;
        let now = policies(stage).await;
        ensure!(now.len() == 1, "{now:?}");
        assert_eq!(now[0].resource_version(), closed.resource_version());
        Ok(())
    })
    .await;
}

async fn nothing_is_left(stage: &Stage) -> anyhow::Result<()> {
    let (ground, namespace, all) = (&stage.ground, &stage.namespace.name, ListParams::default());
    await_condition(DEADLINE, "pods, claims and Secrets are gone", async || {
        let pods = ground.api::<Pod>(namespace).list(&all).await.ok()?.items;
        let claims = ground.api::<PersistentVolumeClaim>(namespace).list(&all).await.ok()?.items;
        let secrets = ground.api::<Secret>(namespace).list(&all).await.ok()?.items;
        (pods.is_empty() && claims.is_empty() && secrets.is_empty()).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_without_what_it_owns_leaves_nothing_all_the_same() {
    on_stage("orphans", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        session.ready().await?;
        let arguments = ["delete", "session.mooring.dev", "one", "--cascade=orphan", "--wait=false"];
        stage.namespace.kubectl(&arguments).await?;
        session.gone(DEADLINE).await?;
        nothing_is_left(stage).await
    })
    .await;
}

/// Does something to the pod of a Session, and expects that it is ended and replaced for it.
async fn is_replaced_when(stage: &Stage, name: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let mut session = Session::apply(&stage.namespace, name, &json!({})).await?;
    let before: Bound = session.ready().await?;
    let words = [&["label", "pod", before.executor.pod.as_str(), "--overwrite"], arguments].concat();
    stage.namespace.kubectl(&words).await?;
    session.condition(TOLD_DEADLINE, "Ready", "False", "PodAltered").await?;
    let (after, _) = session.ready_from(2).await?;
    assert_eq!((after.epoch, &after.environment), (2, &before.environment));
    let pods = stage.ground.api::<Pod>(&stage.namespace.name);
    ensure!(pods.get_opt(&before.executor.pod).await?.is_none(), "both pods are there");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_its_policy_selects_no_more_is_ended_and_replaced() {
    on_stage("labels", async |stage| {
        tokio::try_join!(
            is_replaced_when(stage, "class", &["mooring.dev/class=other"]),
            is_replaced_when(stage, "program", &["app.kubernetes.io/name-"]),
        )?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_its_owner_still_belongs_to_the_session() {
    on_stage("owner", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let before = session.ready().await?;
        let pod = before.executor.pod.as_str();
        let patch = r#"[{"op":"remove","path":"/metadata/ownerReferences"}]"#;
        stage.namespace.kubectl(&["patch", "pod", pod, "--type=json", "-p", patch]).await?;
        // Reconciled after the change: the spec is another one.
        session.change(&json!({"participants": ["ana"]})).await?;
        assert_eq!(session.ready().await?, before);
        session.delete().await?;
        session.gone(DEADLINE).await?;
        nothing_is_left(stage).await
    })
    .await;
}
