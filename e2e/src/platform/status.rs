//! What a Session's status says, for a reader who has not our types.

use std::net::SocketAddr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::DynamicObject;
use mooring_proto::v1::{EnvironmentKind, EnvironmentRef};
use serde::Deserialize;

/// `status` of a Session.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// Written at the first Bind, never changed.
    pub environment: Option<Environment>,
    /// Rises with each executor.
    pub epoch: Option<u64>,
    /// The bound one.
    pub executor: Option<Executor>,
    /// The volume claim.
    pub claim: Option<VolumeClaim>,
    /// When its owner or its agent last did something, RFC 3339.
    pub last_activity: Option<String>,
    /// Conditions.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// The exact name of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Environment {
    /// `kubernetes` or `none`.
    pub kind: String,
    /// `<namespace>/<session>/<session UID>`.
    pub id: String,
    /// Drawn once for its volume.
    pub revision: String,
}

/// A bound executor.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executor {
    /// Pod name.
    pub pod: String,
    /// Pod UID.
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    /// Address and port.
    pub address: SocketAddr,
    /// Of its process.
    #[serde(rename = "bootID")]
    pub boot_id: String,
    /// Landlock ABI.
    pub landlock: u32,
}

/// The claim of a Session's volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct VolumeClaim {
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

impl SessionStatus {
    /// Of an object; empty where there is none yet or it is not understood.
    pub fn of(session: &DynamicObject) -> Self {
        serde_json::from_value(session.data["status"].clone()).unwrap_or_default()
    }

    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// Whether the condition of this type is `True`.
    pub fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// All conditions, for a message: `Ready=False PodPending (the pod is waiting)`.
    pub fn told(&self) -> String {
        let told = self.conditions.iter().map(|condition| {
            let Condition { type_, status, reason, message, .. } = condition;
            format!("{type_}={status} {reason} ({message})")
        });
        told.collect::<Vec<_>>().join("; ")
    }
}

impl From<&Environment> for EnvironmentRef {
    fn from(environment: &Environment) -> Self {
        let kind = match environment.kind.as_str() {
            "kubernetes" => EnvironmentKind::Kubernetes,
            "local" => EnvironmentKind::Local,
            // `none` has no executor, and so no word in the protocol.
            _ => EnvironmentKind::Unspecified,
        };
        Self { kind: kind.into(), id: environment.id.clone(), revision: environment.revision.clone() }
    }
}
