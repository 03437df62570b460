//! Composition: from a configuration to a harness that serves, and its orderly end.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use mooring_authority::{ApiAddress, Protected};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentParts, AgentSettings, Runs};
use crate::environment::{EnvironmentResolver, LocalSettings, SettingsError};
use crate::http::{self, ApiParts, Nudge, Patience};
use crate::key::KEY_VARIABLE;
use crate::model::{ModelClient, ModelConfig, ModelTiming};
use crate::state::StateFolder;
use crate::store::{Store, wall_clock};

/// Nudges on their way to the loop.
const NUDGES: usize = 256;
/// How often questions are looked at whose time is over.
const EXPIRY_PERIOD: Duration = Duration::from_secs(2);

/// What local mode is made from.
#[derive(Debug)]
pub struct LocalConfig {
    /// The folder that sessions work in.
    pub tree: PathBuf,
    /// Where to listen: a loopback address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The state folder, outside the tree; made (0700) if it is missing.
    pub state: PathBuf,
    /// The model to ask; `None`: sessions can be made, but take no message.
    pub model: Option<ModelChoice>,
    /// Further folders that commands may read.
    pub read_only: Vec<PathBuf>,
    /// The executor program.
    pub executor: PathBuf,
    /// What the environment of commands starts from.
    pub variables: Vec<(OsString, OsString)>,
}

/// A model and how to reach it.
#[derive(Debug)]
pub struct ModelChoice {
    /// Up to and without `/chat/completions`.
    pub base_url: String,
    /// The provider's name of it.
    pub name: String,
    /// Sent as a bearer token. Commands never have it.
    pub provider_key: Option<SecretString>,
    /// The file that the key came from: no call of an agent may name it.
    pub key_file: Option<PathBuf>,
}

impl ModelChoice {
    fn client(self) -> anyhow::Result<ModelClient> {
        ModelClient::new(ModelConfig {
            base_url: self.base_url,
            model: self.name,
            api_key: self.provider_key,
            max_output_tokens: None,
            timing: ModelTiming::default(),
        })
        .context("cannot use --model")
    }
}

/// A harness that serves. Dropping it aborts everything; [`Harness::stop`] ends it in order.
///
/// ```no_run
/// use mooring_harness::run::{Harness, LocalConfig};
///
/// # async fn example() -> anyhow::Result<()> {
/// let harness = Harness::start(LocalConfig {
///     tree: "/home/me/project".into(),
///     listen: "127.0.0.1:0".parse()?,
///     state: "/home/me/.local/share/my-tool/mooring".into(),
///     model: None,
///     read_only: Vec::new(),
///     executor: "/usr/local/bin/mooring-executor".into(),
///     variables: std::env::vars_os().collect(),
/// })
/// .await?;
/// println!("POST http://{}/v1/sessions, token in {}", harness.address(), harness.token_file().display());
/// harness.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Harness {
    address: SocketAddr,
    token_file: PathBuf,
    drain: CancellationToken,
    tasks: JoinSet<()>,
    runs: Arc<Runs>,
    resolver: Arc<EnvironmentResolver>,
    store: Store,
    _state: StateFolder,
}

impl Harness {
    /// Starts to serve, and goes on with the runs that an earlier process left open.
    ///
    /// # Errors
    /// When the state folder is in use or not private, when it and the tree hold one another, when the store or the
    /// model's URL cannot be used, or when the address is taken or not loopback.
    pub async fn start(config: LocalConfig) -> anyhow::Result<Self> {
        anyhow::ensure!(config.listen.ip().is_loopback(), "{} is not a loopback address", config.listen);
        let models: Vec<String> = config.model.iter().map(|model| model.name.clone()).collect();
        let key_file = config.model.as_ref().and_then(|model| model.key_file.clone());
        let model = config.model.map(ModelChoice::client).transpose()?;
        refuse_overlap(&config.state, &config.tree)?;
        let state = StateFolder::open(&config.state)?;
        let (token, token_file) = (state.token()?, state.token_file());
        let store = Store::open(&state.database(), wall_clock()).await.context("cannot open the store")?;
        store.free_leases().await.context("cannot free the leases of an earlier process")?;
        let settings = LocalSettings {
            program: config.executor,
            root: config.tree,
            state: state.path().to_owned(),
            read_only: config.read_only,
            variables: config.variables,
            withheld: vec![KEY_VARIABLE.to_owned()],
        };
        let resolver = Arc::new(EnvironmentResolver::new(store.clone(), Some(settings))?);
        let listener = TcpListener::bind(config.listen)
            .await
            .with_context(|| format!("cannot listen at {}", config.listen))?;
        let address = listener.local_addr().context("cannot read the address")?;

        let runs = Arc::new(Runs::new(AgentParts {
            store: store.clone(),
            resolver: Arc::clone(&resolver),
            model,
            protected: protected(state.path(), key_file.as_deref(), address),
            settings: AgentSettings::new(format!("local-{}", std::process::id())),
        }));
        let resumed = runs.resume_all().await.context("cannot go on with open runs")?;
        tracing::info!(sessions = resumed, "goes on with open runs");

        let drain = CancellationToken::new();
        let (nudges, received) = mpsc::channel(NUDGES);
        let mut tasks = JoinSet::new();
        tasks.spawn(expire(store.clone(), nudges.clone(), drain.clone()));
        tasks.spawn(pass_on(received, Arc::clone(&runs)));
        let parts = ApiParts {
            store: store.clone(),
            resolver: Arc::clone(&resolver),
            token,
            models,
            nudges,
            patience: Patience::default(),
            drain: drain.clone(),
        };
        tasks.spawn(http::serve(listener, parts));
        Ok(Self { address, token_file, drain, tasks, runs, resolver, store, _state: state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the token is that speaks for the person.
    pub fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// Ends in order: no new request, event streams end, open requests have 10 s; then the runs stop where they are (the
    /// next start goes on with them), the executors end, the store closes.
    pub async fn stop(mut self) {
        self.drain.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.runs.shutdown().await;
        self.resolver.close().await;
        self.store.close().await;
    }
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Those of [`Harness::start`].
pub fn until_signal(config: LocalConfig) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
        let shown = describe(&config);
        let harness = Harness::start(config).await?;
        // Written only now: a URL that holds a password was refused.
        writeln!(std::io::stderr(), "{shown}").context("cannot write to standard error")?;
        let (address, token) = (harness.address(), harness.token_file().display());
        let mut out = std::io::stdout();
        writeln!(out, "mooring listens at http://{address}, token in {token}")
            .context("cannot write to standard output")?;
        out.flush().context("cannot write to standard output")?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("ending: no new request, open ones have 10 s");
        harness.stop().await;
        Ok(())
    })
}

/// Makes this process unreadable to others of the same user: its memory and environment, by `/proc` and ptrace(2)
/// (PR_SET_DUMPABLE of prctl(2)).
///
/// # Errors
/// When the system refuses.
pub fn hide_process() -> anyhow::Result<()> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .context("cannot hide this process from its neighbours")
}

/// Makes `ring` the crypto provider of this process. Safe to repeat.
pub fn install_crypto() {
    // Fails only if a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Tells a person why it ended, with all causes. Exit code 1.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // With standard error closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "mooring: {error:#}");
    ExitCode::FAILURE
}

/// The configuration for a reader, without the key.
fn describe(config: &LocalConfig) -> String {
    let (url, name, key) = match &config.model {
        None => ("none", "none", "none"),
        Some(model) => {
            let key = if model.provider_key.is_some() { "given" } else { "none" };
            (model.base_url.as_str(), model.name.as_str(), key)
        }
    };
    format!(
        "configuration: local={} state={} model={url} model-name={name} provider-key={key} read-only={:?} executor={}",
        config.tree.display(),
        config.state.display(),
        config.read_only,
        config.executor.display(),
    )
}

/// Passes on what the API asks of the loop, until the API ends.
async fn pass_on(mut nudges: mpsc::Receiver<Nudge>, runs: Arc<Runs>) {
    while let Some(nudge) = nudges.recv().await {
        match nudge {
            Nudge::Wake(session) => runs.wake(session),
            Nudge::Interrupt(session) => runs.interrupt(session),
            Nudge::Deleted(departed) => runs.end_left_behind(departed),
        }
    }
}

/// Refuses a state folder in the tree before it is made there. What holds the other one is refused by the resolver.
fn refuse_overlap(state: &Path, tree: &Path) -> Result<(), SettingsError> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let found = path.ancestors().find_map(|above| Some((above, std::fs::canonicalize(above).ok()?)));
        match found {
            Some((above, real)) => path.strip_prefix(above).map_or(real.clone(), |below| real.join(below)),
            None => path,
        }
    };
    let (state, root) = (absolute(state), absolute(tree));
    if state.starts_with(&root) { Err(SettingsError::Overlap { state, root }) } else { Ok(()) }
}

/// What no call of an agent may name.
fn protected(state: &Path, key_file: Option<&Path>, address: SocketAddr) -> Protected {
    let paths = [Some(state), key_file].into_iter().flatten();
    Protected {
        paths: paths.map(|path| path.to_string_lossy().into_owned()).collect(),
        open: Vec::new(),
        api: vec![ApiAddress { host: address.ip().to_string(), port: address.port() }],
        programs: Vec::new(),
    }
}

/// Expires questions in time, and wakes the sessions that wait for them.
async fn expire(store: Store, nudges: mpsc::Sender<Nudge>, drain: CancellationToken) {
    let mut period = tokio::time::interval(EXPIRY_PERIOD);
    loop {
        tokio::select! {
            () = drain.cancelled() => return,
            _ = period.tick() => {}
        }
        match store.expire_due_approvals().await {
            Ok(sessions) => {
                for session in sessions {
                    if nudges.send(Nudge::Wake(session)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot expire questions");
            }
        }
    }
}
