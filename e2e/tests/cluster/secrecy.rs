//! What a command cannot see of its own pod.

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::Secret;
use mooring_e2e::execution::{Executor, Program};
use mooring_e2e::fixture::processes;
use mooring_e2e::platform::Session;
use serde_json::json;

use super::stage::on_stage;
use super::turn::said;

/// What a shell text prints, whatever it exits with.
async fn prints(executor: &Executor, text: &str) -> anyhow::Result<String> {
    Ok(executor.run(&Program::shell(text)).await?.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_sees_neither_key_nor_token_nor_the_folder_of_certificates() {
    on_stage("secrets", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let bound = session.ready().await?;
        let executor = session.connect(&bound, &stage.product).await?;
        let secret = stage.ground.api::<Secret>(&stage.namespace.name).get(&bound.executor.pod).await?;
        let key = String::from_utf8(secret.data.context("data")?["tls.key"].0.clone())?;
        let mark = key.lines().nth(1).context("a line of the key")?.chars().take(40).collect::<String>();
        // The mark stands in two halves, so that no process carries it whole in its arguments.
        let (head, tail) = mark.split_at(20);
        let search = format!(
            "mark={head:?}; mark=$mark{tail:?}\n\
             printf %s \"$mark\" | grep --recursive --files-with-matches --no-messages --devices=skip \
             --fixed-strings --file=- /run /var /etc /tmp /workspace /home /proc/self/environ /proc/1/environ . \
             || true"
        );
        assert_eq!(prints(&executor, &search).await?, "", "the key is there");
        // The search finds what is there.
        executor.write("planted.txt", format!("before {mark} after").as_bytes()).await?;
        ensure!(prints(&executor, &search).await?.contains("planted.txt"), "the search finds nothing");

        let seen = prints(
            &executor,
            "ls -d /run/mooring/tls /var/run/secrets /run/secrets; \
             find / -xdev \\( -name tls.key -o -name ca.crt -o -name token \\) -not -path '/usr/*' -not -path '/proc/*'; \
             env | grep -i -e kubernetes -e mooring; grep -e tls -e secret /proc/self/mountinfo",
        );
        assert_eq!(seen.await?, "");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_sees_no_process_of_the_other_container() {
    on_stage("processes", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let bound = session.ready().await?;
        let executor = session.connect(&bound, &stage.product).await?;
        let look = "for process in /proc/[0-9]*; do tr '\\0' ' ' <$process/cmdline; echo; done 2>/dev/null";
        let seen = said(&executor, look).await?;
        ensure!(seen.lines().any(|line| line.contains("mooring-executor run ")), "its own runner: {seen}");
        ensure!(!seen.contains("mooring-executor serve"), "{seen}");
        // It runs all the same, as the node sees.
        let pid = stage.ground.run()?.container_pid(&bound.executor.pod_uid, "executor").await?;
        let serve = processes().into_iter().find(|process| process.pid == pid).context("the executor")?;
        ensure!(serve.command_line.contains("mooring-executor serve"), "{serve:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_connect_to_the_link_of_executor_and_runner() {
    on_stage("link", async |stage| {
        let mut session = Session::apply(&stage.namespace, "one", &json!({})).await?;
        let bound = session.ready().await?;
        let executor = session.connect(&bound, &stage.product).await?;
        executor.import(&mooring_e2e::execution::Tree::reach().await?, "").await?;
        let told = said(&executor, "./reach unix:/run/mooring/link/runner.sock").await?;
        ensure!(!told.contains(r#""answers""#), "{told}");
        // Nor can it put something of its own there, for an executor to find.
        let planted = executor.run(&Program::shell("touch /run/mooring/link/runner.sock")).await?;
        ensure!(!planted.is_success(), "{}", planted.told());
        Ok(())
    })
    .await;
}
