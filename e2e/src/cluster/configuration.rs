//! The configuration files of a run, from the templates in `e2e/cluster`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::network::Ranges;
use super::run::RunFolder;
use super::{PAUSE, source};

/// What a template may name.
pub(super) struct Values(Vec<(&'static str, String)>);

impl Values {
    pub(super) fn of(folder: &RunFolder, ranges: Ranges, bin: &Path) -> Self {
        Self(vec![
            ("RUN", folder.path().display().to_string()),
            ("BIN", bin.display().to_string()),
            ("CGROUP", folder.cgroup()),
            ("PAUSE", PAUSE.to_owned()),
            ("SNAPSHOTTER", snapshotter(folder).to_owned()),
            ("NODE", ranges.node().to_string()),
            ("PODS", ranges.pods()),
            ("DNS", ranges.dns_service().to_string()),
        ])
    }

    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.0.push((name, value));
        self
    }

    /// The template `name` of `e2e/cluster` with every `${NAME}` filled in.
    pub(super) fn fill(&self, name: &str) -> anyhow::Result<String> {
        let path = source(name);
        let template = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let fill =
            |text: String, (name, value): &(&str, String)| text.replace(&format!("${{{name}}}"), value);
        let filled = self.0.iter().fold(template, fill);
        if let Some((_, rest)) = filled.split_once("${") {
            bail!(
                "{} names an unknown value: ${{{}",
                path.display(),
                rest.lines().next().unwrap_or_default()
            );
        }
        Ok(filled)
    }
}

/// Writes the files that programs are started with.
pub(super) fn write(folder: &RunFolder, values: &Values) -> anyhow::Result<()> {
    let files = [
        ("configuration/containerd.toml", values.fill("containerd.toml")?),
        ("configuration/kubelet.yaml", values.fill("kubelet.yaml")?),
        ("configuration/network/10-pods.conflist", values.fill("network.json")?),
        // Pods with `dnsPolicy: Default` get this; nothing outside the cluster is ever looked up.
        ("configuration/resolv.conf", "nameserver 127.0.0.1\n".to_owned()),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    // Made by nobody else, and named in the configuration.
    for name in ["containerd", "kubelet/plugins", "log/pods", "network/addresses", "volumes"] {
        let path: PathBuf = folder.join(name);
        std::fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
    }
    Ok(())
}

/// An overlay cannot lie on an overlay, as a container's own root often is one.
fn snapshotter(folder: &RunFolder) -> &'static str {
    if is_overlay(folder.path()) { "native" } else { "overlayfs" }
}

/// Whether a folder lies on an overlay file system.
pub(super) fn is_overlay(folder: &Path) -> bool {
    /// `OVERLAYFS_SUPER_MAGIC`, linux/magic.h.
    const OVERLAY: i64 = 0x794c_7630;

    rustix::fs::statfs(folder).is_ok_and(|found| found.f_type == OVERLAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_with_an_unknown_name_is_refused() {
        let values = Values(vec![("NODE", "198.18.3.2".to_owned())]);
        assert!(values.fill("kubelet.yaml").is_err());
    }
}
