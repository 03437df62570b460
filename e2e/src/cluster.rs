//! A real Kubernetes of one node on this machine, built from source and run as plain processes: `mooring-cluster`.
//!
//! ```text
//!  bin/mooring-cluster ─▶ build ─▶ programs            Go modules of e2e/cluster/go ─▶ the cache folder
//!                       ├▶ up ───▶ network, certificate, configuration, arguments ─▶ process ─▶ readiness
//!                       │          └▶ image ─▶ containerd      └▶ manifests: roles, DNS, storage class
//!                       ├▶ volumes                     the provisioner of the default storage class, as a component
//!                       └▶ down ─▶ teardown            processes, mounts, network, control groups of this run alone
//!  tests ─▶ Cluster                                    stop, kill and start a component; find a container's process
//! ```
//!
//! A *run* is one such cluster. All of it lies in its run folder, a network namespace and a control group; names outside the
//! folder are derived from its path, so it can be taken down in whatever state it is, and two runs do not meet.
//!
//! Errors here end a test or a program with a sentence; nobody branches on them, so they are `anyhow`.

mod arguments;
mod certificate;
mod cgroup;
mod command;
mod component;
mod configuration;
mod container;
mod image;
mod network;
mod process;
mod programs;
mod readiness;
mod run;
mod startup;
mod teardown;
mod volumes;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

pub use component::Component;
pub use image::{BUSYBOX, PAUSE, build_images};
use network::Ranges;
pub use process::State;
pub use programs::build;
use run::RunFolder;
pub use startup::up;
pub use volumes::provision;

/// The variable in which tests find the run folder.
pub const RUN_VARIABLE: &str = "MOORING_CLUSTER";
/// The name of the only node.
pub const NODE: &str = "node1";
/// The kubeconfig of a user who may do everything.
const ADMIN: &str = "admin";
/// What a run keeps about itself.
const RECORD: &str = "run.json";

/// What is decided once for a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    ranges: Ranges,
    bin: PathBuf,
}

/// A run that was started, as tests and the command line see it.
#[derive(Clone, Debug)]
pub struct Cluster {
    folder: RunFolder,
    record: Record,
}

impl Cluster {
    /// The run in the folder `run`, which `mooring-cluster up` made.
    ///
    /// # Errors
    /// When the folder is not there or was never a run's.
    pub fn open(run: &Path) -> anyhow::Result<Self> {
        let folder = RunFolder::open(run)?;
        let record = folder.read(RECORD)?;
        let record =
            record.with_context(|| format!("{} is not up: `mooring-cluster up`", folder.path().display()))?;
        Ok(Self { folder, record })
    }

    /// The run that `MOORING_CLUSTER` names.
    ///
    /// # Errors
    /// When the variable is not set, with what to do; otherwise as [`Cluster::open`].
    pub fn from_environment() -> anyhow::Result<Self> {
        let Some(run) = std::env::var_os(RUN_VARIABLE) else {
            bail!("needs a cluster: ./taskw test or ./taskw cluster:up ({RUN_VARIABLE} names no run folder)");
        };
        Self::open(Path::new(&run))
    }

    /// The run folder, by its canonical path.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The kubeconfig of a user who may do everything.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig(ADMIN)
    }

    /// A client of the API server with all rights.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        client(&self.kubeconfig()).await
    }

    /// The folder of the programs: `kubectl`, `helm`, `ctr` and the components.
    pub fn programs(&self) -> &Path {
        &self.record.bin
    }

    /// This machine as pods see it: where a test can listen for them.
    pub fn host_address(&self) -> Ipv4Addr {
        self.record.ranges.host()
    }

    /// The node as this machine sees it.
    pub fn node_address(&self) -> Ipv4Addr {
        self.record.ranges.node()
    }

    /// What a component writes.
    pub fn log(&self, component: Component) -> PathBuf {
        self.folder.log(component)
    }

    /// Full reference of the image that the run knows by a short name: `environment`, `harness`, `operator`, `busybox`.
    ///
    /// # Errors
    /// When there is none, with the names there are.
    pub fn image(&self, name: &str) -> anyhow::Result<String> {
        let images = image::images(&self.folder)?;
        let known = || images.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        images
            .get(name)
            .cloned()
            .with_context(|| format!("no image {name} in this run, which has {}", known()))
    }

    /// The images of the run: short name to full reference.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn images(&self) -> anyhow::Result<BTreeMap<String, String>> {
        image::images(&self.folder)
    }

    /// Loads every image of an archive and says their references.
    ///
    /// # Errors
    /// When it is no image archive or containerd refuses it.
    pub async fn load(&self, archive: &Path) -> anyhow::Result<Vec<String>> {
        image::load(&self.folder, &self.record, archive).await
    }

    /// Loads the images of our programs, `operator`, `harness` and `environment`, and builds those in which something has changed.
    ///
    /// # Errors
    /// As [`build_images`], and when containerd fails.
    pub async fn load_built(&self) -> anyhow::Result<()> {
        image::load_built(&self.folder, &self.record).await
    }

    /// What is known about a component.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn state(&self, component: Component) -> anyhow::Result<State> {
        process::state(&self.folder, component)
    }

    /// Ends a component by SIGTERM, and by SIGKILL when it does not go, and waits for its end. Pods outlive the kubelet and
    /// containerd. One that does not run is left as it is.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn stop(&self, component: Component) -> anyhow::Result<()> {
        process::stop(&self.folder, component, Signal::TERM).await
    }

    /// Ends a component by SIGKILL, as a crash would, and waits for its end.
    ///
    /// # Errors
    /// As [`Cluster::stop`].
    pub async fn kill(&self, component: Component) -> anyhow::Result<()> {
        process::stop(&self.folder, component, Signal::KILL).await
    }

    /// Starts a component as it was started first, and waits until it does its work.
    ///
    /// # Errors
    /// When it runs already, ends at once or is not ready in three minutes; with the end of its log.
    pub async fn start(&self, component: Component) -> anyhow::Result<()> {
        process::start(&self.folder, component)?;
        readiness::await_ready(&self.folder, &self.record, component).await
    }

    /// The process id, on this machine, of the first process of a running container.
    ///
    /// # Errors
    /// When no such container runs.
    pub async fn container_pid(&self, pod_uid: &str, container: &str) -> anyhow::Result<u32> {
        container::pid(&self.folder, &self.record, pod_uid, container).await
    }
}

/// Takes the run in the folder `run` down, whatever state it is in. Its logs stay in the folder.
///
/// # Errors
/// When something of the run cannot be ended or removed, with what is left.
pub async fn down(run: &Path) -> anyhow::Result<()> {
    startup::check_root()?;
    let folder = RunFolder::open(run)?;
    teardown::take_down(&folder).await?;
    let remains = teardown::remains(&folder)?;
    if !remains.is_empty() {
        bail!("of the run {} is left: {}", folder.path().display(), remains.join(", "));
    }
    Ok(())
}

/// A client with all rights of the cluster at hand: the run that `MOORING_CLUSTER` names, or else whatever `KUBECONFIG` leads to,
/// for tests that stop no component and need no image but those that are there.
///
/// # Errors
/// When neither is set, with what to do.
pub async fn connect() -> anyhow::Result<kube::Client> {
    match std::env::var_os("KUBECONFIG") {
        Some(kubeconfig) if std::env::var_os(RUN_VARIABLE).is_none() => client(Path::new(&kubeconfig)).await,
        Some(_) | None => Cluster::from_environment()?.client().await,
    }
}

/// A client of the API server as the user of a kubeconfig.
async fn client(kubeconfig: &Path) -> anyhow::Result<kube::Client> {
    crate::install_crypto();
    let read = Kubeconfig::read_from(kubeconfig);
    let read = read.with_context(|| format!("read {}", kubeconfig.display()))?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.context("the kubeconfig")?).context("a client of the API server")
}

/// A file of `e2e/cluster`.
fn source(name: &str) -> PathBuf {
    repository().join("e2e/cluster").join(name)
}

/// The root of the repository this program was built in.
fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this room stands in the repository")
}

/// Where what is built for tests, programs and images for instance, is kept for all runs: `$XDG_CACHE_HOME/mooring/cluster`.
///
/// # Errors
/// When neither that variable nor `HOME` is set.
pub fn cache() -> anyhow::Result<PathBuf> {
    base_folder("XDG_CACHE_HOME", ".cache")
}

/// Where a run lies when no folder is given: `$XDG_STATE_HOME/mooring/cluster/default`.
///
/// # Errors
/// When neither that variable nor `HOME` is set.
pub fn default_run() -> anyhow::Result<PathBuf> {
    Ok(base_folder("XDG_STATE_HOME", ".local/state")?.join("default"))
}

/// XDG Base Directory Specification: a relative path in the variable counts as none.
fn base_folder(variable: &str, below_home: &str) -> anyhow::Result<PathBuf> {
    let given = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match given {
        Some(base) => base,
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(below_home),
    };
    Ok(base.join("mooring/cluster"))
}

/// Tells progress on standard error.
fn say(words: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "cluster: {words}").context("standard error")
}
