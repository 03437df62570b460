//! Secrets of the person's environment: no command can see one, wherever it looks.

use mooring_e2e::fixture::{HarnessOptions, ToolResult, World, sequence};
use mooring_e2e::script::Script;
use serde_json::json;

/// In each value below; written in two halves wherever a command has to name it.
const CANARY: &str = "CANARY77";

/// Name and value, one of each shape.
const SECRETS: [(&str, &str); 23] = [
    ("OPENAI_API_KEY", "sk-CANARY77aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("ANTHROPIC_API_KEY", "sk-ant-CANARY77aaaaaaaaaaaaaaaaaaaaaa"),
    ("MOORING_ANYTHING", "CANARY77"),
    ("MOORING_PROVIDER_KEY", "CANARY77"),
    ("AWS_SECRET_ACCESS_KEY", "CANARY77aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("AWS_SESSION_TOKEN", "CANARY77"),
    ("GITHUB_TOKEN", "CANARY77"),
    ("github_token", "CANARY77"),
    ("Api_Key", "CANARY77"),
    ("TOKEN2", "CANARY77"),
    ("NPM_TOKEN", "CANARY77"),
    ("PGPASSWORD", "CANARY77"),
    ("SENTRY_DSN", "https://CANARY77@sentry.example.com/1"),
    ("SESSION_SECRET", "CANARY77"),
    ("SMTP_PASS", "CANARY77"),
    ("FOO", "ghp_CANARY77aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
    ("X", "AKIACANARY7700000000"),
    ("Y", "-----BEGIN PRIVATE KEY-----\nCANARY77\n-----END PRIVATE KEY-----"),
    ("DULL", "xoxb-123456789012-123456789012-CANARY77aaaaaaaaaaaaaaaa"),
    ("DATABASE_URL", "postgres://user:CANARY77@db.example.com/app"),
    ("HTTPS_PROXY", "http://user:CANARY77@proxy.example.com:3128"),
    ("BASH_ENV", "/nowhere/CANARY77"),
    ("GIT_SSH_COMMAND", "ssh -i CANARY77"),
];

const BENIGN: [(&str, &str); 4] = [
    ("AUTHOR", "somebody"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("KEYBOARD_LAYOUT", "cz"),
    ("GPG_TTY", "/dev/tty1"),
];

fn script() -> Script {
    // `[7]` keeps the word itself out of the command's own arguments.
    let look = "env | grep -a 'CANARY[7]7'; echo env-done\n\
                cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a 'CANARY[7]7'; echo proc-done\n\
                cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n' | grep -a 'CANARY[7]7'; echo parent-done\n\
                cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a -m1 '^KEYBOARD_LAYOUT='\n\
                echo $AUTHOR $TOKENIZERS_PARALLELISM $KEYBOARD_LAYOUT $GPG_TTY\n\
                cat \"$STATE_FOLDER/token\" \"$STATE_FOLDER\"/* 2>/dev/null | wc -c";
    let background = "env | grep -a 'CANARY[7]7' > found.txt; echo looked >> found.txt";
    sequence([
        ("Shell", json!({"command": look})),
        ("Shell", json!({"command": background, "background": true})),
        (
            "Shell",
            json!({"command": "until [ -s found.txt ]; do sleep 0.05; done; cat found.txt", "timeoutMillis": 20_000}),
        ),
    ])
}

fn with_secrets(mut options: HarnessOptions) -> HarnessOptions {
    for (name, value) in SECRETS.into_iter().chain(BENIGN) {
        options = options.with(name, value);
    }
    let state = options.state.to_string_lossy().into_owned();
    options.with("STATE_FOLDER", &state)
}

fn check(world: &World, results: &[ToolResult]) {
    for result in results {
        let canaries: Vec<_> = result.text.lines().filter(|line| line.contains(CANARY)).collect();
        assert!(canaries.is_empty(), "{canaries:?}");
        assert!(!result.is_error, "{result:?}");
    }
    let looked = &results[0].text;
    for wanted in
        ["env-done", "proc-done", "parent-done", "somebody false cz /dev/tty1\n0\n", "OPENAI_API_KEY"]
    {
        assert!(looked.contains(wanted), "{wanted}: {looked}");
    }
    assert!(results[2].text.contains("looked"), "{results:?}");
    nothing_kept(&world.root());
}

/// Neither the store nor a log holds a secret.
fn nothing_kept(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            nothing_kept(&path);
        } else if path.is_file() && !path.ends_with("mooring") && !path.ends_with("mooring-executor") {
            let bytes = std::fs::read(&path).expect("file");
            let holds = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
            assert!(!holds, "{} holds a secret", path.display());
        }
    }
}

#[tokio::test]
async fn no_command_sees_a_secret_of_the_harness() {
    let mut world = World::make(script()).await.expect("world");
    world.options = with_secrets(world.options);
    let results = world.results().await.expect("run");
    check(&world, &results);
}

#[tokio::test]
async fn no_command_of_nobody_sees_a_secret_of_the_harness() {
    if !rustix::process::geteuid().is_root() {
        // The test above ran as such a user already.
        return;
    }
    let mut world = World::make_for_nobody(script()).await.expect("world");
    world.options = with_secrets(world.options);
    let results = world.results().await.expect("run");
    check(&world, &results);
}
