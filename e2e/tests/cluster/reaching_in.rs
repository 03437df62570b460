//! The main job from outside: `kubectl mooring` and the client examples, through the gateway, with a person's own credential.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use mooring_e2e::execution::Tree;
use mooring_e2e::fixture::{await_condition, binary};
use mooring_e2e::platform::{Caller, Kubectl, SYSTEM, Session};
use tokio::process::Command;

use super::cast::{Cast, Desk, let_call};
use super::stage::{Stage, on_stage, quietly_on_stage};

/// A cold `go test` in a small pod on a busy machine, or the tools of the client examples from their registries.
const DEADLINE: Duration = Duration::from_mins(8);

/// `kubectl mooring` in the stage's namespace, as `who`.
fn plugin(stage: &Stage, who: &Caller, folder: &Path) -> anyhow::Result<Kubectl> {
    who.hand(binary("kubectl-mooring")?, &stage.namespace.name, folder)
}

/// Runs to its end and gives its output and its code.
async fn finish(mut command: Command) -> anyhow::Result<Output> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(DEADLINE, command.output()).await;
    Ok(output.with_context(|| format!("{command:?} does not end"))??)
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// This repository in a new session `name`, by the plugin alone.
async fn push_this(plugin: &Kubectl, name: &str) -> anyhow::Result<Tree> {
    let made = finish(plugin.command(&["session", "create", name, "--wait"])).await?;
    ensure!(made.status.success(), "{}", told(&made));
    let tree = Tree::checkout().await?;
    let root = tree.root().to_str().context("UTF-8")?;
    let pushed = finish(plugin.command(&["session", "push", name, root])).await?;
    ensure!(pushed.status.success() && pushed.stdout.is_empty(), "{}", told(&pushed));
    Ok(tree)
}

/// Tests it there and reads from it.
async fn work(plugin: &Kubectl, name: &str, tree: &Tree) -> anyhow::Result<()> {
    let test =
        ["session", "exec", name, "--cwd", "e2e/reach", "--timeout", "6m", "--", "go", "test", "./..."];
    let tested = finish(plugin.command(&test)).await?;
    ensure!(tested.status.success(), "{}", told(&tested));
    ensure!(String::from_utf8_lossy(&tested.stdout).contains("ok  \tmooring.dev/reach"), "{}", told(&tested));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_a_certificate_pushes_this_repository_and_tests_it() {
    on_stage("certificate", async |stage: &Stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let_call(&stage.namespace, &["ana", "dan"]).await?;
        let folder = tempfile::tempdir()?;
        let plugin = plugin(stage, &cast.ana, folder.path())?;
        let tree = push_this(&plugin, "certified").await?;
        work(&plugin, "certified", &tree).await?;
        let into = folder.path().join("pulled");
        let into = into.to_str().context("UTF-8")?;
        let pulled = finish(plugin.command(&["session", "pull", "certified", into])).await?;
        ensure!(pulled.status.success() && pulled.stdout.is_empty(), "{}", told(&pulled));
        let of = |root: &Path| std::fs::read(root.join("ARCHITECTURE.md"));
        ensure!(of(Path::new(into))? == of(tree.root())?, "what was pushed is pulled");
        // Another person of the same cluster finds nothing there.
        let dan = Caller::person(&stage.ground, "dan").await?;
        let own = tempfile::tempdir()?;
        let stranger = self::plugin(stage, &dan, own.path())?;
        let read = ["session", "files", "read", "certified", "README.md"];
        let refused = finish(stranger.command(&read)).await?;
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(125), 0), "{}", told(&refused));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_does_the_same_and_the_client_examples_too() {
    on_stage("account", async |stage: &Stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let_call(&stage.namespace, &[]).await?;
        let folder = tempfile::tempdir()?;
        let plugin = plugin(stage, &cast.robot, folder.path())?;
        let tree = push_this(&plugin, "counted").await?;
        work(&plugin, "counted", &tree).await?;
        let clients = examples(folder.path()).await?;
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

/// The client examples, generated and built in a copy of their folder.
async fn examples(folder: &Path) -> anyhow::Result<[Command; 2]> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let copy = folder.join("clients");
    let mut copied = Command::new("cp");
    copied.args(["-r", "--"]).arg(repository.join("deploy/examples/clients")).arg(&copy);
    let mut generated = Command::new(copy.join("generate.sh"));
    generated.arg(repository.join("proto"));
    let mut built = Command::new("go");
    built.args(["build", "-o", "client", "."]).current_dir(copy.join("go"));
    for command in [copied, generated, built] {
        let told_as = format!("{command:?}");
        let output = finish(command).await?;
        ensure!(output.status.success(), "{told_as}: {}", told(&output));
    }
    let mut python = Command::new(copy.join(".venv/bin/python"));
    python.arg(copy.join("python/client.py"));
    Ok([Command::new(copy.join("go/client")), python])
}

/// Ends every container of `program`'s pods from the node, at once and without a word.
async fn kill(stage: &Stage, program: &str) -> anyhow::Result<()> {
    let selector = format!("app.kubernetes.io/name={program}");
    let uids = ["-n", SYSTEM, "get", "pods", "-l", &selector, "-o", "jsonpath={.items[*].metadata.uid}"];
    let container = program.trim_start_matches("mooring-");
    let mut killed = 0;
    for uid in stage.ground.kubectl.run(&uids).await?.split_whitespace() {
        // A pod that only stands in the place of one has no such container.
        if let Ok(pid) = stage.ground.run()?.container_pid(uid, container).await {
            mooring_e2e::fixture::kill(pid)?;
            killed += 1;
        }
    }
    ensure!(killed > 0, "nothing of {program} runs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn when_gateway_and_operator_are_killed_a_command_is_followed_to_its_end_and_the_environment_is_the_same()
 {
    quietly_on_stage("killed", async |stage: &Stage| {
        let cast = Cast::come(&stage.namespace).await?;
        let_call(&stage.namespace, &["ana"]).await?;
        let folder = tempfile::tempdir()?;
        let plugin = plugin(stage, &cast.ana, folder.path())?;
        let made = finish(plugin.command(&["session", "create", "lives", "--wait"])).await?;
        ensure!(made.status.success(), "{}", told(&made));
        let mut session = Session::open(&stage.namespace, "lives");
        let before = session.ready().await?;
        let text = "echo 1; touch begun; until test -e go; do sleep 0.1; done; echo 2; exit 9";
        let mut follower = plugin.command(&["session", "exec", "lives", "--timeout", "4m", "--shell", text]);
        follower.stdout(Stdio::piped()).stderr(Stdio::piped());
        let follower = follower.spawn()?;
        // Another call of the same person, once there is somebody to answer it. It may be made twice.
        let by = async |shell: &str| {
            await_condition(DEADLINE, "the gateway answers again", async || {
                let said =
                    finish(plugin.command(&["session", "exec", "lives", "--shell", shell])).await.ok()?;
                said.status.success().then_some(said.stdout)
            })
            .await
        };
        by("until test -e begun; do sleep 0.1; done").await?;
        kill(stage, "mooring-harness").await?;
        kill(stage, "mooring-operator").await?;
        by("echo went > go").await?;
        let ended = tokio::time::timeout(DEADLINE, follower.wait_with_output()).await??;
        ensure!(ended.status.code() == Some(9) && ended.stdout == b"1\n2\n", "{}", told(&ended));
        assert_eq!(session.ready().await?, before, "the same executor, not another one");
        stage.namespace.kubectl(&["delete", "pod", &before.executor.pod, "--wait=false"]).await?;
        let (after, _) = session.ready_from(before.epoch + 1).await?;
        assert_eq!(after.environment, before.environment);
        assert_eq!(by("cat go").await?, b"went\n");
        Ok(())
    })
    .await;
}
