//! The test cluster does what a real one does: otherwise what is shown on it says nothing.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use mooring_e2e::cluster::{BUSYBOX, Cluster, Component, NODE, State};
use mooring_e2e::fixture::{await_condition, binary, kill, with_marker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard};

/// Everything that a busy cluster does with a few objects; after an API server came back, its watchers take half a minute to.
const DEADLINE: Duration = Duration::from_mins(3);

/// Written by the tests that stop a component, read by all others.
static COMPONENTS: RwLock<()> = RwLock::const_new(());

struct Ground {
    cluster: Cluster,
    client: Client,
    namespace: String,
}

impl Ground {
    async fn new(labels: Value) -> Self {
        let cluster = Cluster::from_environment().expect("a cluster");
        let client = cluster.client().await.expect("a client");
        let namespace = json!({"metadata": {"generateName": "itself-", "labels": labels}});
        let namespace: Namespace = Api::all(client.clone())
            .create(&PostParams::default(), &serde_json::from_value(namespace).expect("a namespace"))
            .await
            .expect("a namespace");
        let ground = Self { cluster, client, namespace: namespace.name_any() };
        // Pods are refused until the controllers have made it.
        let accounts: Api<ServiceAccount> = ground.api();
        let made = async || accounts.get("default").await.ok();
        await_condition(DEADLINE, "the namespace has its service account", made).await.expect("in time");
        ground
    }

    /// With every component at work until the guard is dropped.
    async fn quiet() -> (Self, RwLockReadGuard<'static, ()>) {
        let guard = COMPONENTS.read().await;
        (Self::new(json!({})).await, guard)
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        <K as kube::Resource>::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
        <K as kube::Resource>::DynamicType: Default,
    {
        let object = serde_json::from_value(object).expect("an object of this kind");
        self.api().create(&PostParams::default(), &object).await.expect("created")
    }

    /// A pod of busybox that runs `script`, and `more` of its spec.
    async fn run(&self, name: &str, script: &str, more: &Value) -> Pod {
        let mut spec = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}],
        });
        for (key, value) in more.as_object().expect("fields") {
            spec[key] = value.clone();
        }
        self.create(json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})).await
    }

    /// The pod once `look` finds it so.
    async fn pod(&self, name: &str, what: &str, look: impl Fn(&Pod) -> bool) -> Pod {
        let pods: Api<Pod> = self.api();
        let found = async || pods.get(name).await.ok().filter(|pod| look(pod));
        await_condition(DEADLINE, &format!("pod {name} {what}"), found).await.expect("in time")
    }

    /// Waits for the end of a pod and shows its output if it failed.
    async fn succeeds(&self, name: &str) {
        let ended = |pod: &Pod| matches!(phase(pod), "Succeeded" | "Failed");
        let pod = self.pod(name, "ends", ended).await;
        let log = self.api::<Pod>().logs(name, &kube::api::LogParams::default()).await;
        assert_eq!(phase(&pod), "Succeeded", "{name}: {log:?}");
    }

    /// A server of one page on port 8080, once it runs; its address.
    async fn server(&self, name: &str) -> String {
        let script = "mkdir /tmp/www && echo page > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www";
        self.run(name, script, &json!({})).await;
        let pod = self.pod(name, "runs", |pod| phase(pod) == "Running").await;
        pod.status.and_then(|status| status.pod_ip).expect("a running pod has an address")
    }
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.and_then(|statuses| statuses.first()).map_or(0, |status| status.restart_count)
}

#[tokio::test]
async fn the_node_is_ready() {
    let (ground, _guard) = Ground::quiet().await;
    let nodes: Api<Node> = Api::all(ground.client.clone());
    let ready = async || {
        let conditions = nodes.get(NODE).await.ok()?.status?.conditions?;
        conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            .then_some(())
    };
    await_condition(DEADLINE, "the node is ready", ready).await.expect("in time");
}

#[tokio::test]
async fn a_claim_is_a_folder_of_the_pods_group_and_ends_with_the_claim() {
    let (ground, _guard) = Ground::quiet().await;
    let claim = json!({
        "metadata": {"name": "work"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    ground.create::<PersistentVolumeClaim>(claim).await;
    let spec = json!({
        "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
        "volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}],
        "containers": [{
            "name": "main",
            "image": BUSYBOX,
            "command": ["sh", "-c", "echo kept > /volume/file && stat -c %g /volume/file | grep -x 65532"],
            "volumeMounts": [{"name": "work", "mountPath": "/volume"}],
        }],
    });
    ground.run("writer", "", &spec).await;
    ground.succeeds("writer").await;
    let claims: Api<PersistentVolumeClaim> = ground.api();
    let bound = claims.get("work").await.expect("the claim");
    let volume = bound.spec.and_then(|spec| spec.volume_name).expect("a bound claim names its volume");
    let folder = ground.cluster.folder().join("volumes").join(&volume);
    assert_eq!(std::fs::read_to_string(folder.join("file")).expect("the file"), "kept\n");

    ground.api::<Pod>().delete("writer", &DeleteParams::default()).await.expect("deleted");
    claims.delete("work", &DeleteParams::default()).await.expect("deleted");
    let volumes: Api<PersistentVolume> = Api::all(ground.client.clone());
    let gone = async || volumes.get_opt(&volume).await.ok()?.is_none().then_some(());
    await_condition(DEADLINE, "the volume is deleted", gone).await.expect("in time");
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_claim_of_the_class_disk_is_full_at_its_size() {
    let (ground, _guard) = Ground::quiet().await;
    let claim = json!({"metadata": {"name": "small"}, "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
        "resources": {"requests": {"storage": "16Mi"}},
    }});
    ground.create::<PersistentVolumeClaim>(claim).await;
    let spec = json!({
        "volumes": [{"name": "small", "persistentVolumeClaim": {"claimName": "small"}}],
        "containers": [{
            "name": "main",
            "image": BUSYBOX,
            "command": ["sh", "-c", "! dd if=/dev/zero of=/volume/file bs=1M count=20 2>/volume/why && df /volume"],
            "volumeMounts": [{"name": "small", "mountPath": "/volume"}],
        }],
    });
    ground.run("writer", "", &spec).await;
    ground.succeeds("writer").await;
}

#[tokio::test]
async fn a_pod_reaches_a_service_by_its_name_and_knows_no_name_outside() {
    let (ground, _guard) = Ground::quiet().await;
    ground.server("server").await;
    let service = json!({"metadata": {"name": "front"}, "spec": {
        "selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}],
    }});
    ground.create::<Service>(service).await;
    // A new service is known to the node a moment later.
    let script = "until timeout 2 wget -q -O - http://front/ | grep -x page; do sleep 0.2; done; ! nslookup example.com.";
    ground.run("client", script, &json!({"activeDeadlineSeconds": 60})).await;
    ground.succeeds("client").await;
}

#[tokio::test]
async fn a_policy_holds_traffic_off_until_it_is_removed() {
    let (ground, _guard) = Ground::quiet().await;
    let address = ground.server("server").await;
    let fetch = format!("timeout 2 wget -q -O /dev/null http://{address}:8080/");
    let limit = json!({"activeDeadlineSeconds": 170});
    ground.run("before", &format!("until {fetch}; do sleep 0.2; done"), &limit).await;
    ground.succeeds("before").await;

    let policy = json!({"metadata": {"name": "nobody"}, "spec": {
        "podSelector": {"matchLabels": {"app": "server"}}, "policyTypes": ["Ingress"], "ingress": [],
    }});
    ground.create::<NetworkPolicy>(policy).await;
    ground.run("during", &format!("while {fetch}; do sleep 0.2; done; ! {fetch}"), &limit).await;
    ground.succeeds("during").await;

    let policies: Api<NetworkPolicy> = ground.api();
    policies.delete("nobody", &DeleteParams::default()).await.expect("deleted");
    ground.run("after", &format!("until {fetch}; do sleep 0.2; done"), &limit).await;
    ground.succeeds("after").await;
}

#[tokio::test]
async fn a_restricted_namespace_refuses_a_pod_with_privileges() {
    let _guard = COMPONENTS.read().await;
    let ground = Ground::new(json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    let mut pod = json!({"metadata": {"name": "careful"}, "spec": {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": BUSYBOX, "command": ["true"], "securityContext": {
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        }}],
    }});
    ground.create::<Pod>(pod.clone()).await;
    ground.succeeds("careful").await;

    pod["metadata"]["name"] = json!("bold");
    pod["spec"]["containers"][0]["securityContext"]["privileged"] = json!(true);
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let bold: Pod = serde_json::from_value(pod).expect("a pod");
    let refused = ground.api::<Pod>().create(&PostParams::default(), &bold).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403), "{refused:?}");
}

/// A run beside the one of the tests, taken down whatever happens.
struct Second {
    folder: PathBuf,
}

impl Second {
    fn command(&self, task: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(binary("mooring-cluster").expect("the program"));
        command.arg("--run").arg(&self.folder).args(task);
        command
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.command(&["down"]).output();
    }
}

#[tokio::test]
async fn a_second_run_that_was_cut_off_is_told_and_taken_down_beside_the_first() {
    let (ground, _guard) = Ground::quiet().await;
    let folder = ground.cluster.folder().with_file_name(format!("second-{}", std::process::id()));
    let second = Second { folder };
    let mut up = second.command(&["up", "--bare"]).spawn().expect("started");
    let half = async || second.folder.join("process/kubelet.json").exists().then_some(());
    await_condition(DEADLINE, "the second run starts its kubelet", half).await.expect("in time");
    up.kill().expect("killed");
    up.wait().expect("ended");

    let again = second.command(&["up", "--bare"]).output().expect("run");
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && told.contains("half dead"), "{told}");
    let down = second.command(&["down"]).output().expect("run");
    assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    let name = second.folder.display().to_string();
    assert!(with_marker(&name).is_empty(), "{:?}", with_marker(&name));
    assert!(!std::fs::read_to_string("/proc/mounts").expect("mounts").contains(&name));
    for component in Component::ALL {
        let state = ground.cluster.state(component).expect("state");
        assert!(matches!(state, State::Running { .. }), "{component}: {state:?}");
    }
}

/// One after the other, since each wants the rest of the cluster for itself.
#[tokio::test]
async fn a_component_that_was_ended_comes_back_and_pods_do_not_notice() {
    let _guard = COMPONENTS.write().await;
    let ground = Ground::new(json!({})).await;
    ground.run("bystander", "exec sleep 3600", &json!({"restartPolicy": "Always"})).await;
    let before = ground.pod("bystander", "runs", |pod| phase(pod) == "Running").await;
    let uid = before.uid().expect("a pod has a UID");
    let first = ground.cluster.container_pid(&uid, "main").await.expect("its process");

    the_api_server_is_killed(&ground).await;
    the_controllers_pause(&ground).await;
    containerd_is_killed(&ground).await;
    let now = ground.cluster.container_pid(&uid, "main").await.expect("its process");
    assert_eq!(now, first, "the container still runs");
    the_kubelet_is_away_while_a_container_ends(&ground, first).await;
}

async fn the_api_server_is_killed(ground: &Ground) {
    let cluster = &ground.cluster;
    cluster.kill(Component::Apiserver).await.expect("killed");
    assert_eq!(cluster.state(Component::Apiserver).expect("state"), State::Stopped);
    assert!(ground.api::<Pod>().list(&ListParams::default()).await.is_err());
    cluster.start(Component::Apiserver).await.expect("started");
    let pods = ground.api::<Pod>().list(&ListParams::default()).await.expect("answers again");
    assert_eq!(pods.items.len(), 1);
}

async fn the_controllers_pause(ground: &Ground) {
    ground.cluster.stop(Component::ControllerManager).await.expect("stopped");
    let labels = json!({"app": "late"});
    let deployment = json!({"metadata": {"name": "late"}, "spec": {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": BUSYBOX}]}},
    }});
    ground.create::<Deployment>(deployment).await;
    let sets: Api<ReplicaSet> = ground.api();
    assert!(sets.list(&ListParams::default()).await.expect("list").items.is_empty());
    ground.cluster.start(Component::ControllerManager).await.expect("started");
    let made = async || (!sets.list(&ListParams::default()).await.ok()?.items.is_empty()).then_some(());
    await_condition(DEADLINE, "the controllers work again", made).await.expect("in time");
}

async fn containerd_is_killed(ground: &Ground) {
    ground.cluster.kill(Component::Containerd).await.expect("killed");
    ground.cluster.start(Component::Containerd).await.expect("started");
    ground.run("successor", "true", &json!({})).await;
    ground.succeeds("successor").await;
}

async fn the_kubelet_is_away_while_a_container_ends(ground: &Ground, process: u32) {
    ground.cluster.stop(Component::Kubelet).await.expect("stopped");
    kill(process).expect("the container's first process is killed from the node");
    ground.cluster.start(Component::Kubelet).await.expect("started");
    ground.pod("bystander", "was restarted", |pod| restarts(pod) == 1).await;
}
