//! Programs of the system that do one thing and end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;

/// No single step on the system takes longer, on a busy machine too.
const DEADLINE: Duration = Duration::from_mins(2);

/// Runs a program to its end.
///
/// # Errors
/// When it cannot be started, does not end in two minutes or fails; with what it said.
pub(super) async fn run<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> anyhow::Result<()> {
    output(program, arguments).await.map(drop)
}

/// What a program prints, run to its end.
///
/// # Errors
/// As [`run`].
pub(super) async fn output<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    finish(&mut command, DEADLINE).await
}

/// Runs a prepared command to its end and gives what it prints. It is killed at the deadline.
///
/// # Errors
/// As [`run`].
pub(super) async fn finish(command: &mut Command, deadline: Duration) -> anyhow::Result<String> {
    let told = told(command);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(deadline, command.output())
        .await
        .with_context(|| format!("`{told}` did not end within {} s", deadline.as_secs()))?
        .with_context(|| format!("start `{told}`"))?;
    if !output.status.success() {
        bail!("`{told}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a prepared command that takes minutes and tells its progress on our standard error.
///
/// # Errors
/// When it cannot be started, does not end in time or fails.
pub(super) async fn follow(command: &mut Command, deadline: Duration) -> anyhow::Result<()> {
    let told = told(command);
    command.stdin(Stdio::null()).stdout(std::io::stderr()).kill_on_drop(true);
    let mut child = command.spawn().with_context(|| format!("start `{told}`"))?;
    let status = tokio::time::timeout(deadline, child.wait())
        .await
        .with_context(|| format!("`{told}` did not end within {} s", deadline.as_secs()))?
        .with_context(|| format!("wait for `{told}`"))?;
    if !status.success() {
        bail!("`{told}` failed ({status})");
    }
    Ok(())
}

/// Whether a program is on the path.
pub(super) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(Path::new).map(Path::to_path_buf);
    std::env::split_paths(&path).chain(system).any(|folder| folder.join(program).is_file())
}

fn told(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
