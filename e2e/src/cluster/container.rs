//! Containers of a run as the node sees them.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

use super::Record;
use super::command::output;
use super::run::RunFolder;

/// Where the kubelet keeps its containers (containerd's CRI plugin, `k8sContainerdNamespace`).
const NAMESPACE: &str = "k8s.io";

/// What `ctr` of this run prints.
pub(super) async fn ctr(folder: &RunFolder, record: &Record, arguments: &[&str]) -> anyhow::Result<String> {
    let socket = folder.containerd_socket().display().to_string();
    let all = ["--address", &socket, "--namespace", NAMESPACE].into_iter().chain(arguments.iter().copied());
    output(record.bin.join("ctr"), all).await
}

/// The id, on this machine, of the first process of a running container.
pub(super) async fn pid(
    folder: &RunFolder,
    record: &Record,
    pod_uid: &str,
    container: &str,
) -> anyhow::Result<u32> {
    let filter = format!(
        r#"labels."io.kubernetes.pod.uid"=={pod_uid},labels."io.kubernetes.container.name"=={container}"#
    );
    let ids = ctr(folder, record, &["containers", "list", "--quiet", &filter]).await?;
    let tasks = ctr(folder, record, &["tasks", "list"]).await?;
    let running = running(&tasks);
    let mut pids = ids.lines().filter_map(|id| running.get(id.trim()).copied());
    let first = pids.next().with_context(|| format!("no running container {container} in pod {pod_uid}"))?;
    if pids.next().is_some() {
        bail!("several running containers {container} in pod {pod_uid}");
    }
    Ok(first)
}

/// Container id to process id, from a table `TASK PID STATUS`.
fn running(table: &str) -> BTreeMap<&str, u32> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (id, pid, status) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?);
        (status == "RUNNING").then_some((id, pid))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_containers_have_a_process() {
        let table = "TASK    PID    STATUS\nab12    4711    RUNNING\ncd34    0    STOPPED\n";
        assert_eq!(running(table), BTreeMap::from([("ab12", 4711)]));
    }
}
