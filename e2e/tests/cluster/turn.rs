//! One Session with this repository in it. Each test that takes its turn finds it Ready and leaves it Ready, with equal bytes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use mooring_e2e::execution::{Executor, Imported, Program, Tree};
use mooring_e2e::platform::{Bound, Ground, Namespace, Product, Session};
use serde_json::json;
use tokio::sync::Mutex;

use super::stage::{conclude, in_peace, in_quiet, judged, tell};

const NAME: &str = "main-job";
/// Whatever is lost, the API shows it and the status says so within this time.
pub(super) const STATUS_DEADLINE: Duration = Duration::from_secs(10);

/// Who takes or awaits a turn. The last one removes the namespace.
static TAKERS: AtomicUsize = AtomicUsize::new(0);
static SHARED: Mutex<Option<Shared>> = Mutex::const_new(None);

/// What outlives a turn: plain facts, since each test has a runtime of its own.
#[derive(Clone)]
struct Shared {
    namespace: String,
    begun: Begun,
}

/// How it began.
#[derive(Clone)]
pub(super) struct Begun {
    /// As it was bound for the first time.
    pub(super) bound: Bound,
    /// What Import said.
    pub(super) imported: Imported,
    /// Regular files of the checkout.
    pub(super) files: u64,
    /// The commit that is checked out.
    pub(super) head: String,
    /// What git says about the checkout's files.
    pub(super) changes: String,
}

/// One test's turn.
pub(super) struct Turn {
    pub(super) ground: Ground,
    pub(super) product: Product,
    pub(super) session: Session,
    pub(super) begun: Begun,
}

/// Takes a turn, beside tests that take none.
pub(super) async fn take_in_peace(body: impl AsyncFnOnce(&mut Turn) -> anyhow::Result<()>) {
    // Whoever waits for the peace counts, or the shared Session would be made anew for each.
    TAKERS.fetch_add(1, Ordering::SeqCst);
    in_peace(take(body)).await;
}

/// Takes a turn with no other test beside it.
pub(super) async fn take_in_quiet(body: impl AsyncFnOnce(&mut Turn) -> anyhow::Result<()>) {
    TAKERS.fetch_add(1, Ordering::SeqCst);
    in_quiet(take(body)).await;
}

async fn take(body: impl AsyncFnOnce(&mut Turn) -> anyhow::Result<()>) {
    let mut shared = SHARED.lock().await;
    let ground = Ground::open().await.expect("a cluster");
    let product = Product::installed(&ground).await.expect("the product");
    let name = shared.as_ref().map_or_else(|| "turn".to_owned(), |shared| shared.namespace.clone());
    let namespace = match &*shared {
        Some(_) => Namespace { ground: ground.clone(), name },
        None => Namespace::make(&ground, &name).await.expect("a namespace"),
    };
    let played = Box::pin(judged(&ground, &namespace, async {
        if shared.is_none() {
            let begun = begin(&namespace, &product).await.context("begin the shared Session")?;
            *shared = Some(Shared { namespace: namespace.name.clone(), begun });
        }
        let begun = shared.as_ref().map(|shared| shared.begun.clone()).context("the shared Session")?;
        let session = Session::open(&namespace, NAME);
        let mut turn = Turn { ground: ground.clone(), product, session, begun };
        let digest = turn.digest().await.context("before")?;
        body(&mut turn).await?;
        ensure!(turn.digest().await.context("after")? == digest, "the bytes of the workspace differ");
        let bound = turn.session.ready().await?;
        ensure!(bound.environment == turn.begun.bound.environment, "another environment: {bound:?}");
        ensure!(bound.claim == turn.begun.bound.claim, "another volume: {bound:?}");
        Ok(())
    }))
    .await;
    let is_last = TAKERS.fetch_sub(1, Ordering::SeqCst) == 1;
    if is_last || shared.is_none() {
        *shared = None;
        namespace.remove().await.expect("the namespace is removed");
    }
    drop(shared);
    conclude(played);
}

async fn begin(namespace: &Namespace, product: &Product) -> anyhow::Result<Begun> {
    let start = Instant::now();
    let mut session = Session::apply(namespace, NAME, &json!({})).await?;
    let (bound, seen) = session.ready_from(1).await?;
    let executor = session.connect(&bound, product).await?;
    let checkout = Tree::checkout().await?;
    let streaming = Instant::now();
    let imported = executor.import(&checkout, "").await?;
    tell(&format!(
        "this repository: Session Ready in {:.2} s; {} files, {} bytes streamed in {:.2} s",
        (seen - start).as_secs_f64(),
        imported.response.files_written,
        imported.stream_bytes,
        streaming.elapsed().as_secs_f64(),
    ));
    // Writes what the new inodes are into the index, so that nothing later does.
    said(&executor, "git status --porcelain >/dev/null").await?;
    Ok(Begun {
        bound,
        imported,
        files: checkout.files(),
        head: checkout.git(&["rev-parse", "HEAD"]).await?.trim().to_owned(),
        changes: checkout.git(&["status", "--porcelain", "--untracked-files=no"]).await?,
    })
}

impl Turn {
    /// The Session as it is bound now, and a client of its executor.
    pub(super) async fn executor(&mut self) -> anyhow::Result<(Bound, Executor)> {
        let bound = self.session.ready().await?;
        let executor = self.session.connect(&bound, &self.product).await?;
        Ok((bound, executor))
    }

    /// A digest over names, modes, links and contents of the whole workspace.
    pub(super) async fn digest(&mut self) -> anyhow::Result<String> {
        let (_, executor) = self.executor().await?;
        let text = "tar --sort=name --mtime=@0 --format=gnu --create --file=- . | sha256sum";
        said(&executor, text).await
    }
}

/// What a shell text prints that exits with 0.
pub(super) async fn said(executor: &Executor, text: &str) -> anyhow::Result<String> {
    let (finished, _) = executor.run_once_possible(&Program::shell(text)).await?;
    ensure!(finished.is_success(), "`{text}`: {}", finished.told());
    Ok(finished.text())
}
