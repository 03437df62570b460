//! The images that are one program: the pause container, busybox and the cluster's DNS.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::process::Command;

use super::{BUSYBOX, Image, PAUSE, archive};
use crate::cluster::command::finish;
use crate::cluster::{cache, say, source};
use crate::digest;

/// The Debian release whose packages images are made of.
const DEBIAN: &str = "bookworm";
/// A package from the archive, over a slow line.
const FETCH_DEADLINE: Duration = Duration::from_mins(5);

/// Makes the small images; the archives are written anew each time, which takes less than to find out whether they are the same.
pub(super) async fn make(bin: &Path) -> anyhow::Result<Vec<Image>> {
    let folder = cache()?.join("images");
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let busybox = busybox(&folder).await?;
    let coredns = archive::program("coredns", &read(&bin.join("coredns"))?)?;
    let dns = format!("mooring.test/coredns:{}", digest::short(&coredns));
    // Holds namespaces and does nothing, for as long as a signed count of seconds can say. It collects no children: no pod of
    // ours shares its process namespace.
    let pause = json!({"Entrypoint": ["/bin/busybox", "sleep", "2147483647"], "User": "65535:65535"});
    let shell = json!({"Cmd": ["/bin/sh"], "Env": ["PATH=/bin:/usr/bin"]});
    Ok(vec![
        one(&folder, "pause", PAUSE.to_owned(), &busybox, &pause)?,
        one(&folder, "busybox", BUSYBOX.to_owned(), &busybox, &shell)?,
        one(&folder, "coredns", dns, &coredns, &json!({"Entrypoint": ["/coredns"]}))?,
    ])
}

/// A layer of Debian's busybox and the C library under it, which are unpacked and not installed. The static build does not do:
/// looking a name up wants the shared C library all the same.
async fn busybox(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let hook = source("busybox.sh");
    let path = folder.join(format!("busybox-{DEBIAN}-{}.layer", digest::short_of_file(&hook)?));
    if !path.is_file() {
        say("fetching busybox from Debian")?;
        let unfinished = folder.join("busybox-unfinished.tar");
        let mut fetch = Command::new("mmdebstrap");
        fetch.args(["--quiet", "--variant=extract", "--include=busybox"]);
        fetch.arg(format!("--extract-hook={}", hook.display())).arg(DEBIAN).arg(&unfinished);
        finish(&mut fetch, FETCH_DEADLINE).await?;
        std::fs::rename(&unfinished, &path).context("keep busybox")?;
    }
    read(&path)
}

fn one(
    folder: &Path,
    name: &'static str,
    reference: String,
    layer: &[u8],
    config: &serde_json::Value,
) -> anyhow::Result<Image> {
    let path = folder.join(format!("{name}.tar"));
    archive::write(&path, &reference, layer, config)?;
    Ok(Image { name, reference, archive: path })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("read {}", path.display()))
}
