//! Gateway and operator are killed under somebody who follows a command.

use std::process::Stdio;

use anyhow::ensure;
use mooring_e2e::fixture::await_condition;
use mooring_e2e::platform::SYSTEM;

use crate::cast::{Cast, let_call};
use crate::reaching_in::{DEADLINE, EXAMPLE, apply_example, finish, plugin, told};
use crate::stage::{Stage, quietly_on_stage};

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
        let mut session = apply_example(stage, &cast.ana).await?;
        let before = session.ready().await?;
        // Another call of the same person, once there is somebody to answer it. It may be made twice.
        let by = async |shell: &str| {
            await_condition(DEADLINE, "the gateway answers", async || {
                let said =
                    finish(plugin.command(&["session", "exec", EXAMPLE, "--shell", shell])).await.ok()?;
                said.status.success().then_some(said.stdout)
            })
            .await
        };
        // The gateway hears of a Session that is Ready as everybody does: a moment after whoever waited for it.
        by("true").await?;
        let text = "echo 1; touch begun; until test -e go; do sleep 0.1; done; echo 2; exit 9";
        let mut follower = plugin.command(&["session", "exec", EXAMPLE, "--timeout", "4m", "--shell", text]);
        follower.stdout(Stdio::piped()).stderr(Stdio::piped());
        let follower = follower.spawn()?;
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
