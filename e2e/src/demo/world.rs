//! The ground of the demo: a copy of this repository with a Go module in it, and a remote that takes pushes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

use crate::fixture::await_condition;

const MODULE: [(&str, &str); 3] = [
    ("go.mod", include_str!("intervals/go.mod.txt")),
    ("intervals.go", include_str!("intervals/intervals.go.txt")),
    ("intervals_test.go", include_str!("intervals/intervals_test.go.txt")),
];

/// Folders of one demo.
pub(super) struct World {
    /// Everything below is in it.
    pub(super) folder: PathBuf,
    /// The session's folder.
    pub(super) tree: PathBuf,
    /// Another folder, for the harness that must not touch it.
    pub(super) other: PathBuf,
    /// The bare repository behind the remote `origin`.
    pub(super) remote: PathBuf,
    /// The harness's state.
    pub(super) state: PathBuf,
    daemon: Child,
}

impl World {
    /// Makes a new one below `parent`.
    ///
    /// # Errors
    /// When git or Go is missing, or this is not run within a checkout.
    pub(super) async fn make(parent: &Path) -> anyhow::Result<Self> {
        for program in ["git", "go"] {
            run(parent, program, &["version"]).await.with_context(|| format!("`{program}` is needed"))?;
        }
        let checkout = std::env::current_dir().context("current folder")?;
        let top =
            run(&checkout, "git", &["rev-parse", "--show-toplevel"]).await.context("run it in a checkout")?;
        let folder = parent.to_owned();
        let (tree, remote) = (folder.join("tree"), folder.join("remote/intervals.git"));
        let other = folder.join("other");
        std::fs::create_dir_all(folder.join("remote"))?;
        std::fs::create_dir_all(&other)?;
        let tree_text = text(&tree)?;
        run(&folder, "git", &["clone", "-q", "--no-hardlinks", top.trim(), tree_text]).await?;
        put_module(&tree).await?;
        run(&folder, "git", &["clone", "-q", "--bare", "--no-hardlinks", tree_text, text(&remote)?]).await?;
        let (daemon, port) = serve(&folder.join("remote")).await?;
        let url = format!("git://127.0.0.1:{port}/intervals.git");
        run(&tree, "git", &["remote", "set-url", "origin", &url]).await?;
        let world = Self { state: folder.join("state"), folder, tree, other, remote, daemon };
        await_condition(Duration::from_secs(10), "git daemon", async || {
            run(&world.tree, "git", &["ls-remote", "-q", "origin"]).await.ok()
        })
        .await?;
        Ok(world)
    }

    /// Ends the git daemon.
    pub(super) async fn close(mut self) -> anyhow::Result<()> {
        self.daemon.kill().await.context("end git daemon")
    }
}

/// Runs a program to its end in `folder` and gives its standard output.
///
/// # Errors
/// When it fails, with what it printed.
pub(super) async fn run(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = output(folder, program, arguments).await?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{program} {} ({}): {}", arguments.join(" "), output.status, String::from_utf8_lossy(&said));
    }
    String::from_utf8(output.stdout).context("output is UTF-8")
}

/// Runs a program to its end in `folder`.
///
/// # Errors
/// When it cannot be started.
pub(super) async fn output(folder: &Path, program: &str, arguments: &[&str]) -> anyhow::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0");
    command.env("GOTOOLCHAIN", "local").env("GOFLAGS", "").env("GOWORK", "off");
    command.output().await.with_context(|| format!("start {program}"))
}

async fn put_module(tree: &Path) -> anyhow::Result<()> {
    let module = tree.join("intervals");
    std::fs::create_dir(&module)?;
    for (name, content) in MODULE {
        std::fs::write(module.join(name), content)?;
    }
    // The agent's commits need a name; it finds it in the checkout, as a person's own would have it.
    run(tree, "git", &["config", "user.name", "Demo"]).await?;
    run(tree, "git", &["config", "user.email", "demo@example.com"]).await?;
    run(tree, "git", &["add", "intervals"]).await?;
    run(tree, "git", &["commit", "-q", "-m", "intervals: merge closed ranges"]).await?;
    Ok(())
}

/// Starts `git daemon` itself, not by way of `git`, so that ending the child ends the server.
async fn serve(base: &Path) -> anyhow::Result<(Child, u16)> {
    let programs = run(base, "git", &["--exec-path"]).await?;
    let daemon = Path::new(programs.trim()).join("git-daemon");
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = Command::new(&daemon)
        .args(["--reuseaddr", "--export-all", "--enable=receive-pack", "--informative-errors"])
        .args(["--listen=127.0.0.1", &format!("--port={port}"), &format!("--base-path={}", text(base)?)])
        .arg(base)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(base.join("daemon.log"))?)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("start {}", daemon.display()))?;
    Ok((child, port))
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
