//! Building Kubernetes and what it stands on from their Go modules in `e2e/cluster/go`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use tokio::process::Command;

use super::command::follow;
use super::{cache, say, source};
use crate::digest;
use crate::fixture::await_condition;

/// One module, cold, on two busy cores.
const BUILD_DEADLINE: Duration = Duration::from_mins(30);
/// While another process builds everything.
const LOCK_DEADLINE: Duration = Duration::from_hours(1);
const KUBERNETES_VERSION: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";
const PLAIN: &str = "-s -w";

/// A module of `e2e/cluster/go` and how its programs are built. The programs are the module's tools.
struct Module {
    name: &'static str,
    linker_flags: &'static str,
    tags: &'static str,
    /// The program's name, where the tool's folder has another one.
    rename: Option<(&'static str, &'static str)>,
}

impl Module {
    const fn plain(name: &'static str) -> Self {
        Self { name, linker_flags: PLAIN, tags: "", rename: None }
    }

    fn arguments(&self, folder: &Path) -> Vec<String> {
        let (target, package) = match self.rename {
            Some((program, package)) => (folder.join(program).display().to_string(), package),
            None => (format!("{}/", folder.display()), "tool"),
        };
        ["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", self.linker_flags, "-tags"]
            .map(String::from)
            .into_iter()
            .chain([self.tags.to_owned(), "-o".to_owned(), target, package.to_owned()])
            .collect()
    }
}

const MODULES: &[Module] = &[
    Module { rename: Some(("etcd", "go.etcd.io/etcd/server/v3")), ..Module::plain("etcd") },
    // The snapshotters left out want C libraries or devices; overlayfs is used.
    Module { tags: "no_btrfs no_devmapper no_zfs", ..Module::plain("containerd") },
    Module::plain("cni"),
    Module { linker_flags: KUBERNETES_VERSION, ..Module::plain("kubernetes") },
    Module::plain("kube-router"),
    Module::plain("coredns"),
    Module::plain("helm"),
];

/// Builds every program that is not built yet and gives their folder.
///
/// The folder is named after a digest of the module files and flags, so it never holds anything else. One build runs at a
/// time, also when several processes ask.
///
/// # Errors
/// When Go is missing, a module cannot be fetched or a build fails; what Go says is on standard error.
pub async fn build() -> anyhow::Result<PathBuf> {
    let folder = cache()?.join(inputs_digest()?);
    let bin = folder.join("bin");
    if bin.is_dir() {
        return Ok(bin);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let lock = std::fs::File::create(folder.join("lock")).context("the lock of the build")?;
    let taken = async || flock(&lock, FlockOperation::NonBlockingLockExclusive).ok();
    await_condition(LOCK_DEADLINE, "another process builds the cluster's programs", taken).await?;
    if bin.is_dir() {
        return Ok(bin);
    }
    let unfinished = folder.join("unfinished");
    std::fs::create_dir_all(&unfinished)?;
    for module in MODULES {
        let start = Instant::now();
        say(&format!("building {} (minutes, the first time)", module.name))?;
        let mut command = Command::new("go");
        command.args(module.arguments(&unfinished)).current_dir(source(&format!("go/{}", module.name)));
        // A workspace or flags of the person at the machine would make other programs under the same digest.
        command.envs([
            ("CGO_ENABLED", "0"),
            ("GOFLAGS", ""),
            ("GOWORK", "off"),
            ("GOOS", ""),
            ("GOARCH", ""),
        ]);
        follow(&mut command, BUILD_DEADLINE).await.with_context(|| format!("build {}", module.name))?;
        say(&format!("built {} in {:.0} s", module.name, start.elapsed().as_secs_f64()))?;
    }
    std::fs::rename(&unfinished, &bin).with_context(|| format!("move to {}", bin.display()))?;
    Ok(bin)
}

/// Of everything that decides what the programs are.
fn inputs_digest() -> anyhow::Result<String> {
    let mut inputs = Vec::new();
    for module in MODULES {
        for file in ["go.mod", "go.sum"] {
            let path = source(&format!("go/{}/{file}", module.name));
            let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            inputs.extend(bytes.len().to_le_bytes());
            inputs.extend(bytes);
        }
        inputs.extend(module.arguments(Path::new("bin")).join("\0").into_bytes());
    }
    Ok(digest::short(&inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_content_and_stays() {
        assert_eq!(inputs_digest().expect("digest"), inputs_digest().expect("digest"));
    }

    #[test]
    fn every_module_folder_is_built() {
        let mut there: Vec<String> = std::fs::read_dir(source("go"))
            .expect("modules")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        there.sort();
        let mut built: Vec<&str> = MODULES.iter().map(|module| module.name).collect();
        built.sort_unstable();
        assert_eq!(there, built);
    }
}
