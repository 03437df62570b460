//! buildah, with a store of its own in the cache folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;

use crate::cluster::command::finish;

/// One step: packages over a slow line, or a tree of some hundred megabytes.
pub(super) const STEP_DEADLINE: Duration = Duration::from_mins(15);

/// Builds images without a daemon.
pub(super) struct Builder {
    store: PathBuf,
    driver: &'static str,
}

impl Builder {
    /// With its store below `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        let driver = if crate::cluster::configuration::is_overlay(folder) { "vfs" } else { "overlay" };
        Self { store: folder.join("store"), driver }
    }

    /// Whether the store has an image.
    pub(super) async fn has(&self, reference: &str) -> anyhow::Result<bool> {
        Ok(self.names().await?.iter().any(|name| name == reference))
    }

    /// Takes every other name of the same image away than `reference`, and the layers that only they held.
    ///
    /// After the new one is built, not before: unnamed layers that both stand on go with the last image above them.
    pub(super) async fn forget_others(&self, reference: &str) -> anyhow::Result<()> {
        let (repository, _) = reference.rsplit_once(':').context("a reference has a tag")?;
        for name in self.names().await? {
            let is_other =
                name.strip_prefix(repository).is_some_and(|rest| rest.starts_with(':')) && name != reference;
            if is_other {
                self.run(["rmi", &name]).await?;
            }
        }
        Ok(())
    }

    /// Makes an image of one folder or archive, which lies at `target` in it.
    pub(super) async fn wrap(&self, content: &Path, target: &str, reference: &str) -> anyhow::Result<()> {
        let container = self.run(["from", "scratch"]).await?;
        let container = container.trim();
        let made = async {
            let content = content.display().to_string();
            self.run(["add", "--quiet", container, &content, target]).await?;
            self.run(["commit", "--quiet", container, reference]).await
        };
        let made = made.await.map(drop);
        self.run(["rm", container]).await?;
        made
    }

    /// Builds an image from a file of instructions.
    pub(super) async fn build(
        &self,
        dockerfile: &Path,
        context: &Path,
        arguments: &[(&str, String)],
        reference: &str,
    ) -> anyhow::Result<()> {
        let mut command = self.command();
        command.args(["build", "--quiet", "--layers", "--pull-never", "--isolation", "chroot"]);
        for (name, value) in arguments {
            command.arg("--build-arg").arg(format!("{name}={value}"));
        }
        command.args(["--tag", reference, "--file"]).arg(dockerfile).arg(context);
        finish(&mut command, STEP_DEADLINE).await.map(drop)
    }

    /// Writes an image as an archive, whole or not at all.
    pub(super) async fn save(&self, reference: &str, archive: &Path) -> anyhow::Result<()> {
        let unfinished = archive.with_extension("unfinished");
        if unfinished.exists() {
            std::fs::remove_file(&unfinished).context("remove an unfinished archive")?;
        }
        let target = format!("docker-archive:{}:{reference}", unfinished.display());
        self.run(["push", "--quiet", reference, &target]).await?;
        std::fs::rename(&unfinished, archive).with_context(|| format!("keep {}", archive.display()))
    }

    async fn names(&self) -> anyhow::Result<Vec<String>> {
        let told = self.run(["images", "--format", "{{.Name}}:{{.Tag}}"]).await?;
        Ok(told.lines().map(String::from).collect())
    }

    async fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> anyhow::Result<String> {
        let mut command = self.command();
        command.args(arguments);
        finish(&mut command, STEP_DEADLINE).await
    }

    fn command(&self) -> Command {
        let mut command = Command::new("buildah");
        command.arg("--root").arg(&self.store).args(["--storage-driver", self.driver]);
        command
    }
}
