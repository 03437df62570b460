//! The executor pod: two containers of one image that no setting of a class weakens.
//!
//! `runner` holds every command, `executor` the files and the key. They share the volume and a socket, not their processes.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, PersistentVolumeClaimVolumeSource, Pod,
    PodSecurityContext, PodSpec, ResourceRequirements, SeccompProfile, SecretVolumeSource, SecurityContext,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use mooring_operator_api::executor_class::{self, Amounts, ExecutorClassSpec};
use mooring_operator_api::{ExecutorClass, Session, Uid, label};
use mooring_proto::certificate::EXECUTOR_PORT;

use crate::{labels, names};

/// The container with the files and the key.
pub(crate) const EXECUTOR: &str = "executor";
/// The container with the commands.
pub(crate) const RUNNER: &str = "runner";

/// The user and group of both containers, and of the volume's files.
const USER: i64 = 65_532;
/// The executor gives calls 5 s and ends its commands with TERM, 2 s, KILL.
const GRACE_SECONDS: i64 = 15;

const LINK: &str = "/run/mooring/link";
const TLS: &str = "/run/mooring/tls";
const WORKSPACE: &str = "/workspace";

/// The pod of one epoch. Deterministic: the same Session, class and epoch give the same pod.
pub(crate) fn desired_pod(session: &Session, class: &ExecutorClass, epoch: i64) -> Pod {
    let uid = Uid::from(session.uid().unwrap_or_default());
    let name = names::pod(&uid, epoch);
    Pod {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: session.meta().namespace.clone(),
            labels: Some(labels::of_pod(session, class)),
            annotations: Some(labels::pairs([
                (label::EPOCH, &epoch.to_string()),
                (label::CLASS_DIGEST, &crate::class::digest(class)),
            ])),
            owner_references: Some(labels::owned_by(session)),
            ..ObjectMeta::default()
        },
        spec: Some(desired_spec(&class.spec, &name, &names::claim(&uid))),
        status: None,
    }
}

/// A pod of a class that serves no Session: for the question whether the API server would take one.
pub(crate) fn trial_pod(class: &ExecutorClass) -> Pod {
    let name = "mooring-trial";
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: class.meta().namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: Some(desired_spec(&class.spec, name, name)),
        status: None,
    }
}

fn desired_spec(class: &ExecutorClassSpec, secret: &str, claim: &str) -> PodSpec {
    PodSpec {
        init_containers: Some(vec![runner(class)]),
        containers: vec![executor(class)],
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        share_process_namespace: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            fs_group: Some(USER),
            // A volume with a million files is not walked at every start.
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            seccomp_profile: Some(runtime_default()),
            ..PodSecurityContext::default()
        }),
        runtime_class_name: class.runtime_class_name.as_ref().map(ToString::to_string),
        node_selector: class
            .node_selector
            .as_ref()
            .map(|selector| selector.0.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect()),
        tolerations: (!class.tolerations.is_empty())
            .then(|| class.tolerations.iter().map(toleration).collect()),
        volumes: Some(volumes(secret, claim)),
        ..PodSpec::default()
    }
}

/// A native sidecar (KEP-753): started before the executor, restarted alone when it ends.
fn runner(class: &ExecutorClassSpec) -> Container {
    Container {
        name: RUNNER.to_owned(),
        command: Some(words(&["mooring-executor", "run", "--link", &format!("{LINK}/runner.sock")])),
        restart_policy: Some("Always".to_owned()),
        resources: Some(runner_resources(class)),
        volume_mounts: Some(vec![mount("workspace", WORKSPACE), mount("link", LINK)]),
        ..container(class)
    }
}

fn executor(class: &ExecutorClassSpec) -> Container {
    let port = EXECUTOR_PORT;
    let listen = format!("0.0.0.0:{port}");
    let socket = format!("{LINK}/runner.sock");
    Container {
        name: EXECUTOR.to_owned(),
        command: Some(words(&[
            "mooring-executor",
            "serve",
            "--listen",
            &listen,
            "--tls",
            TLS,
            "--runner-socket",
            &socket,
            "--workspace",
            WORKSPACE,
        ])),
        resources: Some(ResourceRequirements {
            requests: Some(amounts(&[("cpu", "50m"), ("memory", "32Mi")])),
            limits: Some(amounts(&[("memory", "512Mi")])),
            ..ResourceRequirements::default()
        }),
        volume_mounts: Some(vec![
            mount("workspace", WORKSPACE),
            mount("link", LINK),
            VolumeMount { read_only: Some(true), ..mount("tls", TLS) },
        ]),
        ..container(class)
    }
}

/// What both containers have.
fn container(class: &ExecutorClassSpec) -> Container {
    Container {
        image: Some(class.image.clone()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        // The last words of a process that failed stand in the pod's status, and from there in the condition.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { add: None, drop: Some(words(&["ALL"])) }),
            privileged: Some(false),
            read_only_root_filesystem: Some(true),
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(runtime_default()),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}

/// As the class says. Where it says nothing about memory there is a limit all the same, 2Gi or what is requested: a command
/// must not take the node.
fn runner_resources(class: &ExecutorClassSpec) -> ResourceRequirements {
    let said = class.resources.as_ref();
    let list = |amounts: Option<&Amounts>| {
        let mut list = std::collections::BTreeMap::new();
        if let Some(Amounts { cpu, memory, ephemeral_storage }) = amounts {
            for (name, amount) in [("cpu", cpu), ("memory", memory), ("ephemeral-storage", ephemeral_storage)]
            {
                list.extend(amount.clone().map(|amount| (name.to_owned(), amount)));
            }
        }
        list
    };
    let mut requests = list(said.and_then(|said| said.requests.as_ref()));
    let mut limits = list(said.and_then(|said| said.limits.as_ref()));
    if !limits.contains_key("memory") {
        let limit = requests.get("memory").cloned().unwrap_or_else(|| Quantity("2Gi".to_owned()));
        limits.insert("memory".to_owned(), limit);
        requests.entry("memory".to_owned()).or_insert_with(|| Quantity("256Mi".to_owned()));
    }
    // A request that is not said is the limit; without either the container would be the first to go.
    if !limits.contains_key("cpu") {
        requests.entry("cpu".to_owned()).or_insert_with(|| Quantity("100m".to_owned()));
    }
    ResourceRequirements {
        requests: (!requests.is_empty()).then_some(requests),
        limits: Some(limits),
        ..ResourceRequirements::default()
    }
}

fn volumes(secret: &str, claim: &str) -> Vec<Volume> {
    let named = |name: &str| Volume { name: name.to_owned(), ..Volume::default() };
    vec![
        Volume {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.to_owned(),
                read_only: None,
            }),
            ..named("workspace")
        },
        Volume {
            empty_dir: Some(EmptyDirVolumeSource {
                medium: Some("Memory".to_owned()),
                size_limit: Some(Quantity("1Mi".to_owned())),
            }),
            ..named("link")
        },
        Volume {
            secret: Some(SecretVolumeSource {
                secret_name: Some(secret.to_owned()),
                default_mode: Some(0o440),
                ..SecretVolumeSource::default()
            }),
            ..named("tls")
        },
    ]
}

fn toleration(said: &executor_class::Toleration) -> Toleration {
    use executor_class::{Taint, TolerationOperator};
    let operator = match said.operator {
        TolerationOperator::Equal => "Equal",
        TolerationOperator::Exists => "Exists",
    };
    let effect = said.effect.map(|effect| match effect {
        Taint::NoSchedule => "NoSchedule",
        Taint::PreferNoSchedule => "PreferNoSchedule",
        Taint::NoExecute => "NoExecute",
    });
    Toleration {
        key: said.key.clone(),
        operator: Some(operator.to_owned()),
        value: said.value.clone(),
        effect: effect.map(ToOwned::to_owned),
        toleration_seconds: said.toleration_seconds,
    }
}

fn runtime_default() -> SeccompProfile {
    SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}

fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

fn amounts(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, Quantity> {
    pairs.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests;
