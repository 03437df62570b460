//! The client examples, generated and built as their page says.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use mooring_e2e::cluster::cache;
use mooring_e2e::digest;
use tokio::process::Command;

use super::reaching_in::{finish, told};

/// Both, in a copy of their folder.
pub(super) async fn examples(folder: &Path) -> anyhow::Result<[Command; 2]> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let copy = folder.join("clients");
    let mut copied = Command::new("cp");
    copied.args(["-r", "--"]).arg(repository.join("deploy/examples/clients")).arg(&copy);
    succeed(copied).await?;
    let (environment, kept) = (copy.join(".venv"), kept_environment(&copy).await?);
    let is_kept = kept.is_dir();
    if is_kept {
        std::os::unix::fs::symlink(&kept, &environment)?;
    }
    let mut generated = Command::new(copy.join("generate.sh"));
    generated.arg(repository.join("proto"));
    succeed(generated).await?;
    if !is_kept {
        keep(&environment, &kept).await?;
    }
    let mut built = Command::new("go");
    built.args(["build", "-o", "client", "."]).current_dir(copy.join("go"));
    succeed(built).await?;
    let mut python = Command::new(environment.join("bin/python"));
    python.arg(copy.join("python/client.py"));
    Ok([Command::new(copy.join("go/client")), python])
}

/// Where the Python environment of these requirements is kept from one run to the next, once a run has made it.
async fn kept_environment(copy: &Path) -> anyhow::Result<PathBuf> {
    let mut inputs = std::fs::read(copy.join("python/requirements.txt"))?;
    let mut version = Command::new("python3");
    version.args(["-c", "import sys; print(sys.version, sys.prefix)"]);
    inputs.extend(succeed(version).await?);
    Ok(cache()?.join(format!("clients-{}", digest::short(&inputs))))
}

/// Keeps an environment. Its programs are not started by their own names, which have its former path in them.
async fn keep(environment: &Path, kept: &Path) -> anyhow::Result<()> {
    let folder = kept.parent().context("a folder")?;
    std::fs::create_dir_all(folder)?;
    let unfinished = tempfile::tempdir_in(folder)?;
    let mut copied = Command::new("cp");
    copied.args(["-r", "--no-dereference", "--"]).arg(environment).arg(unfinished.path().join("environment"));
    succeed(copied).await?;
    match std::fs::rename(unfinished.path().join("environment"), kept) {
        Ok(()) => Ok(()),
        // Another process was first; both are the same.
        Err(_) if kept.is_dir() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What a command prints that exits with 0.
async fn succeed(command: Command) -> anyhow::Result<Vec<u8>> {
    let told_as = format!("{command:?}");
    let output = finish(command).await?;
    ensure!(output.status.success(), "{told_as}: {}", told(&output));
    Ok(output.stdout)
}
