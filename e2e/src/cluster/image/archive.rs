//! Image archives in the form of `docker save`: a manifest, a configuration, layers.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::digest;

/// Writes the archive of an image with one layer and returns when all of it is on disk. `config` is the part of the image's
/// configuration that says how it is run (OCI image specification, "config").
pub(super) fn write(path: &Path, reference: &str, layer: &[u8], config: &Value) -> anyhow::Result<()> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no image can be made for {other}"),
    };
    let configuration = serde_json::to_vec(&json!({
        "architecture": architecture,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest::whole(layer))]},
    }))?;
    let name = format!("{}.json", digest::whole(&configuration));
    let manifest =
        serde_json::to_vec(&json!([{"Config": name, "RepoTags": [reference], "Layers": ["layer.tar"]}]))?;
    let folder = path.parent().context("an archive lies in a folder")?;
    let mut archive = Builder::new(tempfile::NamedTempFile::new_in(folder)?);
    append(&mut archive, "manifest.json", 0o644, &manifest)?;
    append(&mut archive, &name, 0o644, &configuration)?;
    append(&mut archive, "layer.tar", 0o644, layer)?;
    let file = archive.into_inner().context("finish the archive")?;
    file.persist(path).with_context(|| format!("write {}", path.display()))?;
    Ok(())
}

/// A layer with one program at the root: of no time, so that equal content is equal bytes.
pub(super) fn program(name: &str, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    append(&mut layer, name, 0o755, bytes)?;
    layer.into_inner().context("finish the layer")
}

/// The references that an archive gives its images.
pub(super) fn references(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = std::fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries().with_context(|| format!("read {}", path.display()))? {
        let mut entry = entry.with_context(|| format!("read {}", path.display()))?;
        if entry.path()?.as_ref() != Path::new("manifest.json") {
            continue;
        }
        let mut manifest = String::new();
        entry.read_to_string(&mut manifest)?;
        let manifest: Value = serde_json::from_str(&manifest).context("the archive's manifest")?;
        let images = manifest.as_array().map_or(&[][..], Vec::as_slice);
        let tags = images.iter().flat_map(|image| image["RepoTags"].as_array().into_iter().flatten());
        return Ok(tags.filter_map(Value::as_str).map(String::from).collect());
    }
    bail!("{} is no image archive: it has no manifest.json", path.display());
}

fn append(
    archive: &mut Builder<impl std::io::Write>,
    path: &str,
    mode: u32,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes).with_context(|| format!("put {path} into the archive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_makes_equal_archives_that_tell_their_name() {
        let folder = tempfile::tempdir().expect("folder");
        let (one, two) = (folder.path().join("one.tar"), folder.path().join("two.tar"));
        for path in [&one, &two] {
            let layer = program("true", b"\x7fELF").expect("layer");
            write(path, "mooring.test/true:1", &layer, &json!({"Cmd": ["/true"]})).expect("write");
        }
        assert_eq!(std::fs::read(&one).expect("one"), std::fs::read(&two).expect("two"));
        assert_eq!(references(&one).expect("references"), ["mooring.test/true:1"]);
    }
}
