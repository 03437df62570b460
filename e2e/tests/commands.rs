//! Commands that do not want to end, print without end, or are too long for a command line.

use std::time::Duration;

use mooring_e2e::fixture::{World, await_condition, with_marker};
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(15);

async fn shell(arguments: Value) -> (World, String) {
    let world = World::with_calls([("Shell", arguments)]).await.expect("world");
    let mut results = world.results().await.expect("run");
    let text = results.pop().expect("result").text;
    (world, text)
}

/// Commands carry the marker in their environment; the harness, which has it too, has ended by now.
async fn nothing_lives(world: &World) {
    let gone = await_condition(DEADLINE, "every process of the command to be gone", async || {
        with_marker(world.marker()).is_empty().then_some(())
    });
    if let Err(cause) = gone.await {
        panic!("{cause}: {:?}", with_marker(world.marker()));
    }
}

#[tokio::test]
async fn a_command_that_never_ends_is_ended_by_its_limit() {
    let (world, text) = shell(json!({"command": "sleep 1000", "timeoutMillis": 1500})).await;
    assert!(text.contains("Timed out after 1500 ms"), "{text}");
    nothing_lives(&world).await;
}

#[tokio::test]
async fn a_double_fork_that_ignores_term_does_not_survive() {
    let command = "trap '' TERM HUP INT\n\
                   (setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1000 & sleep 1000) & sleep 1000' >/dev/null 2>&1 &)\n\
                   while :; do sleep 1000; done";
    let (world, text) = shell(json!({"command": command, "timeoutMillis": 1500})).await;
    assert!(text.contains("Timed out"), "{text}");
    nothing_lives(&world).await;
}

#[tokio::test]
async fn a_child_that_holds_the_pipes_does_not_hold_the_call() {
    let command = "setsid sleep 1000 & echo at-once";
    let (world, text) = shell(json!({"command": command, "timeoutMillis": 60_000})).await;
    assert!(text.contains("at-once") && text.contains("Exit code 0"), "{text}");
    assert!(text.contains("1 processes it left behind were ended"), "{text}");
    nothing_lives(&world).await;
}

#[tokio::test]
async fn a_flood_is_bounded_counted_and_timed() {
    let (world, text) = shell(json!({"command": "yes flood", "timeoutMillis": 2000})).await;
    assert!(text.contains("Timed out after 2000 ms"), "{}", &text[..200.min(text.len())]);
    assert!(text.contains("bytes were not kept"), "{}", &text[..400.min(text.len())]);
    assert!(text.len() <= 25_000 + 2_000, "{} bytes", text.len());
    nothing_lives(&world).await;
}

#[tokio::test]
async fn a_text_over_the_argument_limit_runs() {
    // MAX_ARG_STRLEN is 128 KiB (execve(2)); this text would not fit on any command line.
    let command = format!("echo before\n# {}\necho after", "x".repeat(300_000));
    let (_world, text) = shell(json!({"command": command})).await;
    assert!(text.contains("Exit code 0") && text.contains("before") && text.contains("after"), "{text}");
}

#[tokio::test]
async fn a_command_ended_by_a_signal_never_reads_as_success() {
    let (_world, text) = shell(json!({"command": "kill -9 $$"})).await;
    assert!(text.contains("signal 9"), "{text}");
}

#[tokio::test]
async fn standard_input_is_empty_and_no_descriptor_is_inherited() {
    let (_world, text) = shell(json!({"command": "cat; ls /proc/self/fd | tr '\\n' ' '; echo; umask"})).await;
    // `ls` itself holds 3 while it reads the folder.
    assert!(text.contains("0 1 2 3 \n"), "{text}");
}
