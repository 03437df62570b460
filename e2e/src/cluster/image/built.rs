//! The images of our programs, built from `deploy/images` by buildah on a base of Debian's own packages.
//!
//! Tags are digests of everything that goes into an image, so a stale one is never used and an unchanged one not built again.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use tokio::process::Command;

use super::Image;
use super::builder::{Builder, STEP_DEADLINE};
use crate::cluster::command::{finish, output};
use crate::cluster::{cache, repository, say};
use crate::digest;
use crate::fixture::{await_condition, binary};

/// The Debian release of the base.
const DEBIAN: &str = "bookworm";
/// What the base holds beyond the smallest system.
const BASE_PACKAGES: &str = "ca-certificates";
/// What a container has no use for, as in Debian's own small images; licences stay.
const LEFT_OUT: &[&str] = &[
    "path-exclude=/usr/share/doc/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/lintian/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/man/*",
    "path-include=/usr/share/doc/*/copyright",
];
/// While another process builds images.
const LOCK_DEADLINE: std::time::Duration = std::time::Duration::from_mins(30);
/// Archives of one image that are kept, so that going back and forth between two states builds nothing.
const KEPT: usize = 3;

/// An image of ours.
struct Recipe {
    /// The run's name for it; the file is `deploy/images/NAME.Dockerfile`.
    name: &'static str,
    /// The program it is for, from the build this program belongs to.
    program: &'static str,
    /// Whether it takes the Go release of this machine, as the stage `go`.
    has_go: bool,
}

const RECIPES: &[Recipe] = &[
    Recipe { name: "operator", program: "mooring-operator", has_go: false },
    Recipe { name: "harness", program: "mooring", has_go: false },
    Recipe { name: "environment", program: "mooring-executor", has_go: true },
];

/// The archives of our images, built where something in them has changed.
pub(super) async fn make() -> anyhow::Result<Vec<Image>> {
    let folder = cache()?.join("images");
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let lock = std::fs::File::create(folder.join("lock")).context("the lock of the images")?;
    let taken = async || flock(&lock, FlockOperation::NonBlockingLockExclusive).ok();
    await_condition(LOCK_DEADLINE, "another process builds images", taken).await?;
    let go = Go::of_this_machine().await?;
    let mut images = Vec::new();
    for recipe in RECIPES {
        images.push(recipe.make(&folder, &go).await.with_context(|| format!("image {}", recipe.name))?);
    }
    Ok(images)
}

impl Recipe {
    async fn make(&self, folder: &Path, go: &Go) -> anyhow::Result<Image> {
        let dockerfile = repository().join(format!("deploy/images/{}.Dockerfile", self.name));
        let program = binary(self.program)?;
        let inputs = [
            std::fs::read_to_string(&dockerfile).with_context(|| format!("read {}", dockerfile.display()))?,
            digest::short_of_file(&program)?,
            base_tag(),
            if self.has_go { go.version.clone() } else { String::new() },
        ];
        let tag = digest::short(inputs.join("\0").as_bytes());
        let reference = format!("mooring.test/{}:{tag}", self.name);
        let archive = folder.join(format!("{}-{tag}.tar", self.name));
        if !archive.is_file() {
            say(&format!("building the image {reference}"))?;
            self.build(folder, go, &dockerfile, &program, &reference, &archive).await?;
        }
        // The newest is what a later clean-up keeps.
        std::fs::File::open(&archive)?.set_modified(std::time::SystemTime::now())?;
        remove_old(folder, self.name)?;
        Ok(Image { name: self.name, reference, archive })
    }

    async fn build(
        &self,
        folder: &Path,
        go: &Go,
        dockerfile: &Path,
        program: &Path,
        reference: &str,
        archive: &Path,
    ) -> anyhow::Result<()> {
        let builder = Builder::new(folder);
        let base = base(&builder, folder).await?;
        let context = tempfile::tempdir_in(folder)?;
        std::fs::copy(program, context.path().join(self.program)).context("copy the program")?;
        let mut arguments = vec![("BASE", base)];
        if self.has_go {
            arguments.push(("GO", go.image(&builder).await?));
        }
        builder.build(dockerfile, context.path(), &arguments, reference).await?;
        builder.save(reference, archive).await?;
        let used = arguments.iter().map(|(_, image)| image.as_str()).chain([reference]);
        for reference in used {
            builder.forget_others(reference).await?;
        }
        Ok(())
    }
}

fn base_tag() -> String {
    digest::short(format!("{DEBIAN} {BASE_PACKAGES} {}", LEFT_OUT.join(" ")).as_bytes())
}

/// A small Debian from its packages, as an image.
async fn base(builder: &Builder, folder: &Path) -> anyhow::Result<String> {
    let reference = format!("mooring.test/debian:{}", base_tag());
    if !builder.has(&reference).await? {
        let archive = folder.join(format!("debian-{}.tar", base_tag()));
        if !archive.is_file() {
            say("making the base image from Debian's packages")?;
            let unfinished = folder.join("debian-unfinished.tar");
            let include = format!("--include={BASE_PACKAGES}");
            let mut command = Command::new("mmdebstrap");
            command.args(["--quiet", "--variant=minbase", &include]);
            command.args(LEFT_OUT.iter().map(|option| format!("--dpkgopt={option}")));
            command.arg(DEBIAN).arg(&unfinished);
            finish(&mut command, STEP_DEADLINE).await?;
            std::fs::rename(&unfinished, &archive).context("keep the base")?;
        }
        builder.wrap(&archive, "/", &reference).await?;
    }
    Ok(reference)
}

/// The Go release of this machine.
struct Go {
    root: PathBuf,
    version: String,
}

impl Go {
    async fn of_this_machine() -> anyhow::Result<Self> {
        let told = output("go", ["env", "GOROOT", "GOVERSION"]).await?;
        let (root, version) = told.trim().split_once('\n').context("what `go env` prints")?;
        Ok(Self { root: PathBuf::from(root), version: version.to_owned() })
    }

    /// It as the image that Go's own release image looks like to a later stage: in `/usr/local/go`.
    async fn image(&self, builder: &Builder) -> anyhow::Result<String> {
        let reference = format!("mooring.test/go:{}", self.version);
        if !builder.has(&reference).await? {
            builder.wrap(&self.root, "/usr/local/go", &reference).await?;
        }
        Ok(reference)
    }
}

/// Removes all but the newest archives of an image.
fn remove_old(folder: &Path, name: &str) -> anyhow::Result<()> {
    let mut archives = Vec::new();
    for entry in std::fs::read_dir(folder).context("the folder of images")? {
        let entry = entry?;
        let file = entry.file_name();
        let tagged = file.to_str().and_then(|file| file.strip_prefix(name)).unwrap_or_default();
        let is_one =
            tagged.starts_with('-') && Path::new(tagged).extension().is_some_and(|kind| kind == "tar");
        if is_one {
            archives.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    archives.sort();
    archives.reverse();
    for (_, path) in archives.into_iter().skip(KEPT) {
        std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_archives_of_an_image_stay() {
        let folder = tempfile::tempdir().expect("folder");
        let at = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        for (name, age) in
            [("one-1.tar", 1), ("one-2.tar", 2), ("one-3.tar", 3), ("one-4.tar", 4), ("other-0.tar", 0)]
        {
            let file = std::fs::File::create(folder.path().join(name)).expect("file");
            file.set_modified(at(age)).expect("time");
        }
        remove_old(folder.path(), "one").expect("removed");
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("read")
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["one-2.tar", "one-3.tar", "one-4.tar", "other-0.tar"]);
    }
}
