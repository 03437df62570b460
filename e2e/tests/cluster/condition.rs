//! What keeps a Session from its start is said by its condition, and mended without anybody touching the Session.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use mooring_e2e::digest;
use mooring_e2e::platform::{Namespace, Session, SessionStatus};
use serde_json::{Value, json};

use super::stage::{Stage, on_stage};

/// From the apply to the true reason, on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// Waits until Ready is False for this reason, and the message says something.
async fn is_told(session: &mut Session, reason: &str) -> anyhow::Result<SessionStatus> {
    let status = session.condition(DEADLINE, "Ready", "False", reason).await?;
    let condition = status.condition("Ready").context("the condition")?;
    ensure!(condition.message.len() > 10, "a message: {condition:?}");
    ensure!(condition.observed_generation == Some(1), "{condition:?}");
    Ok(status)
}

/// Of a registry that nobody runs on the node, so that a pull fails at once.
const NOWHERE: &str = "127.0.0.1:1/nothing:1";

fn class(stage: &Stage, change: &Value) -> anyhow::Result<Value> {
    let mut class = json!({"image": stage.ground.image("environment")?, "storage": {"size": "1Gi"}});
    for (field, value) in change.as_object().into_iter().flatten() {
        class[field] = value.clone();
    }
    Ok(class)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_class_is_told_and_the_session_starts_when_it_comes() {
    on_stage("class", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({"executorClass": "later"})).await?;
        let status = is_told(&mut session, "ClassNotFound").await?;
        ensure!(status.told().contains("later"), "{}", status.told());
        stage.namespace.apply("ExecutorClass", "later", &class(stage, &json!({}))?).await?;
        assert_eq!(session.ready().await?.epoch, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_image_storage_class_runtime_or_node_is_told() {
    on_stage("missing", async |stage| {
        let cases = [
            ("image", json!({"image": NOWHERE}), "ImageUnavailable"),
            ("storage", json!({"storage": {"size": "1Gi", "className": "nothing"}}), "StorageClassNotFound"),
            ("runtime", json!({"runtimeClassName": "nothing"}), "PodRejected"),
            ("node", json!({"nodeSelector": {"example.com/nothing": "there"}}), "Unschedulable"),
        ];
        let told = cases.map(async |(name, change, reason)| {
            stage.namespace.apply("ExecutorClass", name, &class(stage, &change)?).await?;
            let mut session = Session::apply(&stage.namespace, name, &json!({"executorClass": name})).await?;
            is_told(&mut session, reason).await.map(drop)
        });
        futures::future::try_join_all(told).await.map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_starts_once_the_class_that_held_it_up_is_corrected() {
    on_stage("mended", async |stage| {
        let cases = [
            ("image", json!({"image": NOWHERE}), "ImageUnavailable"),
            ("node", json!({"nodeSelector": {"example.com/nothing": "there"}}), "Unschedulable"),
        ];
        let mended = cases.map(async |(name, change, reason)| {
            stage.namespace.apply("ExecutorClass", name, &class(stage, &change)?).await?;
            let mut session = Session::apply(&stage.namespace, name, &json!({"executorClass": name})).await?;
            is_told(&mut session, reason).await?;
            stage.namespace.apply("ExecutorClass", name, &class(stage, &json!({}))?).await?;
            let bound = session.ready().await.with_context(|| format!("after {reason}"))?;
            let status = session.status();
            let ready = status.condition("Ready").context("the condition")?;
            ensure!(ready.observed_generation == Some(1), "somebody touched the Session: {ready:?}");
            session.connect(&bound, &stage.product).await.map(drop)
        });
        futures::future::try_join_all(mended).await.map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_being_pulled_is_told() {
    on_stage("pull", async |stage| {
        // A registry that takes connections and says nothing.
        let registry = TcpListener::bind((stage.ground.run()?.host_address(), 0))?;
        let image = format!("{}/nothing:1", registry.local_addr()?);
        stage.namespace.apply("ExecutorClass", "slow", &class(stage, &json!({"image": image}))?).await?;
        let mut session = Session::apply(&stage.namespace, "one", &json!({"executorClass": "slow"})).await?;
        is_told(&mut session, "ImagePulling").await.map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_says_whether_the_namespace_takes_its_pods() {
    on_stage("trial", async |stage| {
        let change = json!({"runtimeClassName": "nothing"});
        stage.namespace.apply("ExecutorClass", "runtime", &class(stage, &change)?).await?;
        for (name, reason) in [("runtime", "PodsRejected"), ("default", "Accepted")] {
            let path = format!("--for=jsonpath={{.status.conditions[?(@.type==\"Valid\")].reason}}={reason}");
            let class = format!("executorclass.mooring.dev/{name}");
            stage.namespace.kubectl(&["wait", &path, &class, "--timeout=30s"]).await?;
        }
        Ok(())
    })
    .await;
}

async fn with_object(stage: &Stage, word: &str, object: Value, reason: &str) -> anyhow::Result<()> {
    let namespace = Namespace::make(&stage.ground, word).await?;
    namespace.apply_raw(object).await?;
    let mut session = Session::apply(&namespace, "one", &json!({})).await?;
    let told = is_told(&mut session, reason).await.map(drop);
    namespace.remove().await?;
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_used_up_is_told() {
    on_stage("quota", async |stage| {
        let quota = |hard: Value| {
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "none"}, "spec": {"hard": hard},
            })
        };
        tokio::try_join!(
            with_object(stage, "pods", quota(json!({"pods": "0"})), "QuotaExceeded"),
            with_object(stage, "claims", quota(json!({"persistentvolumeclaims": "0"})), "QuotaExceeded"),
        )?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_rejects_the_pod_is_told() {
    on_stage("rejected", async |stage| {
        let limits = json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "tiny"},
            "spec": {"limits": [{"type": "Container", "max": {"memory": "8Mi"}}]},
        });
        with_object(stage, "limits", limits, "PodRejected").await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_takes_too_long_is_given_up_with_its_reason() {
    on_stage("deadline", async |stage| {
        let spec = json!({"executorClass": "never", "lifecycle": {"startDeadline": "10s"}});
        let mut session = Session::apply(&stage.namespace, "one", &spec).await?;
        is_told(&mut session, "ClassNotFound").await?;
        let status = is_told(&mut session, "StartDeadlineExceeded").await?;
        ensure!(
            status.told().contains("never") || status.told().contains("ClassNotFound"),
            "{}",
            status.told()
        );
        // It is not tried again, whatever comes.
        stage.namespace.apply("ExecutorClass", "never", &class(stage, &json!({}))?).await?;
        let mut other = Session::apply(&stage.namespace, "other", &json!({"executorClass": "never"})).await?;
        other.ready().await?;
        let now = session.status();
        ensure!(
            now.condition("Ready").is_some_and(|it| it.reason == "StartDeadlineExceeded"),
            "{}",
            now.told()
        );
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_object_of_our_name_is_told_and_left_alone() {
    on_stage("foreign", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({"suspended": true})).await?;
        let uid = session.uid().await?;
        let digest = digest::whole(uid.as_bytes());
        let name = format!("ses-{}-1", &digest[..20]);
        let secrets: Api<Secret> = stage.ground.api(&stage.namespace.name);
        let foreign = Secret {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            string_data: Some([("word".to_owned(), "mine".to_owned())].into()),
            ..Secret::default()
        };
        let made = secrets.create(&PostParams::default(), &foreign).await?;
        session.change(&json!({"suspended": false})).await?;
        let status = session.condition(DEADLINE, "Ready", "False", "NameConflict").await?;
        ensure!(status.told().contains(&name), "{}", status.told());
        let kept = secrets.get(&name).await?;
        assert_eq!(kept.metadata.resource_version, made.metadata.resource_version);
        // Once it is gone, the Session goes on.
        stage.namespace.kubectl(&["delete", "secret", &name]).await?;
        session.ready().await?;
        Ok(())
    })
    .await;
}
