//! The whole product is upgraded, taken away and brought back.

use std::path::Path;

use anyhow::{Context as _, ensure};
use mooring_e2e::platform::{Ground, Namespace, Product, SYSTEM, chart};
use serde_json::json;

use crate::stage::{conclude, in_quiet};

/// This chart without one field of a Session, as an older one was.
fn older_chart(folder: &Path) -> anyhow::Result<()> {
    copy(&chart(), folder)?;
    let path = folder.join("templates/crds/sessions.yaml");
    let text = std::fs::read_to_string(&path)?;
    let (mut kept, mut inside) = (String::new(), None);
    let indent = |line: &str| line.len() - line.trim_start().len();
    for line in text.lines() {
        if line.trim() == "participants:" {
            inside = Some(indent(line));
        } else if inside.is_some_and(|outer| indent(line) <= outer && !line.trim_start().starts_with("- ")) {
            inside = None;
        }
        if inside.is_none() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    ensure!(kept.len() < text.len(), "no such field");
    std::fs::write(path, kept).context("write the older definition")
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

async fn has_field(ground: &Ground) -> anyhow::Result<bool> {
    let field =
        "jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.participants.type}";
    let get = ["get", "customresourcedefinition", "sessions.mooring.dev", "-o", field];
    Ok(ground.kubectl.run(&get).await? == "array")
}

/// Both in one: it takes the whole product away and brings it back.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_brings_new_fields_and_an_uninstallation_leaves_every_session() {
    in_quiet(async {
        let ground = Ground::open().await.expect("a cluster");
        Product::installed(&ground).await.expect("the product");
        let walked = walk(&ground).await;
        Product::install_from(&ground, &chart()).await.expect("the product is back");
        conclude(Ok(walked));
    })
    .await;
}

async fn walk(ground: &Ground) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    older_chart(folder.path())?;
    Product::install_from(ground, folder.path()).await?;
    ensure!(!has_field(ground).await?, "the older definition has the field");
    let namespace = Namespace::bare(ground, "stays").await?;
    namespace.apply("Session", "one", &json!({"suspended": true})).await?;
    Product::install_from(ground, &chart()).await?;
    ensure!(has_field(ground).await?, "the upgrade does not reach the definition");
    let uid = ["get", "session.mooring.dev", "one", "-o", "jsonpath={.metadata.uid}"];
    let before = namespace.kubectl(&uid).await?;

    Product::uninstall(ground).await?;
    ensure!(has_field(ground).await?, "the definition is gone");
    assert_eq!(namespace.kubectl(&uid).await?, before);
    let pods = ["-n", SYSTEM, "get", "deployments", "-o", "name"];
    assert_eq!(ground.kubectl.run(&pods).await?, "");
    Product::install_from(ground, &chart()).await?;
    assert_eq!(namespace.kubectl(&uid).await?, before);
    namespace.remove_whole().await
}
