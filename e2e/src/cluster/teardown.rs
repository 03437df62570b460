//! Ending a run, whatever state it is in, and nothing that is not of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use super::command::run;
use super::process::{send, stop};
use super::run::{MARK, RunFolder};
use super::{Component, cgroup, network};
use crate::fixture::{await_condition, with_marker};

/// From SIGKILL to the end of the last process, on a busy machine.
const KILL_DEADLINE: Duration = Duration::from_mins(1);
/// From the end of the last process to the release of the last mount and group.
const RELEASE_DEADLINE: Duration = Duration::from_secs(30);
/// Where containerd's shims put their sockets, whatever the state folder is.
const SHIM_SOCKETS: &str = "/run/containerd/s";
/// Where containerd keeps a folder for each running container, below the run folder.
const BUNDLES: &str = "containerd/state/io.containerd.runtime.v2.task/k8s.io";
/// Where libcni keeps what it answered, whatever the run folder is (containernetworking/cni, `CacheDir`).
const NETWORK_RESULTS: &str = "/var/lib/cni/results";
/// Where the kubelet links the logs of containers, whatever its root is.
const LOG_LINKS: &str = "/var/log/containers";

/// Ends every process of the run and removes what it made on this machine. Of the folder, `log` stays.
pub(super) async fn take_down(folder: &RunFolder) -> anyhow::Result<()> {
    // First what would start something again; nothing of a run is worth an orderly end.
    for component in [Component::Kubelet, Component::Containerd] {
        stop(folder, component, Signal::KILL).await?;
    }
    kill(folder).await?;
    let left_by_containers = left_by_containers(folder);
    unmount(folder).await?;
    network::remove(folder).await?;
    let removed = async || cgroup::remove(folder).ok();
    await_condition(RELEASE_DEADLINE, "the control groups of the run are empty", removed).await?;
    remove_links(folder)?;
    for path in left_by_containers {
        remove_file(&path)?;
    }
    remove_contents(folder)
}

/// What of the run exists on this machine, in words; nothing after [`take_down`].
pub(super) fn remains(folder: &RunFolder) -> anyhow::Result<Vec<String>> {
    let mut found: Vec<String> = processes(folder)?.iter().map(|pid| format!("process {pid}")).collect();
    found.extend(mounts(folder)?.iter().map(|mount| format!("mount {}", mount.display())));
    if Path::new("/run/netns").join(folder.network()).exists() {
        found.push(format!("network namespace {}", folder.network()));
    }
    if Path::new("/sys/class/net").join(folder.link()).exists() {
        found.push(format!("link {}", folder.link()));
    }
    Ok(found)
}

/// By the variable they carry, since a record may be missing, and by their group, since containers carry no variable of ours.
fn processes(folder: &RunFolder) -> anyhow::Result<Vec<u32>> {
    let mut found = cgroup::processes(folder)?;
    found.extend(with_marker(&folder.marker()).into_iter().map(|seen| seen.pid));
    found.retain(|pid| *pid != std::process::id());
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

async fn kill(folder: &RunFolder) -> anyhow::Result<()> {
    let gone = async || {
        // Again each time: one that was just being started is seen the next time.
        let _ = cgroup::kill(folder);
        let left = processes(folder).ok()?;
        for pid in &left {
            let _ = send(*pid, Signal::KILL);
        }
        left.is_empty().then_some(())
    };
    let awaited = await_condition(KILL_DEADLINE, "every process of the run ends", gone).await;
    awaited.with_context(|| format!("left: {:?}", processes(folder).unwrap_or_default()))
}

async fn unmount(folder: &RunFolder) -> anyhow::Result<()> {
    // A mount may be busy for the moment in which a killed process is still being cleaned up.
    let released = async || {
        let mut left = mounts(folder).ok()?;
        left.reverse();
        for mount in left {
            let _ = run("umount", [&mount]).await;
        }
        mounts(folder).ok()?.is_empty().then_some(())
    };
    let awaited = await_condition(RELEASE_DEADLINE, "every mount of the run is released", released).await;
    awaited.with_context(|| format!("left: {:?}", mounts(folder).unwrap_or_default()))
}

/// Mount points below the run folder, in the order of their mounting.
fn mounts(folder: &RunFolder) -> anyhow::Result<Vec<PathBuf>> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").context("read /proc/self/mounts")?;
    let below = |path: &PathBuf| path.starts_with(folder.path()) && path != folder.path();
    let paths =
        mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(|path| PathBuf::from(unescape(path)));
    Ok(paths.filter(below).collect())
}

/// Blank, tab, line end and backslash stand as three octal digits (proc(5), `mounts`; getmntent(3)).
fn unescape(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(path.to_owned(), |text, (escape, meant)| text.replace(escape, meant))
}

/// Files outside the run folder that containers of the run leave when they are killed: the sockets of their shims, as each bundle
/// tells, and what the network plugins remember of them.
fn left_by_containers(folder: &RunFolder) -> Vec<PathBuf> {
    let bundles = std::fs::read_dir(folder.join(BUNDLES)).into_iter().flatten().flatten();
    let bundles: Vec<PathBuf> = bundles.map(|entry| entry.path()).collect();
    let socket = |bundle: &PathBuf| {
        let bootstrap = std::fs::read(bundle.join("bootstrap.json")).ok()?;
        let bootstrap: serde_json::Value = serde_json::from_slice(&bootstrap).ok()?;
        let address = bootstrap["address"].as_str()?.strip_prefix("unix://")?.to_owned();
        Path::new(&address).starts_with(SHIM_SOCKETS).then(|| PathBuf::from(address))
    };
    let sockets: Vec<PathBuf> = bundles.iter().filter_map(socket).collect();
    let ids: Vec<&str> = bundles.iter().filter_map(|bundle| bundle.file_name()?.to_str()).collect();
    let results = std::fs::read_dir(NETWORK_RESULTS).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        ids.iter().any(|id| name.contains(id))
    };
    results.map(|entry| entry.path()).filter(is_ours).chain(sockets).collect()
}

fn remove_links(folder: &RunFolder) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(LOG_LINKS).into_iter().flatten().flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(folder.path())) {
            remove_file(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_contents(folder: &RunFolder) -> anyhow::Result<()> {
    let left = mounts(folder)?;
    if !left.is_empty() {
        bail!("{left:?} would be emptied with the folder");
    }
    for entry in std::fs::read_dir(folder.path()).context("read the run folder")? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name() == "log" || entry.file_name() == MARK {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.with_context(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

fn remove_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cause).with_context(|| format!("remove {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
