//! Sessions, at the API server.

mod ready;

use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use mooring_operator_api::quantity::Quantity;
use mooring_operator_api::session::{Storage, WorkspaceSpec};
use mooring_operator_api::{ObjectName, Session, SessionSpec, UserName};
use serde_json::json;

use crate::args::Create;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::output::{self, Format};

pub(crate) use ready::await_ready;

/// What our writes are known by.
const FIELD_MANAGER: &str = "kubectl-mooring";

/// Makes a Session for whoever we are, and says so.
///
/// # Errors
/// What the API server refuses it with; with `wait`, what [`await_ready`] fails with.
pub(crate) async fn create(cluster: &Cluster, plan: Create) -> Result<(), Error> {
    let owner = cluster.user().await?;
    let wanted = Session::new(&plan.name, desired(&owner, &plan));
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let made = cluster.sessions().create(&params, &wanted).await;
    let mut made = made.map_err(|error| Error::cluster(format!("make session {}", plan.name), error))?;
    if plan.wait {
        made = await_ready(cluster, &plan.name, plan.wait_timeout).await?;
    }
    match plan.output {
        Format::Table => output::line(&format!("session.mooring.dev/{} created", plan.name)),
        Format::Json | Format::Yaml => output::value(plan.output, &made, Vec::new),
    }
}

fn desired(owner: &str, plan: &Create) -> SessionSpec {
    let mut spec = SessionSpec::of(UserName::from(owner));
    spec.executor_class = plan.class.as_deref().map(ObjectName::from);
    spec.profile = plan.profile;
    if let Some(mode) = plan.mode {
        spec.mode = mode;
    }
    spec.workspace = plan.storage_size.clone().map(|size| WorkspaceSpec {
        storage: Some(Storage { size: Some(Quantity(size)), class_name: None, retain: None }),
        ..WorkspaceSpec::default()
    });
    spec
}

/// Lists Sessions.
///
/// # Errors
/// What the API server refuses it with.
pub(crate) async fn list(cluster: &Cluster, all_namespaces: bool, format: Format) -> Result<(), Error> {
    let api = if all_namespaces { Api::all(cluster.client.clone()) } else { cluster.sessions() };
    let found = api.list(&ListParams::default()).await;
    let found = found.map_err(|error| Error::cluster("list sessions", error))?;
    output::value(format, &found, || table(&found.items, all_namespaces, Timestamp::now()))
}

fn table(sessions: &[Session], with_namespace: bool, now: Timestamp) -> Vec<Vec<String>> {
    let mut rows =
        vec![row(with_namespace, "NAMESPACE", ["NAME", "READY", "REASON", "MODE", "CLASS", "AGE"])];
    for session in sessions {
        let ready = ready::condition(session);
        let age = session.creation_timestamp().map_or_else(String::new, |made| age(made.0, now));
        let mode = serde_json::to_value(session.spec.mode).unwrap_or_default();
        let cells = [
            session.name_any().as_str(),
            ready.map_or("", |ready| &ready.status),
            ready.map_or("", |ready| &ready.reason),
            mode.as_str().unwrap_or_default(),
            session.spec.executor_class.as_ref().map_or("", ObjectName::as_str),
            &age,
        ]
        .map(str::to_owned);
        rows.push(row(with_namespace, &session.namespace().unwrap_or_default(), cells));
    }
    rows
}

fn row<T: Into<String>>(with_namespace: bool, namespace: &str, cells: [T; 6]) -> Vec<String> {
    let first = with_namespace.then(|| namespace.to_owned());
    first.into_iter().chain(cells.map(Into::into)).collect()
}

/// As kubectl has it: the largest unit, whole.
fn age(made: Timestamp, now: Timestamp) -> String {
    match now.duration_since(made).as_secs().max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Deletes a Session and says so.
///
/// # Errors
/// What the API server refuses it with.
pub(crate) async fn delete(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let deleted = cluster.sessions().delete(name, &DeleteParams::default()).await;
    deleted.map_err(|error| Error::cluster(format!("delete session {name}"), error))?;
    output::line(&format!("session.mooring.dev/{name} deleted"))
}

/// Puts a Session to sleep, or wakes it.
///
/// # Errors
/// What the API server refuses it with.
pub(crate) async fn suspend(cluster: &Cluster, name: &str, suspended: bool) -> Result<(), Error> {
    let patch = Patch::Merge(json!({"spec": {"suspended": suspended}}));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patched = cluster.sessions().patch(name, &params, &patch).await;
    patched.map(drop).map_err(|error| Error::cluster(format!("change session {name}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_what_kubectl_would() {
        let object = json!({
            "apiVersion": "mooring.dev/v1alpha1", "kind": "Session",
            "metadata": {"name": "a", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"owner": "ana", "mode": "askFirst", "executorClass": "small"},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "reason": "Bound", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        });
        let session: Session = serde_json::from_value(object).expect("a Session");
        let now: Timestamp = "2026-01-01T03:00:00Z".parse().expect("a time");
        let rows = table(&[session], true, now);
        assert_eq!(rows[1], ["n", "a", "True", "Bound", "askFirst", "small", "3h"]);
    }
}
