//! Classes: each has one network policy, in place before any pod of it and as long as there is one.

mod block;
pub(crate) mod policy;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource as _, ResourceExt as _};
use mooring_operator_api::condition::{ClassReason, set};
use mooring_operator_api::{ExecutorClass, ExecutorClassStatus, Uid, label};
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::names;
use crate::reconcile::{ReconcileError, again};
use crate::write::{self, WriteError};

/// Keeps a class, and so its network policy, while a pod of it runs.
pub(crate) const FINALIZER: &str = "mooring.dev/network-policy";
/// Until pods that were refused are tried again: a namespace's limits are not watched.
const REJECTED: Duration = Duration::from_secs(10);
/// Until pods that were taken are.
const TRIED: Duration = Duration::from_mins(10);

/// Pods that a message names.
const PODS_NAMED: usize = 5;

/// Brings one class as far as it goes now.
///
/// # Errors
/// When the API server refuses or does not answer.
pub(crate) async fn reconcile(
    class: Arc<ExecutorClass>,
    ctx: Arc<Context>,
) -> Result<Action, ReconcileError> {
    if !ctx.caches.are_complete() {
        return Ok(Action::await_change());
    }
    let Some(class) = ctx.caches.classes.get(&ObjectRef::from_obj(&*class)) else {
        return Ok(Action::await_change());
    };
    let is_ours = class.finalizers().iter().any(|it| it == FINALIZER);
    if class.metadata.deletion_timestamp.is_some() {
        let pods = pods(&ctx, &class);
        if is_ours && !pods.is_empty() {
            keep_policy(&ctx, &class).await?;
            write_status(&ctx, &class, in_use(&pods)).await?;
        } else if is_ours {
            delete_policy(&ctx, &class).await?;
            write::finalizer(&ctx.client, &*class, FINALIZER, false).await.map_err(WriteError::from)?;
        }
        return Ok(Action::await_change());
    }
    let class = if is_ours { class } else { Arc::new(add_finalizer(&ctx, &class).await?) };
    keep_policy(&ctx, &class).await?;
    let rejection = trial::rejection(&ctx.client, &class).await?;
    let again = if rejection.is_some() { REJECTED } else { TRIED };
    write_status(&ctx, &class, accepted(rejection)).await?;
    ctx.pauses.clear(&uid(&class));
    Ok(Action::requeue(again))
}

/// When to try again after an error.
#[expect(clippy::needless_pass_by_value, reason = "the controller's signature")]
pub(crate) fn error_policy(class: Arc<ExecutorClass>, error: &ReconcileError, ctx: Arc<Context>) -> Action {
    again("ExecutorClass", &uid(&class), error, &ctx.pauses)
}

fn uid(class: &ExecutorClass) -> Uid {
    Uid::from(class.uid().unwrap_or_default())
}

/// The names of its pods.
fn pods(ctx: &Context, class: &ExecutorClass) -> Vec<String> {
    let (namespace, value) = (class.namespace(), names::label(&class.name_any()));
    let is_of = |pod: &Pod| pod.namespace() == namespace && pod.labels().get(label::CLASS) == Some(&value);
    let mut names: Vec<String> = ctx.caches.pods.filter(is_of).iter().map(|pod| pod.name_any()).collect();
    names.sort();
    names
}

async fn keep_policy(ctx: &Context, class: &ExecutorClass) -> Result<(), WriteError> {
    let desired = policy::desired_policy(class, &ctx.namespace);
    let observed = ctx.caches.policies.get(&ObjectRef::from_obj(&desired));
    if observed.is_some_and(|observed| policy::is_current(&observed, &desired)) {
        return Ok(());
    }
    Ok(write::network_policy(ctx, &desired).await?)
}

async fn delete_policy(ctx: &Context, class: &ExecutorClass) -> Result<(), WriteError> {
    let name = names::policy(&uid(class));
    let policies: Api<NetworkPolicy> =
        Api::namespaced(ctx.client.clone(), &class.namespace().unwrap_or_default());
    match policies.delete(&name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if !status.is_not_found() => Err(kube::Error::Api(status).into()),
        Err(kube::Error::Api(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn add_finalizer(ctx: &Context, class: &ExecutorClass) -> Result<ExecutorClass, WriteError> {
    let written = write::finalizer(&ctx.client, class, FINALIZER, true).await?;
    ctx.caches.classes.wrote(written.clone());
    Ok(written)
}

async fn write_status(ctx: &Context, class: &ExecutorClass, verdict: Verdict) -> Result<(), WriteError> {
    let before = class.status.clone().unwrap_or_default();
    let status = desired_status(class, before.clone(), verdict, Timestamp::now());
    if status == before {
        return Ok(());
    }
    let written = write::status(&ctx.client, class, &status).await?;
    tracing::info!(class = class.name_any(), digest = status.digest, "status written");
    ctx.caches.classes.wrote(written);
    Ok(())
}

/// What is to be said of a class.
type Verdict = (ClassReason, String);

fn accepted(rejection: Option<String>) -> Verdict {
    match rejection {
        None => (ClassReason::Accepted, "pods can be made from it".to_owned()),
        Some(message) => (ClassReason::PodsRejected, message),
    }
}

fn in_use(pods: &[String]) -> Verdict {
    let named = pods.iter().take(PODS_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let rest = if pods.len() > PODS_NAMED { ", …" } else { "" };
    (ClassReason::InUse, format!("being deleted; {} pods are left: {named}{rest}", pods.len()))
}

fn desired_status(
    class: &ExecutorClass,
    mut status: ExecutorClassStatus,
    (reason, message): Verdict,
    now: Timestamp,
) -> ExecutorClassStatus {
    status.digest = Some(digest(class));
    set(&mut status.conditions, reason.row().condition(message, class.meta().generation, Time(now)));
    status
}

/// SHA-256 over what its pods are made of, in one spelling: fields sorted, as the API server has them.
pub(crate) fn digest(class: &ExecutorClass) -> String {
    let canonical = serde_json::to_value(&class.spec).unwrap_or_default().to_string();
    names::hex(&Sha256::digest(canonical))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_operator_api::executor_class::{ExecutorClassSpec, Shell};

    #[test]
    fn the_digest_follows_what_the_class_says() {
        let class = |change: fn(&mut ExecutorClassSpec)| {
            let mut spec = ExecutorClassSpec::of("example.test/environment:1");
            change(&mut spec);
            digest(&ExecutorClass::new("default", spec))
        };
        assert_eq!(class(|_| {}).len(), 64);
        assert_eq!(class(|_| {}), class(|_| {}));
        assert_ne!(class(|_| {}), class(|spec| spec.shell = Shell::Bash));
    }

    #[test]
    fn a_status_is_written_once() {
        let class = ExecutorClass::new("default", ExecutorClassSpec::of("example.test/environment:1"));
        let at = |second| Timestamp::from_second(second).expect("a time");
        let once = desired_status(&class, ExecutorClassStatus::default(), accepted(None), at(1));
        assert_eq!(desired_status(&class, once.clone(), accepted(None), at(2)), once);
        let rejected = desired_status(&class, once, accepted(Some("restricted".to_owned())), at(3));
        let valid = &rejected.conditions[0];
        assert_eq!((valid.status.as_str(), valid.reason.as_str()), ("False", "PodsRejected"));
        assert_eq!(valid.message, "restricted");
        let many: Vec<String> = (0..9).map(|n| format!("p{n}")).collect();
        assert_eq!(in_use(&many).1, "being deleted; 9 pods are left: p0, p1, p2, p3, p4, …");
    }
}
