//! Starting a run from nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::process::Command;

use super::arguments::Arguments;
use super::command::{finish, is_there};
use super::configuration::{self, Values};
use super::process::{self, State};
use super::readiness::await_ready;
use super::run::RunFolder;
use super::{
    Cluster, Component, NODE, RECORD, Record, build, certificate, cgroup, image, network, say, teardown,
};

/// Programs that the components call, with the Debian package of each.
const NEEDED: &[(&str, &str)] = &[
    ("buildah", "buildah"),
    ("ip", "iproute2"),
    ("ipset", "ipset"),
    ("iptables", "iptables"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mmdebstrap", "mmdebstrap"),
    ("mount", "mount"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("runc", "runc"),
    ("tar", "tar"),
];
/// From the start of the kubelet to a node that takes pods, and from there to DNS.
const NODE_DEADLINE: Duration = Duration::from_mins(3);

/// Starts a cluster in the folder `run` and gives it once its node takes pods and its DNS answers. A run that is up already is
/// left as it is.
///
/// # Errors
/// When this user is not root, a program is missing, the run is half dead, or something does not start in its time. What was
/// started then stays, for a look: [`super::down`] removes it.
pub async fn up(run: &Path) -> anyhow::Result<Cluster> {
    check_root()?;
    check_programs()?;
    let folder = RunFolder::make(run)?;
    if let Some(record) = folder.read(RECORD)? {
        check_alive(&folder)?;
        say("is up already")?;
        return Ok(Cluster { folder, record });
    }
    let remains = teardown::remains(&folder)?;
    if !remains.is_empty() {
        bail!("of a former run is left: {}; {}", remains.join(", "), way_out(&folder));
    }
    let bin = build().await?;
    let start = Instant::now();
    let started = begin(&folder, bin).await;
    let cluster = started.with_context(|| format!("not up; {}", way_out(&folder)))?;
    say(&format!(
        "up in {:.1} s; logs are in {}",
        start.elapsed().as_secs_f64(),
        folder.join("log").display()
    ))?;
    Ok(cluster)
}

/// # Errors
/// When this user is not root: namespaces, mounts and firewall rules are root's.
pub(super) fn check_root() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "a cluster needs root on this machine: its network, mounts and containers are made by the kernel for root alone"
        );
    }
    Ok(())
}

fn check_programs() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        NEEDED.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        bail!("missing Debian packages: {}; ./taskw installs them", missing.join(" "));
    }
    Ok(())
}

fn check_alive(folder: &RunFolder) -> anyhow::Result<()> {
    let mut silent = Vec::new();
    for component in Component::ALL {
        match process::state(folder, component)? {
            State::Running { .. } => {}
            State::Stopped => silent.push(format!("{component} is stopped")),
            State::Dead => silent.push(format!("{component} is dead")),
        }
    }
    if silent.is_empty() {
        return Ok(());
    }
    bail!("the run is half dead: {}; {}", silent.join(", "), way_out(folder));
}

fn way_out(folder: &RunFolder) -> String {
    format!("`mooring-cluster down --run {}` removes it and keeps the logs", folder.path().display())
}

async fn begin(folder: &RunFolder, bin: std::path::PathBuf) -> anyhow::Result<Cluster> {
    let log = folder.join("log");
    if log.exists() {
        std::fs::remove_dir_all(&log).context("remove the former run's logs")?;
    }
    let ranges = network::make(folder).await.context("make the node's network")?;
    let record = Record { ranges, bin };
    folder.write(RECORD, &record)?;
    cgroup::make(folder)?;
    certificate::make(folder, ranges)?;
    let values = Values::of(folder, ranges, &record.bin);
    configuration::write(folder, &values)?;
    Arguments { folder, ranges, bin: &record.bin }.remember()?;
    let cluster = Cluster { folder: folder.clone(), record };
    start_base(&cluster).await?;
    // The rights come before those who need them.
    let coredns = cluster.image("coredns")?;
    let manifests = [values.fill("roles.yaml")?, values.with("COREDNS", coredns).fill("dns.yaml")?];
    apply(&cluster, &manifests.join("\n---\n")).await?;
    start_rest(&cluster).await?;
    kubectl(&cluster, &["-n", "kube-system", "rollout", "status", "deployment/coredns"]).await?;
    check_alive(folder)?;
    Ok(cluster)
}

/// The store, the API server and containerd, with the images that the cluster needs.
async fn start_base(cluster: &Cluster) -> anyhow::Result<()> {
    let Cluster { folder, record } = cluster;
    for component in [Component::Containerd, Component::Etcd] {
        process::start(folder, component)?;
    }
    let images = async {
        await_ready(folder, record, Component::Containerd).await?;
        image::load_small(folder, record).await
    };
    let api = cluster.start(Component::Apiserver);
    tokio::try_join!(images, api)?;
    Ok(())
}

async fn start_rest(cluster: &Cluster) -> anyhow::Result<()> {
    let rest = [
        Component::ControllerManager,
        Component::Scheduler,
        Component::Kubelet,
        Component::Proxy,
        Component::Volumes,
    ];
    futures::future::try_join_all(rest.map(|component| cluster.start(component))).await?;
    let node = format!("node/{NODE}");
    kubectl(cluster, &["wait", "--for=create", &node]).await?;
    // It ends when it does not find its node.
    cluster.start(Component::NetworkPolicy).await?;
    kubectl(cluster, &["wait", "--for=condition=Ready", &node]).await
}

async fn apply(cluster: &Cluster, manifests: &str) -> anyhow::Result<()> {
    let path = cluster.folder.join("configuration/manifests.yaml");
    std::fs::write(&path, manifests).with_context(|| format!("write {}", path.display()))?;
    kubectl(cluster, &["apply", "-f", &path.display().to_string()]).await
}

async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(cluster.programs().join("kubectl"));
    command.arg("--kubeconfig").arg(cluster.kubeconfig()).args(arguments);
    // Proxies lead away from this machine.
    command.env_clear().env("HOME", cluster.folder());
    if matches!(arguments.first(), Some(&"wait")) || arguments.contains(&"rollout") {
        command.arg(format!("--timeout={}s", NODE_DEADLINE.as_secs()));
    }
    finish(&mut command, NODE_DEADLINE + Duration::from_secs(10)).await.map(drop)
}
