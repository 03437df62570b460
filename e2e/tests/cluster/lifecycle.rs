//! A Session's life from its creation to its end, and what is left of it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::ListParams;
use mooring_e2e::platform::{Bound, Namespace, Session, Sighting, Watch};
use serde_json::json;

use super::stage::{Stage, on_stage};

/// A pod's grace is fifteen seconds; everything else is quick.
const GONE_DEADLINE: Duration = Duration::from_secs(45);

/// Waits until there is no object of this name.
pub(super) async fn is_gone<K>(api: Api<K>, name: &str) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let find = |seen: &[Sighting<K>]| seen.last().filter(|last| last.object.is_none()).map(drop);
    Watch::of(api, name)
        .until(GONE_DEADLINE, &format!("{name} is gone"), find, |_| "still there".into())
        .await
}

/// Writes a file that tells this volume from any other.
async fn mark(stage: &Stage, session: &Session, bound: &Bound, word: &str) -> anyhow::Result<()> {
    let executor = session.connect(bound, &stage.product).await?;
    executor.write("mark.txt", word.as_bytes()).await.context("write the mark")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_files_is_ready_with_nothing_made_for_it() {
    on_stage("no-fs", async |stage| {
        // Without a class, which would have its policy.
        let bare = Namespace::bare(&stage.ground, "bare").await?;
        let mut session = Session::apply(&bare, "talk", &json!({"profile": "no-fs"})).await?;
        let deadline = Duration::from_secs(10);
        let status = session.condition(deadline, "Ready", "True", "NoFiles").await?;
        let environment = status.environment.context("an environment")?;
        assert_eq!(environment.kind, "none");
        assert_eq!((&status.executor, &status.claim, status.epoch), (&None, &None, None));
        let (namespace, all) = (&bare.name, ListParams::default());
        assert_eq!(stage.ground.api::<Pod>(namespace).list(&all).await?.items.len(), 0);
        assert_eq!(stage.ground.api::<PersistentVolumeClaim>(namespace).list(&all).await?.items.len(), 0);
        assert_eq!(stage.ground.api::<Secret>(namespace).list(&all).await?.items.len(), 0);
        let policies = stage.ground.api::<NetworkPolicy>(namespace).list(&all).await?.items;
        ensure!(policies.is_empty(), "{policies:?}");
        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        bare.remove().await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_leaves_its_volume_when_it_is_retained() {
    on_stage("retain", async |stage| {
        let spec = json!({"workspace": {"storage": {"retain": "Retain"}}});
        let mut session = Session::apply(&stage.namespace, "one", &spec).await?;
        let bound = session.ready().await?;
        mark(stage, &session, &bound, "kept").await?;
        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        is_gone(stage.ground.api::<Pod>(&stage.namespace.name), &bound.executor.pod).await?;
        is_gone(stage.ground.api::<Secret>(&stage.namespace.name), &bound.executor.pod).await?;
        let claims = stage.ground.api::<PersistentVolumeClaim>(&stage.namespace.name);
        let claim = claims.get(&bound.claim.name).await?;
        assert_eq!(claim.metadata.uid.as_ref(), Some(&bound.claim.uid));
        assert_eq!(claim.metadata.deletion_timestamp, None);
        assert_eq!(claim.metadata.owner_references.unwrap_or_default(), []);
        assert_eq!(read_volume(stage, &bound.claim.name, "cat /volume/w/*/tree/mark.txt").await?, "kept");
        Ok(())
    })
    .await;
}

/// What a command prints in a pod with the volume of a claim, as its owner would look into it.
async fn read_volume(stage: &Stage, claim: &str, command: &str) -> anyhow::Result<String> {
    let image = stage.ground.image("busybox")?;
    let confined = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    stage
        .namespace
        .apply_raw(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "look"},
            "spec": {
                "restartPolicy": "Never", "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "look", "image": image, "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", command], "securityContext": confined,
                    "volumeMounts": [{"name": "volume", "mountPath": "/volume", "readOnly": true}],
                }],
                "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}],
            },
        }))
        .await?;
    let find = |seen: &[Sighting<Pod>]| {
        let phase = seen.last()?.object.as_ref()?.status.as_ref()?.phase.clone()?;
        matches!(phase.as_str(), "Succeeded" | "Failed").then_some(phase)
    };
    let mut pod = Watch::of(stage.ground.api::<Pod>(&stage.namespace.name), "look");
    let tell = |pod: &Pod| serde_json::to_string(&pod.status).unwrap_or_default();
    let phase = pod.until(GONE_DEADLINE, "the pod that looks ends", find, tell).await?;
    let said = stage.namespace.kubectl(&["logs", "look"]).await?;
    ensure!(phase == "Succeeded", "`{command}`: {said}");
    Ok(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_takes_its_volume_with_it_and_the_same_name_again_is_another() {
    on_stage("again", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let first = session.ready().await?;
        mark(stage, &session, &first, "first").await?;
        let claims = stage.ground.api::<PersistentVolumeClaim>(&stage.namespace.name);
        let volume = claims.get(&first.claim.name).await?.spec.and_then(|spec| spec.volume_name);
        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        is_gone(claims, &first.claim.name).await?;
        let volumes: Api<PersistentVolume> = Api::all(stage.ground.client.clone());
        is_gone(volumes, &volume.context("the claim's volume")?).await?;

        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let second = session.ready().await?;
        assert_ne!(second.environment.id, first.environment.id);
        assert_ne!(second.environment.revision, first.environment.revision);
        assert_ne!(second.claim, first.claim);
        assert_eq!(second.epoch, 1);
        let executor = session.connect(&second, &stage.product).await?;
        ensure!(executor.list("").await?.is_empty(), "something of the first one is there");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_can_be_deleted() {
    on_stage("pending", async |stage| {
        let waits = json!({"executorClass": "nothing"});
        let mut session = Session::apply(&stage.namespace, "class", &waits).await?;
        session.condition(GONE_DEADLINE, "Ready", "False", "ClassNotFound").await?;
        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        // Before anything of it is ready, and without a look.
        let mut session = Session::apply(&stage.namespace, "at-once", &json!({})).await?;
        session.delete().await?;
        session.gone(GONE_DEADLINE).await?;
        // Nothing of it stays behind.
        let (namespace, all) = (&stage.namespace.name, ListParams::default());
        let pods = stage.ground.api::<Pod>(namespace).list(&all).await?.items;
        for pod in pods {
            let name = pod.metadata.name.context("a pod has a name")?;
            is_gone(stage.ground.api::<Pod>(namespace), &name).await?;
        }
        let claims = stage.ground.api::<PersistentVolumeClaim>(namespace).list(&all).await?.items;
        for claim in claims {
            let name = claim.metadata.name.context("a claim has a name")?;
            is_gone(stage.ground.api::<PersistentVolumeClaim>(namespace), &name).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_session_sleeps_without_a_pod_and_wakes_over_the_same_bytes() {
    on_stage("sleep", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let before = session.ready().await?;
        mark(stage, &session, &before, "slept on").await?;
        session.change(&json!({"suspended": true})).await?;
        session.condition(GONE_DEADLINE, "Suspended", "True", "Requested").await?;
        let status = session.condition(GONE_DEADLINE, "Ready", "False", "Asleep").await?;
        assert_eq!(status.executor, None);
        assert_eq!(status.claim.as_ref(), Some(&before.claim));
        is_gone(stage.ground.api::<Pod>(&stage.namespace.name), &before.executor.pod).await?;
        session.change(&json!({"suspended": false})).await?;
        let (after, _) = session.ready_from(before.epoch + 1).await?;
        assert_eq!(after.epoch, before.epoch + 1);
        assert_eq!((&after.environment, &after.claim), (&before.environment, &before.claim));
        let executor = session.connect(&after, &stage.product).await?;
        assert_eq!(executor.read("mark.txt").await?, b"slept on");
        ensure!(!session.status().is("Suspended"), "{}", session.status().told());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_live_sessions_in_it_can_be_deleted() {
    on_stage("outer", async |stage| {
        let namespace = Namespace::make(&stage.ground, "whole").await?;
        let mut session = Session::apply(&namespace, "one", &json!({})).await?;
        session.ready().await?;
        namespace.remove_whole().await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_volume_retires_its_session_and_is_never_replaced_by_an_empty_one() {
    on_stage("lost", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let bound = session.ready().await?;
        let pods = stage.ground.api::<Pod>(&stage.namespace.name);
        let claims = stage.ground.api::<PersistentVolumeClaim>(&stage.namespace.name);
        let next = bound.executor.pod.strip_suffix("-1").context("the first epoch's pod")?;
        let next = Watch::of(pods.clone(), &format!("{next}-2"));
        let claim = Watch::of(claims.clone(), &bound.claim.name);
        for object in [&["pvc", bound.claim.name.as_str()], &["pod", bound.executor.pod.as_str()]] {
            stage.namespace.kubectl(&["delete", object[0], object[1], "--wait=false"]).await?;
        }
        session.condition(GONE_DEADLINE, "Retired", "True", "WorkspaceLost").await?;
        let status = session.condition(GONE_DEADLINE, "Ready", "False", "Ended").await?;
        assert_eq!(status.executor, None);
        is_gone(pods.clone(), &bound.executor.pod).await?;
        is_gone(claims, &bound.claim.name).await?;
        // Neither a change of its spec nor the work on another Session brings it back.
        for is_suspended in [true, false] {
            session.change(&json!({"suspended": is_suspended})).await?;
        }
        let mut other = Session::apply(&stage.namespace, "other", &json!({})).await?;
        let other = other.ready().await?;
        let status = session.status();
        ensure!(status.is("Retired") && !status.is("Ready"), "{}", status.told());
        let there = pods.list(&ListParams::default()).await?.items;
        let there = there.into_iter().filter_map(|pod| pod.metadata.name).collect::<Vec<_>>();
        assert_eq!(there, [other.executor.pod]);
        let pods_seen = next.sightings().into_iter().filter_map(|seen| seen.object).count();
        assert_eq!(pods_seen, 0, "a pod of the next epoch was there");
        let mut claims_seen = claim.sightings().into_iter().filter_map(|seen| seen.object?.metadata.uid);
        ensure!(claims_seen.all(|uid| uid == bound.claim.uid), "another claim was there");
        session.delete().await?;
        session.gone(GONE_DEADLINE).await
    })
    .await;
}
