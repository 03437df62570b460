//! Paths and files that a careless tool would follow, open or overwrite, through the tools of a model.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use mooring_e2e::fixture::{ToolResult, World};
use serde_json::{Value, json};

/// Makes a world with `calls`, prepares its tree, and gives the results in order.
async fn results<const N: usize>(
    calls: [(&str, Value); N],
    prepare: impl FnOnce(&World),
) -> (World, [ToolResult; N]) {
    let world = World::with_calls(calls).await.expect("world");
    prepare(&world);
    let results = world.results().await.expect("run");
    let results = results.try_into().unwrap_or_else(|other| panic!("as many results as calls: {other:?}"));
    (world, results)
}

#[track_caller]
fn refused(result: &ToolResult, code: &str) {
    let told = format!("({code})");
    assert!(result.is_error && result.text.contains(&told), "expected {code}: {result:?}");
}

#[tokio::test]
async fn no_path_leads_out_of_the_tree() {
    let calls = [
        ("Read", json!({"path": "../secret"})),
        ("Read", json!({"path": "a/../../secret"})),
        ("Read", json!({"path": "/etc/hostname"})),
        ("Read", json!({"path": "out/secret"})),
        ("Read", json!({"path": "leaf"})),
        ("Write", json!({"path": "../new", "content": "x"})),
        ("Write", json!({"path": "out/new", "content": "x"})),
        ("Read", json!({"path": "../tree-sibling/secret"})),
    ];
    let (world, results) = results(calls, |world| {
        let root = world.root();
        std::fs::create_dir(root.join("tree-sibling")).expect("sibling");
        for path in ["secret", "tree-sibling/secret"] {
            std::fs::write(root.join(path), "outside words").expect("secret");
        }
        std::fs::create_dir(world.tree().join("a")).expect("a");
        symlink(&root, world.tree().join("out")).expect("link");
        symlink(root.join("secret"), world.tree().join("leaf")).expect("link");
    })
    .await;
    for result in &results {
        refused(result, "path_escapes");
        assert!(!result.text.contains("outside words"), "{result:?}");
    }
    assert!(!world.root().join("new").exists());
}

#[tokio::test]
async fn a_link_is_never_written_through() {
    let calls = [
        ("Write", json!({"path": "dangling", "content": "OWNED"})),
        ("Write", json!({"path": "notes.md", "content": "OWNED"})),
        ("Write", json!({"path": "inside", "content": "OWNED"})),
    ];
    let (world, results) = results(calls, |world| {
        let outside = world.root().join("victim");
        std::fs::write(&outside, "victim").expect("victim");
        std::fs::write(world.tree().join("real"), "real").expect("real");
        symlink(world.root().join("created"), world.tree().join("dangling")).expect("link");
        symlink(&outside, world.tree().join("notes.md")).expect("link");
        symlink("real", world.tree().join("inside")).expect("link");
    })
    .await;
    assert!(results.iter().all(|result| result.is_error), "{results:?}");
    assert!(!world.root().join("created").exists());
    assert_eq!(std::fs::read_to_string(world.root().join("victim")).expect("victim"), "victim");
    assert_eq!(std::fs::read_to_string(world.tree().join("real")).expect("real"), "real");
}

#[tokio::test]
async fn a_pipe_or_a_giant_holds_nobody_up() {
    let calls = [
        ("Read", json!({"path": "pipe"})),
        ("Edit", json!({"path": "pipe", "old": "a", "new": "b"})),
        ("Write", json!({"path": "pipe", "content": "x"})),
        ("Grep", json!({"pattern": "needle"})),
        ("Read", json!({"path": "giant"})),
        ("Edit", json!({"path": "giant", "old": "a", "new": "b"})),
    ];
    let start = Instant::now();
    let (_world, [read, edit, write, grep, _giant, giant_edit]) = results(calls, |world| {
        let made = Command::new("mkfifo").arg(world.tree().join("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let giant = std::fs::File::create(world.tree().join("giant")).expect("giant");
        giant.set_len(1 << 40).expect("a sparse file of 1 TiB");
        std::fs::write(world.tree().join("hay"), "needle\n").expect("hay");
    })
    .await;
    for result in [&read, &edit, &write] {
        refused(result, "not_regular_file");
    }
    assert!(!grep.is_error && grep.text.contains("hay"), "{grep:?}");
    assert!(giant_edit.is_error, "{giant_edit:?}");
    assert!(start.elapsed().as_secs() < 60, "it took {:?}", start.elapsed());
}

#[tokio::test]
async fn an_edit_needs_one_match_in_a_file_that_was_read_and_did_not_change() {
    let calls = [
        ("Edit", json!({"path": "twice", "old": "word", "new": "other"})),
        ("Read", json!({"path": "twice"})),
        ("Edit", json!({"path": "twice", "old": "word", "new": "other"})),
        ("Edit", json!({"path": "twice", "old": "absent", "new": "other"})),
        ("Shell", json!({"command": "echo more >> twice"})),
        ("Edit", json!({"path": "twice", "old": "word\nword\n", "new": "other\n"})),
        ("Write", json!({"path": "twice", "content": "lost"})),
        ("Write", json!({"path": "unread", "content": "lost"})),
    ];
    let (world, [unread, read, twice, absent, shell, stale, stale_write, unread_write]) =
        results(calls, |world| {
            std::fs::write(world.tree().join("twice"), "word\nword\n").expect("twice");
            std::fs::write(world.tree().join("unread"), "kept").expect("unread");
        })
        .await;
    refused(&unread, "unread");
    assert!(!read.is_error, "{read:?}");
    refused(&twice, "ambiguous_match");
    refused(&absent, "no_match");
    assert!(!shell.is_error, "{shell:?}");
    refused(&stale, "stale_version");
    refused(&stale_write, "stale_version");
    refused(&unread_write, "unread");
    assert_eq!(std::fs::read_to_string(world.tree().join("twice")).expect("twice"), "word\nword\nmore\n");
    assert_eq!(std::fs::read_to_string(world.tree().join("unread")).expect("unread"), "kept");
}

#[tokio::test]
async fn copy_move_and_remove_touch_nothing_that_is_there() {
    let calls = [
        ("Copy", json!({"source": "a", "destination": "deep/b"})),
        ("Copy", json!({"source": "a", "destination": "kept"})),
        ("Copy", json!({"source": "leaf", "destination": "stolen"})),
        ("Move", json!({"source": "deep/b", "destination": "kept"})),
        ("Move", json!({"source": "deep/b", "destination": "moved"})),
        ("Move", json!({"source": "deep", "destination": "deep/inside"})),
        ("Remove", json!({"path": "full"})),
        ("Remove", json!({"path": "moved"})),
        ("Remove", json!({"path": "leaf"})),
        ("Remove", json!({"path": "."})),
    ];
    let (world, results) = results(calls, |world| {
        let tree = world.tree();
        std::fs::write(world.root().join("secret"), "outside words").expect("secret");
        std::fs::create_dir_all(tree.join("full/of")).expect("full");
        std::fs::create_dir(tree.join("deep")).expect("deep");
        std::fs::write(tree.join("a"), "a").expect("a");
        std::fs::write(tree.join("kept"), "kept").expect("kept");
        symlink(world.root().join("secret"), tree.join("leaf")).expect("link");
    })
    .await;
    let is_error = results.each_ref().map(|result| result.is_error);
    assert_eq!(is_error, [false, true, true, true, false, true, true, false, false, true], "{results:?}");
    refused(&results[1], "already_exists");
    refused(&results[2], "path_escapes");
    refused(&results[3], "already_exists");
    refused(&results[6], "not_empty");
    let tree = world.tree();
    assert_eq!(std::fs::read_to_string(tree.join("kept")).expect("kept"), "kept");
    assert!(!tree.join("stolen").exists() && !tree.join("moved").exists());
    assert!(std::fs::symlink_metadata(tree.join("leaf")).is_err(), "the link itself is removed");
    assert_eq!(std::fs::read_to_string(world.root().join("secret")).expect("secret"), "outside words");
}
