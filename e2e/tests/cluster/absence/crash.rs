//! The operator may die, or be refused, before and after each of its writes: what it does comes out the same.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::ResourceExt;
use kube::api::ListParams;
use mooring_e2e::fixture::{await_condition, binary};
use mooring_e2e::platform::{Bound, Fate, Interceptor, OPERATOR, SYSTEM, Session};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::stage::{Stage, alone_on_stage, tell};

/// More lives than twice the writes of any of the walks below.
const LIVES: usize = 80;
/// From an operator's start to its next write, or to the end of what is awaited.
const LIFE_DEADLINE: Duration = Duration::from_mins(1);
const GONE_DEADLINE: Duration = Duration::from_mins(1);

/// An operator of this build beside the API server that fails, where the installed one would be on the network.
struct Bench<'a> {
    stage: &'a Stage,
    interceptor: Interceptor,
    kubeconfig: tempfile::NamedTempFile,
    network: String,
    /// Every write that was cut short in some way.
    hits: BTreeSet<String>,
}

impl<'a> Bench<'a> {
    /// The installed operator must be stopped.
    async fn set_up(stage: &'a Stage) -> anyhow::Result<Self> {
        let user = format!("system:serviceaccount:{SYSTEM}:{OPERATOR}");
        let listener = TcpListener::bind((stage.ground.run()?.host_address(), 0)).await?;
        let (client, namespace) = (stage.ground.client.clone(), &stage.namespace.name);
        let interceptor = Interceptor::start(client, &user, namespace, listener)?;
        let kubeconfig = tempfile::NamedTempFile::new()?;
        std::fs::write(kubeconfig.path(), interceptor.kubeconfig())?;
        let pid = stage.product.operator_place(&stage.ground).await?;
        let network = format!("--net=/proc/{pid}/ns/net");
        Ok(Self { stage, interceptor, kubeconfig, network, hits: BTreeSet::new() })
    }

    fn start(&self) -> anyhow::Result<Child> {
        self.operator_of(SYSTEM)?.spawn().context("start an operator")
    }

    /// One that keeps its certificates in this namespace.
    fn operator_of(&self, namespace: &str) -> anyhow::Result<Command> {
        let mut command = Command::new("nsenter");
        command.arg(&self.network).arg(binary("mooring-operator")?);
        command.args(["--namespace", namespace, "--health-listen", "127.0.0.1:0"]);
        command.env("KUBECONFIG", self.kubeconfig.path()).env("MOORING_LOG", "warn");
        command.stdin(Stdio::null()).kill_on_drop(true);
        Ok(command)
    }

    /// Lets operators live until `awaited` comes: each dies at its first write, before it or after it.
    async fn die_at_each_write<T>(
        &mut self,
        awaited: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut awaited = std::pin::pin!(awaited);
        for life in 0..LIVES {
            self.interceptor.decide(Fate::Silent);
            let mut operator = self.start()?;
            let hit = tokio::select! {
                done = &mut awaited => {
                    operator.kill().await?;
                    // The last write may have brought it about, and its operator died of it.
                    self.hits.extend(self.interceptor.silenced());
                    tell(&format!("died {life} times on the way"));
                    return done;
                }
                hit = tokio::time::timeout(LIFE_DEADLINE, self.interceptor.hit()) => {
                    hit.context("an operator does not come to a write")?
                }
                ended = operator.wait() => anyhow::bail!("an operator ended by itself: {}", ended?),
            };
            operator.kill().await?;
            self.hits.insert(hit);
        }
        anyhow::bail!("{LIVES} lives were not enough: {:?}", self.hits)
    }

    /// One pod, one claim, one Secret: nothing was made twice and nothing is left of what was tried.
    async fn has_one_of_each(&self, bound: &Bound) -> anyhow::Result<()> {
        let (pods, claims, secrets) = self.there().await?;
        ensure!(pods == [bound.executor.pod.as_str()], "{pods:?}");
        ensure!(claims == [bound.claim.name.as_str()], "{claims:?}");
        ensure!(secrets == [bound.executor.pod.as_str()], "{secrets:?}");
        Ok(())
    }

    /// Nothing but the claim is there, once the node has ended what was deleted.
    async fn sleeps(&self, session: &Session, first: &Bound) -> anyhow::Result<()> {
        let status = session.status();
        let ready = status.condition("Ready").context("the condition")?;
        ensure!((ready.status.as_str(), ready.reason.as_str()) == ("False", "Asleep"), "{}", status.told());
        ensure!(status.executor.is_none() && status.claim.as_ref() == Some(&first.claim), "{status:?}");
        let mut last = None;
        let sleeping = await_condition(GONE_DEADLINE, "no pod is there", async || {
            let there = self.there().await.ok()?;
            last = Some(there.clone());
            there.0.is_empty().then_some(there)
        });
        let (_, claims, secrets) = sleeping.await.with_context(|| format!("{last:?}"))?;
        ensure!(claims == [first.claim.name.as_str()], "{claims:?}");
        ensure!(secrets.is_empty(), "{secrets:?}");
        Ok(())
    }

    async fn there(&self) -> anyhow::Result<(Vec<String>, Vec<String>, Vec<String>)> {
        let (ground, namespace) = (&self.stage.ground, &self.stage.namespace.name);
        let all = ListParams::default();
        let pods = ground.api::<Pod>(namespace).list(&all).await?;
        let claims = ground.api::<PersistentVolumeClaim>(namespace).list(&all).await?;
        let secrets = ground.api::<Secret>(namespace).list(&all).await?;
        Ok((names(&pods.items), names(&claims.items), names(&secrets.items)))
    }
}

fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

async fn delete_pod(stage: &Stage, bound: &Bound) -> anyhow::Result<()> {
    stage.namespace.kubectl(&["delete", "pod", &bound.executor.pod, "--wait=false"]).await.map(drop)
}

/// The Session is bound under this epoch, in the same environment, over the same bytes.
async fn is_kept(
    bench: &Bench<'_>,
    session: &mut Session,
    first: &Bound,
    epoch: u64,
) -> anyhow::Result<Bound> {
    let bound = session.ready().await?;
    ensure!(bound.epoch == epoch, "{bound:?}");
    ensure!(bound.environment == first.environment, "{bound:?}");
    ensure!(bound.claim == first.claim, "{bound:?}");
    bench.has_one_of_each(&bound).await?;
    let executor = session.connect(&bound, &bench.stage.product).await?;
    ensure!(executor.read("mark").await? == b"kept", "the bytes are not the same");
    Ok(bound)
}

/// Start, loss, sleep and end of one Session; `walk` lets the operator live until what it is given comes.
async fn whole_life(
    bench: &mut Bench<'_>,
    walk: impl for<'a> AsyncFn(&'a mut Bench<'_>, Step<'a>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let stage = bench.stage;
    let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
    walk(bench, Step::Ready(&mut session, 1)).await?;
    let first = session.ready().await?;
    ensure!(first.epoch == 1, "no executor was lost, and none was bound before: {first:?}");
    bench.has_one_of_each(&first).await?;
    let executor = session.connect(&first, &stage.product).await?;
    executor.write("mark", b"kept").await?;
    drop(executor);

    delete_pod(stage, &first).await?;
    walk(bench, Step::Ready(&mut session, 2)).await?;
    is_kept(bench, &mut session, &first, 2).await?;

    session.change(&json!({"suspended": true})).await?;
    walk(bench, Step::Asleep(&mut session)).await?;
    bench.sleeps(&session, &first).await?;
    session.change(&json!({"suspended": false})).await?;
    walk(bench, Step::Ready(&mut session, 3)).await?;
    is_kept(bench, &mut session, &first, 3).await?;

    session.delete().await?;
    walk(bench, Step::Gone(&mut session)).await?;
    Ok(())
}

/// What an operator is to bring about.
enum Step<'a> {
    Ready(&'a mut Session, u64),
    Asleep(&'a mut Session),
    Gone(&'a mut Session),
}

impl Step<'_> {
    async fn comes(self) -> anyhow::Result<()> {
        match self {
            Self::Ready(session, epoch) => session.ready_from(epoch).await.map(drop),
            Self::Asleep(session) => {
                session.condition(GONE_DEADLINE, "Suspended", "True", "Requested").await.map(drop)
            }
            Self::Gone(session) => session.gone(GONE_DEADLINE).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_die_before_and_after_each_write() {
    alone_on_stage("crash", async |stage| {
        let mut bench = Bench::set_up(stage).await?;
        whole_life(&mut bench, async |bench, step| bench.die_at_each_write(step.comes()).await).await?;
        tell(&format!("deaths: {:?}", bench.hits));
        for write in [
            "PATCH sessions",
            "PATCH sessions/status",
            "POST persistentvolumeclaims",
            "POST secrets",
            "POST pods",
            "DELETE pods",
            "DELETE secrets",
            "DELETE persistentvolumeclaims",
        ] {
            for side in ["before", "after"] {
                ensure!(bench.hits.contains(&format!("{write} {side}")), "no death {side} {write}");
            }
        }
        let (pods, claims, secrets) = bench.there().await?;
        ensure!(secrets.is_empty(), "{secrets:?}");
        // What was deleted may take its grace to go.
        ensure!(pods.len() <= 1 && claims.len() <= 1, "{pods:?} {claims:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_writes_fail_before_and_after_their_effect_comes_to_the_same() {
    alone_on_stage("flaky", async |stage| {
        let mut bench = Bench::set_up(stage).await?;
        bench.interceptor.decide(Fate::Flaky);
        let mut operator = bench.start()?;
        whole_life(&mut bench, async |_, step| step.comes().await).await?;
        operator.kill().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_starts_over_sessions_in_order_writes_nothing() {
    alone_on_stage("restart", async |stage| {
        let bench = Bench::set_up(stage).await?;
        let mut operator = bench.start()?;
        let mut bound = Session::apply(&stage.namespace, "bound", &json!({})).await?;
        let mut asleep = Session::apply(&stage.namespace, "asleep", &json!({"suspended": true})).await?;
        let mut waits = Session::apply(&stage.namespace, "waits", &json!({"executorClass": "none"})).await?;
        bound.ready().await?;
        let deadline = Duration::from_secs(30);
        asleep.condition(deadline, "Ready", "False", "Asleep").await?;
        waits.condition(deadline, "Ready", "False", "ClassNotFound").await?;
        operator.kill().await?;
        bench.interceptor.take_passed();

        let mut operator = bench.start()?;
        // Queued behind all that the operator found when it started.
        let mut last = Session::apply(&stage.namespace, "last", &json!({"profile": "no-fs"})).await?;
        last.condition(deadline, "Ready", "True", "NoFiles").await?;
        operator.kill().await?;
        let passed = bench.interceptor.take_passed();
        let own = format!("/apis/mooring.dev/v1alpha1/namespaces/{}/sessions/last", stage.namespace.name);
        // Namespaces of other tests may still be on their way out.
        let counts = [&stage.namespace.name, SYSTEM].map(|name| format!("/namespaces/{name}/"));
        let counted = passed.iter().filter(|write| counts.iter().any(|it| write.contains(it)));
        let others: Vec<&String> = counted.filter(|write| !write.contains(&own)).collect();
        ensure!(!passed.is_empty() && others.is_empty(), "{others:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_authority_is_gone_says_so_and_makes_no_other() {
    alone_on_stage("authority", async |stage| {
        let bench = Bench::set_up(stage).await?;
        let harness =
            ["create", "secret", "generic", "mooring-harness-client", "--from-literal=ca.crt=former"];
        stage.namespace.kubectl(&harness).await?;
        let mut operator = bench.operator_of(&stage.namespace.name)?;
        let ended = tokio::time::timeout(LIFE_DEADLINE, operator.output()).await;
        let ended = ended.context("the operator goes on")??;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(!ended.status.success() && said.contains("secret mooring-ca is gone"), "{said}");
        let (_, _, secrets) = bench.there().await?;
        ensure!(secrets == ["mooring-harness-client"], "{secrets:?}");
        Ok(())
    })
    .await;
}
