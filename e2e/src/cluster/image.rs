//! The images of a run: what is made, and loading it where the kubelet finds it.

mod archive;
mod builder;
mod built;
mod small;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::container::ctr;
use super::run::RunFolder;
use super::{Record, say};

/// The container that holds a pod's namespaces together.
pub const PAUSE: &str = "mooring.test/pause:1";
/// A shell and the small programs of a system.
pub const BUSYBOX: &str = "mooring.test/busybox:1";

/// The record of a run's images.
const RECORD: &str = "images.json";

/// An image archive.
struct Image {
    /// The run's name for it.
    name: &'static str,
    reference: String,
    archive: PathBuf,
}

/// Name to full reference.
pub(super) type Images = BTreeMap<String, String>;

/// The images the cluster itself and its tests use, in the run's containerd.
pub(super) async fn load_small(folder: &RunFolder, record: &Record) -> anyhow::Result<()> {
    load_made(folder, record, small::make(&record.bin).await?).await
}

/// Builds the images of our programs in which something has changed since the last time, into the cache folder.
///
/// # Errors
/// When a program is not built, or buildah or mmdebstrap fail.
pub async fn build_images() -> anyhow::Result<()> {
    built::make().await.map(drop)
}

/// The images of our programs, in the run's containerd; one that is there already is not loaded again. Those of this moment
/// bear the names of published ones too, so that chart and examples work as they stand.
pub(super) async fn load_built(folder: &RunFolder, record: &Record) -> anyhow::Result<()> {
    let made = built::make().await?;
    let names: Vec<(String, String)> =
        made.iter().map(|image| (image.reference.clone(), published(image.name))).collect();
    load_made(folder, record, made).await?;
    for (reference, published) in names {
        ctr(folder, record, &["images", "tag", "--force", &reference, &published]).await?;
    }
    Ok(())
}

/// The name that the chart and the examples have for an image of ours.
fn published(name: &str) -> String {
    format!("ghcr.io/mooring-dev/{name}:{}", env!("CARGO_PKG_VERSION"))
}

async fn load_made(folder: &RunFolder, record: &Record, made: Vec<Image>) -> anyhow::Result<()> {
    for image in made {
        if images(folder)?.get(image.name) != Some(&image.reference) {
            load(folder, record, &image.archive).await?;
            note(folder, image.name, &image.reference)?;
        }
    }
    Ok(())
}

/// Loads every image of an archive (`docker save`, `buildah push docker-archive:`) and says their references.
pub(super) async fn load(folder: &RunFolder, record: &Record, archive: &Path) -> anyhow::Result<Vec<String>> {
    let references = archive::references(archive)?;
    let path = archive.display().to_string();
    ctr(folder, record, &["images", "import", &path]).await.with_context(|| format!("load {path}"))?;
    say(&format!("loaded {}", references.join(", ")))?;
    Ok(references)
}

/// Keeps which reference a name stands for.
pub(super) fn note(folder: &RunFolder, name: &str, reference: &str) -> anyhow::Result<()> {
    let mut images = images(folder)?;
    images.insert(name.to_owned(), reference.to_owned());
    folder.write(RECORD, &images)
}

/// The run's images.
pub(super) fn images(folder: &RunFolder) -> anyhow::Result<Images> {
    Ok(folder.read(RECORD)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::repository;

    #[test]
    fn chart_and_examples_use_the_published_names() {
        let read = |path: &str| std::fs::read_to_string(repository().join(path)).expect("a file");
        let class = read("deploy/examples/executorclass.yaml");
        assert!(class.contains(&format!("image: {}\n", published("environment"))), "{class}");
        for program in ["operator", "harness"] {
            let image = published(program);
            let (name, tag) = image.rsplit_once(':').expect("a tag");
            assert!(read("charts/mooring/values.yaml").contains(&format!("repository: {name}\n")));
            assert!(read("charts/mooring/Chart.yaml").contains(&format!("appVersion: {tag}\n")));
        }
    }
}
