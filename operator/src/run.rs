//! Composition: from a configuration to an operator that reconciles, and its orderly end.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::controller::{self, Action, ReconcileRequest, applier};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::caches::{Caches, Wakes};
use crate::certificate::{Authority, KeepError, keep_harness_client, load_authority};
use crate::context::Context;
use crate::dial::Dials;
use crate::events::events;
use crate::reconcile::alone;
use crate::refusal::Pauses;
use crate::telemetry::story;
use crate::{class, health, session};

/// Wakes that wait for the queue, which keeps each object once.
const WAKES: usize = 1024;
/// For an answer to a write.
const ANSWER: Duration = Duration::from_secs(15);
/// For a connection to the API server.
const CONNECT: Duration = Duration::from_secs(5);
/// How often the harness's certificate is looked at.
const RENEWAL: Duration = Duration::from_mins(1);
/// After its certificate could not be looked at.
const RENEWAL_AGAIN: Duration = Duration::from_secs(30);
/// Before the certificates are tried again at the start, doubled each time.
const CERTIFICATES_AGAIN: Duration = Duration::from_millis(250);
/// The longest pause before that.
const CERTIFICATES_PAUSE: Duration = Duration::from_secs(5);
/// For reconciles that are under way when the operator ends.
const GRACE: Duration = Duration::from_secs(10);

/// What an operator is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace it runs in.
    pub namespace: String,
    /// Where it answers `/healthz` and `/readyz`; port 0 takes a free one.
    pub health_listen: SocketAddr,
    /// How many Sessions are worked on at once, at least 1.
    pub concurrency: u16,
}

/// Reconciles until SIGTERM or SIGINT.
///
/// # Errors
/// When there is no way to the API server, the authority cannot be kept, or the address is taken.
pub fn until_signal(config: Config) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let stop = CancellationToken::new();
        let work = operate(config, stop.clone());
        tokio::pin!(work);
        tokio::select! {
            ended = &mut work => return ended,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("ending: reconciles that are under way have {} s", GRACE.as_secs());
        stop.cancel();
        work.await
    })
}

/// Reconciles until `stop`.
async fn operate(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let (watching, client) = clients().await?;
    let listener = TcpListener::bind(config.health_listen)
        .await
        .with_context(|| format!("cannot listen at {}", config.health_listen))?;
    let health = listener.local_addr().context("cannot read the address")?;
    tracing::info!(namespace = config.namespace, %health, "operator starts");
    let mut tasks = JoinSet::new();
    let healthy = Arc::new(OnceLock::new());
    tasks.spawn(health::serve(listener, Arc::clone(&healthy), stop.child_token()));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &config.namespace);
    let Some(authority) = stop.run_until_cancelled(keep_certificates(&secrets)).await else {
        return Ok(());
    };
    let authority = Arc::new(authority?);

    let (session_wakes, session_queue) = mpsc::channel(WAKES);
    let (class_wakes, class_queue) = mpsc::channel(WAKES);
    let dials = Dials::new(client.clone(), Arc::clone(&authority), session_wakes.clone(), stop.child_token());
    let pauses = Arc::new(Pauses::default());
    let forget = {
        let (dials, pauses) = (dials.clone(), Arc::clone(&pauses));
        move |session: &mooring_operator_api::Uid| {
            dials.hang_up(session);
            pauses.clear(session);
        }
    };
    let wakes = Wakes { sessions: session_wakes, classes: class_wakes };
    let caches = Caches::watch(&watching, &wakes, forget, &mut tasks);
    let (events, written) = events(client.clone());
    tasks.spawn(written);
    // Set once: nobody else does.
    let _ = healthy.set(Arc::clone(&caches));
    tasks.spawn(renew(secrets, Arc::clone(&authority)));
    let ctx = Arc::new(Context {
        client,
        namespace: config.namespace,
        caches: Arc::clone(&caches),
        authority,
        dials: dials.clone(),
        events,
        pauses,
    });
    let concurrency = controller::Config::default().concurrency(config.concurrency);
    let sessions = drain(applier(
        |session, ctx| Box::pin(alone(session::reconcile(session, ctx))),
        session::error_policy,
        Arc::clone(&ctx),
        caches.sessions.store(),
        requests(session_queue, stop.clone()),
        concurrency.clone(),
    ));
    let classes = drain(applier(
        |class, ctx| Box::pin(alone(class::reconcile(class, ctx))),
        class::error_policy,
        ctx,
        caches.classes.store(),
        requests(class_queue, stop.clone()),
        concurrency,
    ));
    let work = async { tokio::join!(sessions, classes) };
    let ended = async {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                _ = &mut work => return Ok(()),
                Some(ended) = tasks.join_next() => {
                    ended.context("a part of the operator failed")?;
                    anyhow::ensure!(stop.is_cancelled(), "a part of the operator ended");
                }
            }
        }
    };
    let forced = async {
        stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let result = tokio::select! {
        ended = ended => ended,
        () = forced => {
            tracing::warn!("some reconciles did not end in time; what they left follows from what is observed");
            Ok(())
        }
    };
    stop.cancel();
    dials.ended().await;
    result
}

/// The authority, and the harness's certificate from it. An API server that is away is waited for: it is no reason to end,
/// since what ends is started again later and later.
async fn keep_certificates(secrets: &Api<Secret>) -> Result<Authority, KeepError> {
    let mut pause = CERTIFICATES_AGAIN;
    loop {
        let kept = async {
            let authority = load_authority(secrets, Timestamp::now()).await?;
            keep_harness_client(secrets, &authority, Timestamp::now()).await?;
            Ok(authority)
        };
        match kept.await {
            Err(error @ KeepError::Api { .. }) if error.is_transient() => {
                tracing::warn!(error = story(&error), ?pause, "certificates are not kept yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(CERTIFICATES_PAUSE);
            }
            kept => return kept,
        }
    }
}

/// One connection for watches and one for everything else, so that a long list delays no write.
async fn clients() -> anyhow::Result<(Client, Client)> {
    let mut config = kube::Config::infer().await.context("there is no way to an API server")?;
    config.connect_timeout = Some(CONNECT);
    // What to repeat, and when, is decided where it is known what was asked.
    config.default_retry = false;
    let watching = Client::try_from(config.clone()).context("cannot make a client")?;
    config.read_timeout = Some(ANSWER);
    config.write_timeout = Some(ANSWER);
    config.reset_reader_on_write = true;
    let client = Client::try_from(config).context("cannot make a client")?;
    Ok((watching, client))
}

/// A queue of objects as the controller reads it, until `stop`.
fn requests<K>(
    queue: mpsc::Receiver<ObjectRef<K>>,
    stop: CancellationToken,
) -> impl Stream<Item = Result<ReconcileRequest<K>, Infallible>>
where
    K: Resource<DynamicType = ()> + 'static,
{
    futures::stream::unfold(queue, |mut queue| async move {
        queue.recv().await.map(|name| (Ok(ReconcileRequest::from(name)), queue))
    })
    .take_until(stop.cancelled_owned())
}

/// Carries out every reconcile; their errors are logged where they are judged.
async fn drain<K, E>(
    reconciles: impl Stream<Item = Result<(ObjectRef<K>, Action), controller::Error<E, Infallible>>>,
) where
    K: Resource<DynamicType = ()>,
    E: std::error::Error + 'static,
{
    reconciles.for_each(|_| std::future::ready(())).await;
}

async fn renew(secrets: Api<Secret>, authority: Arc<Authority>) {
    let mut pause = RENEWAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = match keep_harness_client(&secrets, &authority, Timestamp::now()).await {
            Ok(()) => RENEWAL,
            Err(error) => {
                tracing::warn!(error = story(&error), "certificate of the harness not kept");
                RENEWAL_AGAIN
            }
        };
    }
}

/// Makes `ring` the crypto provider of this process. Safe to repeat.
pub fn install_crypto() {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Tells a person why it ended, with all causes. Exit code 1.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // With standard error closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "mooring-operator: {error:#}");
    ExitCode::FAILURE
}
