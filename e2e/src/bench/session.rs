//! Rows on a real cluster: a Session beside a plain pod, a command beside `kubectl exec`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use super::measure::{Samples, interleaved};
use super::table::{Goal, Row, Side};
use crate::digest;
use crate::execution::{Executor, Program};
use crate::fixture::binary;
use crate::platform::{Namespace, Product, Session, SessionStatus, Sighting, Watch};

/// Anything that is waited for, teardown included.
const DEADLINE: Duration = Duration::from_mins(2);
/// Unmeasured rounds first: images into the page cache, addresses into tables.
const WARM: usize = 2;
const ROUNDS: usize = 12;
/// The class's, so that both claims are equal.
const SIZE: &str = "1Gi";

/// Cold Sessions, one after the other, and as many plain pods with a claim like theirs in between.
pub(super) async fn cold_start(namespace: &Namespace) -> anyhow::Result<Row> {
    let (mut ours, mut reference) = (Samples::default(), Samples::default());
    for round in 0..WARM + ROUNDS {
        let session = session(namespace, &format!("session-{round}")).await?;
        let pod = plain_pod(namespace, &format!("plain-{round}")).await?;
        if round >= WARM {
            ours.push(session);
            reference.push(pod);
        }
    }
    let row = Row::new("cold Session, create sent to Ready seen", "ms", Side::millis(&ours));
    Ok(row.beside("a plain pod of the same image with the same claim, on the same node", &reference))
}

/// From the create to Ready; then it is deleted and gone.
async fn session(namespace: &Namespace, name: &str) -> anyhow::Result<Duration> {
    let api = namespace.ground.sessions(&namespace.name);
    let mut watch = Watch::of(api.clone(), name);
    is_absent(&mut watch).await?;
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "mooring.dev/v1alpha1", "kind": "Session",
        "metadata": {"name": name}, "spec": {},
    }))?;
    let start = Instant::now();
    api.create(&PostParams::default(), &object).await.context("create a Session")?;
    let ready = |seen: &[Sighting<DynamicObject>]| {
        let last = seen.last()?;
        SessionStatus::of(last.object.as_ref()?).is("Ready").then_some(last.at)
    };
    let tell = |session: &DynamicObject| SessionStatus::of(session).told();
    let seen = watch.until(DEADLINE, "the Session is Ready", ready, tell).await?;
    api.delete(name, &DeleteParams::default()).await?;
    is_absent(&mut watch).await?;
    Ok(seen - start)
}

/// The same for a pod and its claim.
async fn plain_pod(namespace: &Namespace, name: &str) -> anyhow::Result<Duration> {
    let pods: Api<Pod> = namespace.ground.api(&namespace.name);
    let claims: Api<PersistentVolumeClaim> = namespace.ground.api(&namespace.name);
    let (mut watch, mut claim) = (Watch::of(pods.clone(), name), Watch::of(claims.clone(), name));
    tokio::try_join!(is_absent(&mut watch), is_absent(&mut claim))?;
    let pod: Pod = serde_json::from_value(pod(&namespace.ground.image("environment")?, name))?;
    let wanted: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": SIZE}}},
    }))?;
    let start = Instant::now();
    claims.create(&PostParams::default(), &wanted).await.context("create a claim")?;
    pods.create(&PostParams::default(), &pod).await.context("create a pod")?;
    let ready = |seen: &[Sighting<Pod>]| {
        let last = seen.last()?;
        let conditions = last.object.as_ref()?.status.as_ref()?.conditions.as_ref()?;
        let is_ready = |condition: &&k8s_openapi::api::core::v1::PodCondition| condition.type_ == "Ready";
        let condition = conditions.iter().find(is_ready)?;
        (condition.status == "True").then_some(last.at)
    };
    let tell = |pod: &Pod| serde_json::to_string(&pod.status).unwrap_or_default();
    let seen = watch.until(DEADLINE, "the plain pod is Ready", ready, tell).await?;
    pods.delete(name, &DeleteParams::default()).await?;
    claims.delete(name, &DeleteParams::default()).await?;
    tokio::try_join!(is_absent(&mut watch), is_absent(&mut claim))?;
    Ok(seen - start)
}

/// Under the same Pod Security as an executor's.
fn pod(image: &str, name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "enableServiceLinks": false, "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "plain", "image": image, "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "2147483647"],
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "workspace", "mountPath": "/workspace"}],
            }],
            "volumes": [{"name": "workspace", "persistentVolumeClaim": {"claimName": name}}],
        },
    })
}

async fn is_absent<K>(watch: &mut Watch<K>) -> anyhow::Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let find = |seen: &[Sighting<K>]| seen.last().filter(|last| last.object.is_none()).map(drop);
    watch.until(DEADLINE, "nothing of this name is there", find, |_| "it is still there".to_owned()).await
}

/// `true` in a pod, both ways, and which build of the executor ran it.
pub(super) async fn start_true(namespace: &Namespace, product: &Product) -> anyhow::Result<(Row, String)> {
    let mut session = Session::apply(namespace, "commands", &json!({})).await?;
    let bound = session.ready().await?;
    let executor = session.connect(&bound, product).await?;
    let build = build(&executor).await?;
    let ours = async || {
        let finished = executor.run(&Program::argv(["true"])).await?;
        ensure!(finished.is_success(), "`true` ended as {:?}", finished.end.end);
        Ok(())
    };
    let pod = bound.executor.pod.as_str();
    let arguments = ["--namespace", &namespace.name, "exec", pod, "--container", "runner", "--", "true"];
    let reference = async || {
        let status = namespace.ground.kubectl.command(&arguments).status().await.context("kubectl")?;
        ensure!(status.success(), "kubectl exec ended as {status}");
        Ok(())
    };
    let (ours, reference) = interleaved(5, 100, ours, reference).await?;
    let row = Row::new("`true` in a pod through CommandService over mutual TLS", "ms", Side::millis(&ours))
        .beside("`kubectl exec POD -- true` as a whole process", &reference)
        .wants(Goal::RatioAtMost(1.0));
    Ok((row, build))
}

/// Which of this machine's builds the executor in the pod is, by its bytes.
async fn build(executor: &Executor) -> anyhow::Result<String> {
    let output = executor.run(&Program::shell("sha256sum /usr/bin/mooring-executor")).await?.text();
    let told = output.split_whitespace().next().context("the digest of the executor in the pod")?.to_owned();
    let here = binary("mooring-executor")?;
    let Some(target) = here.parent().and_then(|profile| profile.parent()) else { bail!("the target folder") };
    for profile in ["debug", "release"] {
        let bytes = std::fs::read(target.join(profile).join("mooring-executor")).unwrap_or_default();
        if digest::whole(&bytes) == told {
            return Ok(format!("the {profile} build"));
        }
    }
    Ok("a build that is not in the target folder".to_owned())
}
