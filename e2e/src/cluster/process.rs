//! The processes of a run: how each was started, whether it still runs, and ending it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::Component;
use super::run::RunFolder;
use crate::fixture::await_condition;

/// From SIGTERM to SIGKILL. The API server drains for some seconds.
const TERM_GRACE: Duration = Duration::from_secs(20);
/// From SIGKILL to the end, on a busy machine.
const KILL_DEADLINE: Duration = Duration::from_secs(20);

/// How a component is started, as kept in the run folder: program, arguments and every variable it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) path: String,
}

/// One process exactly: ids are used again, the time of a start is not (proc(5), field 22 of `stat`, in clock ticks since boot).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Started {
    pid: u32,
    ticks: u64,
}

/// What is known about a component's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was never started, or was stopped.
    Stopped,
    /// It runs.
    Running {
        /// Its process id.
        pid: u32,
    },
    /// It was started and nobody stopped it, but it is gone.
    Dead,
}

fn record(component: Component) -> String {
    format!("process/{component}.json")
}

fn launch(component: Component) -> String {
    format!("launch/{component}.json")
}

/// Keeps how a component is started.
pub(super) fn remember(folder: &RunFolder, component: Component, launch: &Launch) -> anyhow::Result<()> {
    folder.write(&self::launch(component), launch)
}

/// Starts a component in the node's network, as it was remembered. Its output is appended to its log.
pub(super) fn start(folder: &RunFolder, component: Component) -> anyhow::Result<()> {
    if let State::Running { pid } = state(folder, component)? {
        bail!("{component} runs already, as process {pid}");
    }
    let launch: Launch = folder
        .read(&launch(component))?
        .with_context(|| format!("{component} was never part of the run {}", folder.path().display()))?;
    let path = folder.log(component);
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let log = log.with_context(|| format!("open {}", path.display()))?;
    let (marker, value) = (super::run::MARKER, folder.id());
    // Entering the namespace replaces the process by the program, so its id is the component's.
    let child = Command::new("nsenter")
        .arg(format!("--net=/run/netns/{}", folder.network()))
        .arg("--")
        .arg(&launch.program)
        .args(&launch.arguments)
        .env_clear()
        .envs([("PATH", launch.path.as_str()), (marker, value), ("LANG", "C.UTF-8")])
        .env("HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("the log, twice")?)
        .stderr(log)
        // So that an interrupt at the terminal does not reach it.
        .process_group(0)
        .spawn()
        .with_context(|| format!("start {component}"))?;
    let pid = child.id().with_context(|| format!("{component} ended at once: {}", path.display()))?;
    let started = Started { pid, ticks: ticks(pid).unwrap_or_default() };
    folder.write(&record(component), &started)
}

/// What is known about a component.
pub(super) fn state(folder: &RunFolder, component: Component) -> anyhow::Result<State> {
    let Some(started) = folder.read::<Started>(&record(component))? else { return Ok(State::Stopped) };
    let lives = ticks(started.pid) == Some(started.ticks);
    Ok(if lives { State::Running { pid: started.pid } } else { State::Dead })
}

/// Ends a component with `signal` and waits for its end; after SIGTERM and [`TERM_GRACE`] it is killed. One that does not run is
/// left as it is.
pub(super) async fn stop(folder: &RunFolder, component: Component, signal: Signal) -> anyhow::Result<()> {
    if let State::Running { pid } = state(folder, component)? {
        let gone =
            async || matches!(state(folder, component), Ok(State::Dead | State::Stopped)).then_some(());
        send(pid, signal)?;
        let what = format!("{component} (process {pid}) ends after {signal:?}");
        if signal != Signal::KILL && await_condition(TERM_GRACE, &what, gone).await.is_err() {
            send(pid, Signal::KILL)?;
        }
        await_condition(KILL_DEADLINE, &what, gone).await?;
    }
    let path = folder.join(record(component));
    if path.exists() {
        std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

/// Sends a signal; a process that is gone is no error.
pub(super) fn send(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let id =
        i32::try_from(pid).ok().and_then(Pid::from_raw).with_context(|| format!("no process id: {pid}"))?;
    match kill_process(id, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(cause) => Err(cause).with_context(|| format!("signal process {pid}")),
    }
}

/// When a process started; none when it is gone or only waits to be collected by its parent. While any of its threads still
/// ends, it is there: its ports and files are open until then.
fn ticks(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The first field after the name is field 3, the state.
    let is_ended = matches!(*fields.first()?, "Z" | "X");
    if is_ended && std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) <= 1 {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_process_with_the_same_id_is_not_taken_for_ours() {
        let folder = tempfile::tempdir().expect("folder");
        let folder = RunFolder::make(folder.path()).expect("run");
        let own = Started { pid: std::process::id(), ticks: ticks(std::process::id()).expect("we run") };
        folder.write(&record(Component::Etcd), &own).expect("write");
        assert_eq!(state(&folder, Component::Etcd).expect("state"), State::Running { pid: own.pid });
        folder.write(&record(Component::Etcd), &Started { ticks: own.ticks + 1, ..own }).expect("write");
        assert_eq!(state(&folder, Component::Etcd).expect("state"), State::Dead);
        assert_eq!(state(&folder, Component::Kubelet).expect("state"), State::Stopped);
    }
}
