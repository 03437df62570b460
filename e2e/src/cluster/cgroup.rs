//! The control group of a run, in every hierarchy of the machine: all its pods are below it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::process::Signal;

use super::process::send;
use super::run::RunFolder;

/// Makes the group, so that the kubelet finds its root.
pub(super) fn make(folder: &RunFolder) -> anyhow::Result<()> {
    for hierarchy in hierarchies()? {
        if hierarchy.is_second_version {
            enable_controllers(&hierarchy.path);
        }
        let group = hierarchy.path.join(folder.cgroup());
        std::fs::create_dir_all(&group).with_context(|| format!("make {}", group.display()))?;
    }
    Ok(())
}

/// The processes below the group.
pub(super) fn processes(folder: &RunFolder) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for group in groups(folder)? {
        // A group may end while we look.
        let listed = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        found.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Kills every process below the group, also what is frozen.
pub(super) fn kill(folder: &RunFolder) -> anyhow::Result<()> {
    for group in groups(folder)? {
        // Of the first and of the second version; a missing file is the other's. What is frozen cannot die.
        for (file, thawed) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
            let path = group.join(file);
            if path.exists() {
                let _ = std::fs::write(path, thawed);
            }
        }
    }
    processes(folder)?.into_iter().try_for_each(|pid| send(pid, Signal::KILL))
}

/// Removes the group and everything below it. No process is in it any more.
pub(super) fn remove(folder: &RunFolder) -> anyhow::Result<()> {
    let mut groups = groups(folder)?;
    // The deepest first.
    groups.reverse();
    for group in groups {
        match std::fs::remove_dir(&group) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(cause).with_context(|| format!("remove {}", group.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

struct Hierarchy {
    path: PathBuf,
    is_second_version: bool,
}

fn hierarchies() -> anyhow::Result<Vec<Hierarchy>> {
    let mounts = std::fs::read_to_string("/proc/mounts").context("read /proc/mounts")?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let path = PathBuf::from(fields.next()?);
        let kind = fields.next()?;
        matches!(kind, "cgroup" | "cgroup2").then(|| Hierarchy { path, is_second_version: kind == "cgroup2" })
    });
    Ok(mounts.collect())
}

/// Each of its own, since one that cannot be enabled (a hierarchy of the first version has it) refuses all.
fn enable_controllers(root: &Path) {
    let controllers = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    for controller in controllers.split_whitespace() {
        // The kubelet names what it misses.
        let _ = std::fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// The group in every hierarchy with all groups below, each before what is in it.
fn groups(folder: &RunFolder) -> anyhow::Result<Vec<PathBuf>> {
    let mut open: Vec<PathBuf> =
        hierarchies()?.into_iter().map(|hierarchy| hierarchy.path.join(folder.cgroup())).collect();
    open.retain(|group| group.is_dir());
    let mut found = Vec::new();
    while let Some(group) = open.pop() {
        let entries = std::fs::read_dir(&group).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
        found.push(group);
    }
    Ok(found)
}
