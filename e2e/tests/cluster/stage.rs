//! What a test stands on: the cluster, the installed product and a namespace of its own.

use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use mooring_e2e::platform::{Ground, Namespace, OPERATOR, Product, SYSTEM};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Held for reading by each test, for writing by those that stop what all of them use.
static PEACE: RwLock<Installed> = RwLock::const_new(Installed::Runs);
/// How many are, or wait to be, without the installed operator.
static ALONE: AtomicUsize = AtomicUsize::new(0);

/// The installed operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Installed {
    Runs,
    /// Left so for the next test that wants it.
    Stopped,
}

/// The ground of one test.
pub(super) struct Stage {
    pub(super) ground: Ground,
    pub(super) product: Product,
    pub(super) namespace: Namespace,
}

/// Plays `body` in a namespace of its own, beside other tests, and removes the namespace whatever happens.
pub(super) async fn on_stage(word: &str, body: impl AsyncFnOnce(&Stage) -> anyhow::Result<()>) {
    let _peace = peace().await;
    Box::pin(play(word, body)).await;
}

/// As [`on_stage`], with no other test beside it.
pub(super) async fn quietly_on_stage(word: &str, body: impl AsyncFnOnce(&Stage) -> anyhow::Result<()>) {
    let _quiet = quiet().await;
    Box::pin(play(word, body)).await;
}

/// As [`on_stage`], with no other test beside it and the installed operator stopped meanwhile.
pub(super) async fn alone_on_stage(word: &str, body: impl AsyncFnOnce(&Stage) -> anyhow::Result<()>) {
    ALONE.fetch_add(1, Ordering::SeqCst);
    let mut installed = PEACE.write().await;
    let ground = Ground::open().await.expect("a cluster");
    Product::installed(&ground).await.expect("the product");
    if *installed == Installed::Runs {
        stop_operator(&ground).await.expect("the operator stops");
        *installed = Installed::Stopped;
    }
    let played = AssertUnwindSafe(Box::pin(play(word, body))).catch_unwind().await;
    Product::leave_operator_place(&ground).await.expect("the place is free");
    let is_last = ALONE.fetch_sub(1, Ordering::SeqCst) == 1;
    if is_last {
        restore(&mut installed).await;
    }
    conclude(played.map(Ok));
}

/// Beside others, with the installed operator.
async fn peace() -> RwLockReadGuard<'static, Installed> {
    let peace = PEACE.read().await;
    if *peace == Installed::Runs {
        return peace;
    }
    drop(peace);
    quiet().await.downgrade()
}

/// With nothing beside it but the installed operator.
async fn quiet() -> RwLockWriteGuard<'static, Installed> {
    let mut quiet = PEACE.write().await;
    restore(&mut quiet).await;
    quiet
}

async fn restore(installed: &mut Installed) {
    if *installed == Installed::Stopped {
        let ground = Ground::open().await.expect("a cluster");
        start_operator(&ground).await.expect("the operator starts");
        *installed = Installed::Runs;
    }
}

/// Stops the installed operator and waits until it is gone.
pub(super) async fn stop_operator(ground: &Ground) -> anyhow::Result<()> {
    scale(ground, "--replicas=0").await?;
    let arguments = ["-n", SYSTEM, "wait", "--for=delete", "pod", "--timeout=60s", "-l", OPERATOR_PODS];
    ground.kubectl.run(&arguments).await.map(drop)
}

/// Starts the installed operator and waits until it is ready.
pub(super) async fn start_operator(ground: &Ground) -> anyhow::Result<()> {
    scale(ground, "--replicas=1").await?;
    let deployment = format!("deployment/{OPERATOR}");
    ground.kubectl.run(&["-n", SYSTEM, "rollout", "status", &deployment, "--timeout=60s"]).await.map(drop)
}

async fn scale(ground: &Ground, replicas: &str) -> anyhow::Result<()> {
    let deployment = format!("deployment/{OPERATOR}");
    ground.kubectl.run(&["-n", SYSTEM, "scale", &deployment, replicas]).await.map(drop)
}

async fn play(word: &str, body: impl AsyncFnOnce(&Stage) -> anyhow::Result<()>) {
    let ground = Ground::open().await.expect("a cluster");
    let product = Product::installed(&ground).await.expect("the product");
    let namespace = Namespace::make(&ground, word).await.expect("a namespace");
    let stage = Stage { ground, product, namespace };
    let played = judged(&stage.ground, &stage.namespace, body(&stage)).await;
    let removed = stage.namespace.clone().remove().await;
    conclude(played);
    removed.expect("the namespace is removed");
}

/// Runs peacefully beside others, without a namespace.
pub(super) async fn in_peace<T>(body: impl Future<Output = T>) -> T {
    let _peace = peace().await;
    body.await
}

/// Runs with no other test beside it, without a namespace.
pub(super) async fn in_quiet<T>(body: impl Future<Output = T>) -> T {
    let _quiet = quiet().await;
    body.await
}

/// How a body went: an error, or a panic with its payload.
pub(super) type Played = std::thread::Result<anyhow::Result<()>>;

/// Runs a body; when it does not go well, tells what the cluster says about the namespace, while it is still there.
pub(super) async fn judged(
    ground: &Ground,
    namespace: &Namespace,
    body: impl Future<Output = anyhow::Result<()>>,
) -> Played {
    let played = AssertUnwindSafe(body).catch_unwind().await;
    if !matches!(played, Ok(Ok(()))) {
        let name = namespace.name.as_str();
        let looks: [&[&str]; 4] = [
            &["--namespace", name, "get", "sessions.mooring.dev,pods,persistentvolumeclaims", "-o", "wide"],
            &["--namespace", name, "get", "sessions.mooring.dev", "-o", "yaml"],
            &["--namespace", name, "get", "events", "--sort-by", ".metadata.creationTimestamp"],
            &["--namespace", SYSTEM, "logs", "--tail", "40", "--selector", OPERATOR_PODS],
        ];
        for look in looks {
            let said = ground.kubectl.ask(look, &[]).await;
            let said = said.map_or_else(|cause| format!("{cause:#}"), |said| said.stdout + &said.stderr);
            tell(&format!("--- kubectl {}\n{said}", look.join(" ")));
        }
    }
    played
}

/// Selects the operator's pods.
pub(super) const OPERATOR_PODS: &str = "app.kubernetes.io/name=mooring-operator";
const _: () = assert!(OPERATOR.len() + "app.kubernetes.io/name=".len() == OPERATOR_PODS.len());

/// Fails the test that did not go well.
pub(super) fn conclude(played: Played) {
    match played {
        Ok(Ok(())) => {}
        Ok(Err(cause)) => panic!("{cause:#}"),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// A line for the person who watches, also when the test passes.
pub(super) fn tell(line: &str) {
    // Nothing can be done about a standard error that is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
