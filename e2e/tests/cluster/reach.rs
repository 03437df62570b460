//! Who reaches whom, by traffic, with the policy engine at work.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use mooring_e2e::cluster::{Cluster, Component, State};
use mooring_e2e::execution::{Executor, Place, Program, Tree};
use mooring_e2e::fixture::await_condition;
use mooring_e2e::platform::{Session, Sighting, Watch};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};

use super::stage::{Stage, on_stage, tell};

/// Addresses at which clouds tell a machine's credentials, and one of the world (RFC 5737).
const AWAY: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(203, 0, 113, 7),
];
/// Held by the test whose addresses the node has.
static NODE: Mutex<()> = Mutex::const_new(());
/// The policy engine learns of a pod from the API server, as everybody does.
const POLICY_DEADLINE: Duration = Duration::from_secs(15);
const START_DEADLINE: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize)]
struct Report {
    target: String,
    outcome: String,
}

/// Reports of targets that answered.
fn answered(text: &str) -> anyhow::Result<Vec<String>> {
    let reports = text.lines().map(serde_json::from_str::<Report>).collect::<Result<Vec<_>, _>>();
    let reports = reports.with_context(|| format!("reach said {text:?}"))?;
    Ok(reports.into_iter().filter(|report| report.outcome == "answers").map(|report| report.target).collect())
}

/// A pod that does nothing, and what it can reach.
struct Bystander {
    pid: u32,
    address: Ipv4Addr,
}

impl Bystander {
    async fn start(stage: &Stage, name: &str, labels: Value) -> anyhow::Result<Self> {
        stage.namespace.apply_raw(pod(&stage.ground.image("busybox")?, name, &labels)).await?;
        let find = |seen: &[Sighting<Pod>]| {
            let pod = seen.last()?.object.as_ref()?;
            let status = pod.status.as_ref()?;
            let address: Ipv4Addr = status.pod_ip.as_ref()?.parse().ok()?;
            (status.phase.as_deref() == Some("Running")).then(|| (pod.metadata.uid.clone(), address))
        };
        let mut watch = Watch::of(stage.ground.api::<Pod>(&stage.namespace.name), name);
        let tell = |pod: &Pod| serde_json::to_string(&pod.status).unwrap_or_default();
        let (uid, address) = watch.until(START_DEADLINE, "a bystander runs", find, tell).await?;
        let uid = uid.context("a pod's UID")?;
        Ok(Self { pid: stage.ground.run()?.container_pid(&uid, "bystander").await?, address })
    }

    /// Which of the targets answer from its place on the network.
    async fn reaches(&self, reach: &Tree, targets: &[String]) -> anyhow::Result<Vec<String>> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.pid)).arg(reach.root().join("reach")).args(targets);
        answered(&output(command).await?)
    }
}

fn pod(image: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "bystander", "image": image, "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "2147483647"],
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

async fn output(mut command: Command) -> anyhow::Result<String> {
    let told = format!("{:?}", command.as_std());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("start {told}"))?;
    if !output.status.success() {
        bail!("{told}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Everything a command might try, each with somebody who would answer.
struct World {
    targets: Vec<String>,
    /// They take connections as long as they live.
    _listeners: Vec<tokio::net::TcpListener>,
    _node: MutexGuard<'static, ()>,
}

impl World {
    async fn make(stage: &Stage, neighbour: &Bystander, other: SocketAddr) -> anyhow::Result<Self> {
        let run = stage.ground.run()?;
        let services = |namespace: &str| stage.ground.api::<Service>(namespace);
        let address = |service: Service| service.spec.and_then(|spec| spec.cluster_ip).context("an address");
        let api = address(services("default").get("kubernetes").await?)?;
        let dns = address(services("kube-system").get("kube-dns").await?)?;
        let mut targets = vec![
            format!("tcp:{api}:443"),
            format!("tcp:{}:6443", run.node_address()),
            format!("tcp:{}:10250", run.node_address()),
            format!("dns:{dns}:53"),
            format!("tcp:{dns}:53"),
            // What the policy lets in answers to the harness alone.
            format!("tcp:{other}"),
        ];
        let alone = NODE.lock().await;
        let node = node(run)?;
        let mut listeners = Vec::new();
        let mut places =
            vec![(Place::Here, run.host_address()), (Place::of_process(neighbour.pid), neighbour.address)];
        for address in AWAY {
            own_address(run, address, "replace").await?;
            places.push((node.clone(), address));
        }
        for (place, address) in places {
            let listener = place.listen((address, 0).into()).await?;
            targets.push(format!("tcp:{}", listener.local_addr()?));
            listeners.push(listener);
        }
        Ok(Self { targets, _listeners: listeners, _node: alone })
    }

    async fn unmake(self, run: &Cluster) -> anyhow::Result<()> {
        for address in AWAY {
            own_address(run, address, "del").await?;
        }
        Ok(())
    }
}

fn node(run: &Cluster) -> anyhow::Result<Place> {
    match run.state(Component::Kubelet)? {
        State::Running { pid } => Ok(Place::of_process(pid)),
        State::Stopped | State::Dead => bail!("the kubelet does not run"),
    }
}

/// Gives the node one more address of its own, or takes it back.
async fn own_address(run: &Cluster, address: Ipv4Addr, verb: &str) -> anyhow::Result<()> {
    let Place::Inside(namespace) = node(run)? else { bail!("the node has a network of its own") };
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", namespace.display()));
    command.args(["ip", "address", verb, &format!("{address}/32"), "dev", "lo"]);
    output(command).await.map(drop)
}

/// Which of the targets answer a command.
async fn command_reaches(executor: &Executor, targets: &[String]) -> anyhow::Result<Vec<String>> {
    let text = format!("./reach {}", targets.join(" "));
    let finished = executor.run(&Program::shell(text)).await?;
    ensure!(finished.is_success(), "{}", finished.told());
    answered(&finished.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reaches_nobody() {
    on_stage("reach", async |stage| {
        let reach = Tree::reach().await?;
        let mut one = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let mut two = Session::apply(&stage.namespace, "two", &json!({})).await?;
        let neighbour = Bystander::start(stage, "neighbour", json!({})).await?;
        let (bound, other) = (one.ready().await?, two.ready().await?);
        let executor = one.connect(&bound, &stage.product).await?;
        executor.import(&reach, "").await?;
        let world = World::make(stage, &neighbour, other.executor.address).await?;
        let tried = a_command_fails_where_others_do_not(stage, &reach, &executor, &neighbour, &world).await;
        world.unmake(stage.ground.run()?).await?;
        tried
    })
    .await;
}

async fn a_command_fails_where_others_do_not(
    stage: &Stage,
    reach: &Tree,
    executor: &Executor,
    neighbour: &Bystander,
    world: &World,
) -> anyhow::Result<()> {
    // Each target answers somebody, or its silence would prove nothing: the executor to the harness, the rest to any pod.
    let executors = |target: &&String| target.ends_with(":7443");
    let (guarded, open): (Vec<_>, Vec<_>) = world.targets.iter().cloned().partition(|it| executors(&it));
    assert_eq!(neighbour.reaches(reach, &open).await?, open);
    for target in &guarded {
        let address = target.trim_start_matches("tcp:").parse()?;
        stage.product.place.connect(address).await.context("the harness reaches every executor")?;
    }
    let start = Instant::now();
    let mut last = Vec::new();
    let none = await_condition(POLICY_DEADLINE, "nothing answers a command", async || {
        last = command_reaches(executor, &world.targets).await.ok()?;
        last.is_empty().then_some(())
    });
    none.await.with_context(|| format!("answered: {last:?}"))?;
    tell(&format!("{} targets silent within {:.2} s", world.targets.len(), start.elapsed().as_secs_f64()));
    assert_eq!(command_reaches(executor, &world.targets).await?, Vec::<String>::new());
    // The neighbour still reaches all of it.
    assert_eq!(neighbour.reaches(reach, &open).await?, open);
    Ok(())
}

/// A Session of a class with this egress, and the program that tells what its commands reach.
async fn with_egress(stage: &Stage, name: &str, egress: &Value, reach: &Tree) -> anyhow::Result<Executor> {
    let class = json!({"image": stage.ground.image("environment")?, "shell": "bash", "egress": egress});
    stage.namespace.apply("ExecutorClass", name, &class).await?;
    let mut session = Session::apply(&stage.namespace, name, &json!({"executorClass": name})).await?;
    let bound = session.ready().await?;
    let executor = session.connect(&bound, &stage.product).await?;
    executor.import(reach, "").await?;
    Ok(executor)
}

/// Waits until a command reaches exactly `wanted` of all targets.
async fn reaches_exactly(executor: &Executor, world: &World, wanted: &[String]) -> anyhow::Result<()> {
    let mut last = Vec::new();
    let exact = await_condition(POLICY_DEADLINE, "a command reaches what its class says", async || {
        last = command_reaches(executor, &world.targets).await.ok()?;
        (last == wanted).then_some(())
    });
    exact.await.with_context(|| format!("answered: {last:?}, and should have: {wanted:?}"))?;
    // And it stays so.
    assert_eq!(command_reaches(executor, &world.targets).await?, wanted);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reaches_what_its_class_names_and_never_a_machines_credentials() {
    on_stage("egress", async |stage| {
        let reach = Tree::reach().await?;
        let (everything, names) = (json!({"rules": [{"cidr": "0.0.0.0/0"}]}), json!({"dns": true}));
        let mut other = Session::apply(&stage.namespace, "other", &json!({})).await?;
        let (open, asking, neighbour, other) = tokio::try_join!(
            Box::pin(with_egress(stage, "open", &everything, &reach)),
            Box::pin(with_egress(stage, "asking", &names, &reach)),
            Box::pin(Bystander::start(stage, "neighbour", json!({}))),
            Box::pin(other.ready()),
        )?;
        let other = other.executor.address;
        let world = World::make(stage, &neighbour, other).await?;
        // Not what serves credentials; and executors let in nobody but the harness, whoever may call them.
        let is_closed = |target: &str| {
            let is_metadata = AWAY[..3].iter().any(|address| target.starts_with(&format!("tcp:{address}:")));
            is_metadata || target == format!("tcp:{other}")
        };
        let (closed, allowed): (Vec<_>, Vec<_>) =
            world.targets.iter().cloned().partition(|target| is_closed(target));
        assert_eq!(closed.len(), 4, "{closed:?}");
        let dns = allowed.iter().filter(|target| target.ends_with(":53")).cloned().collect::<Vec<_>>();
        assert_eq!(dns.len(), 2, "{dns:?}");
        let start = Instant::now();
        let tried = tokio::try_join!(
            Box::pin(reaches_exactly(&open, &world, &allowed)),
            Box::pin(reaches_exactly(&asking, &world, &dns)),
        );
        world.unmake(stage.ground.run()?).await?;
        tried?;
        tell(&format!(
            "{} targets open by a rule and {} by `dns` within {:.2} s",
            allowed.len(),
            dns.len(),
            start.elapsed().as_secs_f64()
        ));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_is_reached_from_the_harness_and_from_nobody_else() {
    on_stage("reached", async |stage| {
        let reach = Tree::reach().await?;
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let neighbour = Bystander::start(stage, "neighbour", json!({})).await?;
        // The harness's labels make a harness only in the product's own namespace.
        let labels = json!({"app.kubernetes.io/name": "mooring-harness"});
        let impostor = Bystander::start(stage, "impostor", labels).await?;
        let bound = session.ready().await?;
        let target = [format!("tcp:{}", bound.executor.address)];
        // Other ports of a pod are not closed by anybody: the probe reaches what listens there.
        let listener = Place::of_process(neighbour.pid).listen((neighbour.address, 0).into()).await?;
        let open = [format!("tcp:{}", listener.local_addr()?), target[0].clone()];
        assert_eq!(impostor.reaches(&reach, &open).await?, open[..1]);
        for bystander in [&neighbour, &impostor] {
            assert_eq!(bystander.reaches(&reach, &target).await?, Vec::<String>::new());
        }
        stage.product.place.connect(bound.executor.address).await.context("from the harness's place")?;
        Ok(())
    })
    .await;
}
