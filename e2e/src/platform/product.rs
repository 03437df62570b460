//! The product, installed as a platform team would, and a place in its namespace from which a harness would call.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::json;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{Ground, Sighting, Watch};
use crate::execution::{Authority, Identity, Place};

/// The namespace it is installed in.
pub const SYSTEM: &str = "mooring-system";
/// The operator's Deployment, and the value of `app.kubernetes.io/name` of its pods.
pub const OPERATOR: &str = "mooring-operator";
/// The value of `app.kubernetes.io/name` of the harness's pods.
const HARNESS: &str = "mooring-harness";
/// The container of a pod that only stands somewhere.
const PLACE: &str = "place";
/// The oldest Kubernetes the chart says it is for. `helm template` takes its own default, whatever the cluster is.
const OLDEST: &str = "1.36.0";
/// Image on the node, first start, certificates.
const INSTALL_DEADLINE: Duration = Duration::from_mins(3);

/// The installed product, as the tests use it.
pub struct Product {
    /// The harness's certificate, as the operator made it.
    pub harness: Identity,
    /// The operator's authority: with its key, as only the cluster's admin can read it.
    pub authority: Authority,
    /// Where a harness is on the network.
    pub place: Place,
}

impl Product {
    /// Installs it unless this process did so already, and gives what tests need of it.
    ///
    /// # Errors
    /// When the installation fails or the operator does not start.
    pub async fn installed(ground: &Ground) -> anyhow::Result<Self> {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        INSTALLED.get_or_try_init(|| install(ground)).await?;
        let (ca, client) =
            tokio::try_join!(secret(ground, "mooring-ca"), secret(ground, "mooring-harness-client"))?;
        let harness = Identity {
            certificate: text(&client, "tls.crt")?,
            key: text(&client, "tls.key")?,
            authority: text(&client, "ca.crt")?,
        };
        let authority = Authority::open(text(&ca, "tls.crt")?, &text(&ca, "tls.key")?)?;
        Ok(Self { harness, authority, place: place(ground).await? })
    }

    /// Installs it from another chart than this repository's, or from this again.
    ///
    /// # Errors
    /// As [`Product::installed`].
    pub async fn install_from(ground: &Ground, chart: &Path) -> anyhow::Result<()> {
        install_chart(ground, chart).await
    }

    /// Uninstalls it, and leaves what the chart leaves.
    ///
    /// # Errors
    /// When helm fails.
    pub async fn uninstall(ground: &Ground) -> anyhow::Result<()> {
        let mut helm = helm(ground);
        helm.args(["uninstall", "mooring", "--namespace", SYSTEM, "--wait", "--timeout", "2m"]);
        finish(helm).await.map(drop)
    }

    /// What the chart renders to with these arguments, for a release into `namespace`. Templates look into the cluster.
    ///
    /// # Errors
    /// When helm refuses, with its words.
    pub async fn rendered(ground: &Ground, namespace: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let mut helm = helm(ground);
        helm.args(["template", "mooring"]).arg(chart()).args(["--namespace", namespace]);
        helm.args(["--dry-run=server", "--kube-version", OLDEST]).args(arguments);
        finish(helm).await
    }

    /// A process in the installed operator's place on the network, on a cluster of ours.
    ///
    /// # Errors
    /// When the pod does not come to run, and on any other cluster.
    pub async fn operator_place(&self, ground: &Ground) -> anyhow::Result<u32> {
        make_place(ground, OPERATOR).await?;
        let uid = stand(ground, OPERATOR).await?;
        ground.run()?.container_pid(&uid, PLACE).await
    }

    /// Removes what [`Product::operator_place`] made, so that the installed operator is the only one of its name.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn leave_operator_place(ground: &Ground) -> anyhow::Result<()> {
        let name = place_name(OPERATOR);
        let arguments =
            ["-n", SYSTEM, "delete", "pod", &name, "--ignore-not-found", "--grace-period=0", "--force"];
        ground.kubectl.run(&arguments).await.map(drop)
    }

    /// An operator's certificate.
    ///
    /// # Errors
    /// When none can be signed.
    pub fn operator(&self) -> anyhow::Result<Identity> {
        self.authority.operator()
    }
}

/// The Service by which the gateway is reached from outside the cluster, as a platform team would make one.
const DOOR: &str = "e2e-door";

async fn install(ground: &Ground) -> anyhow::Result<()> {
    install_chart(ground, &chart()).await?;
    make_place(ground, HARNESS).await
}

/// Installs the product from a chart, or upgrades it to that.
async fn install_chart(ground: &Ground, chart: &Path) -> anyhow::Result<()> {
    let mut helm = helm(ground);
    helm.args(["upgrade", "--install", "mooring"]).arg(chart);
    helm.args(["--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "2m"]);
    for program in ["operator", "harness"] {
        let image = ground.image(program)?;
        let (repository, tag) = image.rsplit_once(':').with_context(|| format!("{image} has no tag"))?;
        helm.args(["--set", &format!("{program}.image.repository={repository},{program}.image.tag={tag}")]);
    }
    helm.args(["--set", &format!("harness.gateway.url=https://{}", door(ground).await?)]);
    finish(helm).await.map(drop)
}

/// Where the gateway is reached from outside: a port of a node.
async fn door(ground: &Ground) -> anyhow::Result<String> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}});
    ground.kubectl.apply(&namespace).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": DOOR, "namespace": SYSTEM},
        "spec": {
            "type": "NodePort",
            "selector": {"app.kubernetes.io/name": HARNESS, "app.kubernetes.io/component": "harness"},
            "ports": [{"name": "gateway", "port": 8080, "targetPort": "gateway"}],
        },
    });
    ground.kubectl.apply(&service).await?;
    let port = ["-n", SYSTEM, "get", "service", DOOR, "-o", "jsonpath={.spec.ports[0].nodePort}"];
    let address = "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}";
    let address = ground.kubectl.run(&["get", "nodes", "-o", address]).await?;
    Ok(format!("{address}:{}", ground.kubectl.run(&port).await?))
}

/// helm, with all rights in the cluster.
fn helm(ground: &Ground) -> Command {
    let mut helm = Command::new(ground.helm());
    helm.arg("--kubeconfig").arg(ground.kubectl.kubeconfig());
    helm
}

/// What a call of helm prints.
async fn finish(mut helm: Command) -> anyhow::Result<String> {
    helm.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(INSTALL_DEADLINE, helm.output()).await.context("helm does not end")?;
    let output = output.context("start helm")?;
    if !output.status.success() {
        bail!("helm: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The chart of this repository.
pub fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/mooring")
}

/// The name of the pod in the place of `app`.
fn place_name(app: &str) -> String {
    format!("e2e-place-of-{app}")
}

/// A pod that does nothing, with the label of `app`.
fn place_pod(image: &str, app: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": place_name(app), "namespace": SYSTEM, "labels": {"app.kubernetes.io/name": app},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": PLACE, "image": image, "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "2147483647"],
                "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

/// Makes the pod in the place of `app`, or finds it.
async fn make_place(ground: &Ground, app: &str) -> anyhow::Result<()> {
    ground.kubectl.apply(&place_pod(&ground.image("busybox")?, app)).await
}

/// The UID of the pod in the place of `app`, once it runs.
async fn stand(ground: &Ground, app: &str) -> anyhow::Result<String> {
    let mut pod = Watch::of(ground.api::<Pod>(SYSTEM), &place_name(app));
    let find = |seen: &[Sighting<Pod>]| {
        let pod = seen.last()?.object.as_ref()?;
        let is_running = pod.status.as_ref()?.phase.as_deref() == Some("Running");
        pod.metadata.uid.clone().filter(|_| is_running)
    };
    pod.until(INSTALL_DEADLINE, &format!("{} runs", place_name(app)), find, pod_status).await
}

async fn place(ground: &Ground) -> anyhow::Result<Place> {
    let uid = stand(ground, HARNESS).await?;
    let Ok(run) = ground.run() else {
        // Slower, and all there is without the node.
        let name = place_name(HARNESS);
        let arguments = ["--namespace", SYSTEM, "exec", "--stdin", &name, "--", "nc"];
        return Ok(Place::Relay(ground.kubectl.words(&arguments)));
    };
    Ok(Place::of_process(run.container_pid(&uid, PLACE).await?))
}

async fn secret(ground: &Ground, name: &str) -> anyhow::Result<Secret> {
    let mut watch = Watch::of(ground.api::<Secret>(SYSTEM), name);
    let find = |seen: &[Sighting<Secret>]| {
        let secret = seen.last()?.object.as_ref()?;
        secret.data.as_ref()?.contains_key("tls.key").then(|| secret.clone())
    };
    // Its content is never told.
    let tell = |_: &Secret| "a Secret without tls.key".to_owned();
    watch.until(INSTALL_DEADLINE, &format!("the operator writes Secret {name}"), find, tell).await
}

fn text(secret: &Secret, key: &str) -> anyhow::Result<String> {
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    let value = value.with_context(|| format!("no {key} in Secret {:?}", secret.metadata.name))?;
    String::from_utf8(value.0.clone()).with_context(|| format!("{key} is PEM"))
}

fn pod_status(pod: &Pod) -> String {
    serde_json::to_string(&pod.status).unwrap_or_default()
}
