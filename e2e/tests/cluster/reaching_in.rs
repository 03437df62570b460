//! The main job from outside: `kubectl mooring` and the client examples, through the gateway, with a person's own credential.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use mooring_e2e::execution::Tree;
use mooring_e2e::fixture::binary;
use mooring_e2e::platform::{Caller, Kubectl, Session};
use tokio::process::Command;

use super::cast::{Cast, Desk, let_call};
use super::client;
use super::stage::{Stage, on_stage};

/// A cold `go test` in a small pod on a busy machine, or the tools of the client examples from their registries.
pub(super) const DEADLINE: Duration = Duration::from_mins(8);

/// `kubectl mooring` in the stage's namespace, as `who`.
pub(super) fn plugin(stage: &Stage, who: &Caller, folder: &Path) -> anyhow::Result<Kubectl> {
    who.hand(binary("kubectl-mooring")?, &stage.namespace.name, folder)
}

/// The Session that the documentation begins with, `deploy/examples/session.yaml`.
pub(super) const EXAMPLE: &str = "first";

/// That file as it is, applied by `who` with kubectl, until it is Ready.
pub(super) async fn apply_example(stage: &Stage, who: &Caller) -> anyhow::Result<Session> {
    let folder = tempfile::tempdir()?;
    let kubectl =
        who.hand(stage.ground.kubectl.program().to_owned(), &stage.namespace.name, folder.path())?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples/session.yaml");
    let mut session = Session::open(&stage.namespace, EXAMPLE);
    kubectl.run(&["apply", "--filename", file.to_str().context("UTF-8")?]).await?;
    kubectl.run(&["wait", "session/first", "--for=condition=Ready", "--timeout=90s"]).await?;
    session.ready().await?;
    Ok(session)
}

/// Runs to its end and gives its output and its code.
pub(super) async fn finish(mut command: Command) -> anyhow::Result<Output> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, command.output()).await;
    Ok(output.with_context(|| format!("{command:?} does not end"))??)
}

pub(super) fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Brings this repository into the session, by the plugin.
async fn push_this(plugin: &Kubectl, name: &str) -> anyhow::Result<Tree> {
    let tree = Tree::checkout().await?;
    let root = tree.root().to_str().context("UTF-8")?;
    let pushed = finish(plugin.command(&["session", "push", name, root])).await?;
    ensure!(pushed.status.success() && pushed.stdout.is_empty(), "{}", told(&pushed));
    Ok(tree)
}

/// Reads from it there, and runs commands that end in all ways.
async fn work(plugin: &Kubectl, name: &str, tree: &Tree) -> anyhow::Result<()> {
    let read = finish(plugin.command(&["session", "files", "read", name, "README.md"])).await?;
    ensure!(read.stdout == std::fs::read(tree.root().join("README.md"))?, "{}", told(&read));
    let head = finish(plugin.command(&["session", "exec", name, "--", "git", "rev-parse", "HEAD"])).await?;
    assert_eq!(String::from_utf8_lossy(&head.stdout), tree.git(&["rev-parse", "HEAD"]).await?);
    for (text, code) in [("exit 7", 7), ("kill -9 $$", 137), ("no-such-program-here", 127)] {
        let ended = finish(plugin.command(&["session", "exec", name, "--shell", text])).await?;
        assert_eq!(ended.status.code(), Some(code), "{text}: {}", told(&ended));
    }
    Ok(())
}

/// Runs the tests of a Go module in it, which compiles Go's library first.
async fn test(plugin: &Kubectl, name: &str) -> anyhow::Result<()> {
    let words = ["session", "exec", name, "--cwd", "e2e/reach", "--timeout", "6m", "--"];
    let words = [&words[..], &["go", "test", "-count=1", "-v", "./..."]].concat();
    let tested = finish(plugin.command(&words)).await?;
    let text = String::from_utf8_lossy(&tested.stdout);
    let is_tested = text.contains("ok  \tmooring.dev/reach") && !text.contains("no test files");
    ensure!(tested.status.success() && is_tested, "{}", told(&tested));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_a_certificate_pushes_this_repository_and_tests_it() {
    on_stage("certificate", async |stage: &Stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let_call(&stage.namespace, &["ana", "dan"]).await?;
        let folder = tempfile::tempdir()?;
        let plugin = plugin(stage, &cast.ana, folder.path())?;
        apply_example(stage, &cast.ana).await?;
        let tree = push_this(&plugin, EXAMPLE).await?;
        work(&plugin, EXAMPLE, &tree).await?;
        test(&plugin, EXAMPLE).await?;
        let into = folder.path().join("pulled");
        let into = into.to_str().context("UTF-8")?;
        let pulled = finish(plugin.command(&["session", "pull", EXAMPLE, into])).await?;
        ensure!(pulled.status.success() && pulled.stdout.is_empty(), "{}", told(&pulled));
        let of = |root: &Path| std::fs::read(root.join("ARCHITECTURE.md"));
        ensure!(of(Path::new(into))? == of(tree.root())?, "what was pushed is pulled");
        // Another person of the same cluster finds nothing there.
        let dan = Caller::person(&stage.ground, "dan").await?;
        let own = tempfile::tempdir()?;
        let stranger = self::plugin(stage, &dan, own.path())?;
        let read = ["session", "files", "read", EXAMPLE, "README.md"];
        let refused = finish(stranger.command(&read)).await?;
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(125), 0), "{}", told(&refused));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_with_a_session_made_by_the_plugin_does_so_too_and_the_client_examples_do() {
    on_stage("account", async |stage: &Stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let_call(&stage.namespace, &[]).await?;
        let folder = tempfile::tempdir()?;
        let plugin = plugin(stage, &cast.robot, folder.path())?;
        let made = finish(plugin.command(&["session", "create", "counted", "--wait"])).await?;
        ensure!(made.status.success(), "{}", told(&made));
        let tree = push_this(&plugin, "counted").await?;
        work(&plugin, "counted", &tree).await?;
        let clients = client::examples(folder.path()).await?;
        let answer = folder.path().join("answer.json");
        let session = format!("{}/counted", stage.namespace.name);
        for mut client in clients {
            // A token lasts 15 minutes: each has its own.
            let desk = Desk { who: &cast.robot, namespace: "" };
            std::fs::write(&answer, desk.exchange().made().await?.done()?.to_string())?;
            client.arg(&answer).args([&session, "LICENSE", "sh", "-c", "echo ran; echo err >&2; exit 5"]);
            let ran = finish(client).await?;
            let expected = [std::fs::read(tree.root().join("LICENSE"))?, b"ran\n".to_vec()].concat();
            ensure!(ran.status.code() == Some(5) && ran.stdout == expected, "{}", told(&ran));
            ensure!(ran.stderr == b"err\n", "{}", told(&ran));
        }
        Ok(())
    })
    .await;
}
