//! Calls on files.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;

use crate::fixture::{SESSION, World, finish};

async fn world(files: &[(&str, &[u8])]) -> World {
    let world = World::open().await;
    for (name, content) in files {
        world.gateway.state().files.insert((*name).to_owned(), content.to_vec());
    }
    world
}

fn about<'a>(verb: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["session", "files", verb, SESSION], words].concat()
}

#[tokio::test]
async fn a_large_file_is_read_byte_for_byte() {
    let content: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let world = world(&[("big", &content)]).await;
    let ran = world.run(about("read", &["big"])).await;
    assert!(ran.code == 0 && ran.stdout == content, "{}", ran.stderr);
}

#[tokio::test]
async fn a_file_that_did_not_arrive_as_it_was_sent_is_told() {
    let world = world(&[("a", b"content")]).await;
    world.gateway.state().damages = true;
    world.run(about("read", &["a"])).await.check_failed(&["error: the file did not arrive as it was sent"]);
}

#[tokio::test]
async fn standard_input_becomes_a_file() {
    let world = world(&[]).await;
    let content = vec![7; 3 * 1024 * 1024];
    let mut program =
        world.command(about("write", &["new"])).stdin(Stdio::piped()).spawn().expect("the program");
    let mut input = program.stdin.take().expect("a pipe");
    let write = async {
        input.write_all(&content).await.expect("it is read");
        drop(input);
    };
    let (ran, ()) = tokio::join!(finish(program), write);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(world.gateway.state().files["new"] == content, "it arrives as it was");
}

#[tokio::test]
async fn a_refusal_does_not_wait_for_standard_input() {
    let world = world(&[("a", b"old")]).await;
    let mut program =
        world.command(about("write", &["a"])).stdin(Stdio::piped()).spawn().expect("the program");
    let mut input = program.stdin.take().expect("a pipe");
    input.write_all(&vec![1; 1024 * 1024]).await.expect("it is read");
    let ran = finish(program).await;
    ran.check_failed(&["error: a was not read (unread)", "hint: read it first"]);
    drop(input);
}

#[tokio::test]
async fn names_from_a_workspace_tell_a_terminal_nothing() {
    let world = world(&[("a\u{1b}]0;x\u{7}", b"1"), ("b\u{202e}", b"22")]).await;
    let ran = world.run(about("list", &[])).await;
    assert_eq!(ran.text(), "KIND   SIZE   NAME\nfile   1      a\\x1B]0;x\\x07\nfile   2      b\\u{202e}\n");
    let ran = world.run(about("list", &["-o", "json"])).await;
    assert!(ran.text().contains(r#""name": "a\u001b]0;x\u0007""#), "{}", ran.text());
    assert!(ran.text().contains(r#""name": "b\u202e""#), "{}", ran.text());
    let ran = world.run(about("grep", &["x"])).await;
    assert_eq!(ran.text(), "a:3:x\\x1B[2J\n");
}

#[tokio::test]
async fn each_call_has_its_verb() {
    let world = world(&[("a", b"123")]).await;
    for (verb, words, expected) in [
        (
            "stat",
            &["a", "-o", "yaml"][..],
            "kind: file\nsizeBytes: 3\nmode: '0644'\nmodified: 1970-01-01T00:00:00Z\n",
        ),
        ("glob", &["**"], "a/b\n"),
        ("copy", &["a", "b"], ""),
        ("move", &["a", "b"], ""),
        ("remove", &["a"], ""),
    ] {
        let ran = world.run(about(verb, words)).await;
        assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (0, expected, ""), "{verb}");
    }
    let ran = world.run(about("edit", &["a", "--old", "-x", "--new", ""])).await;
    ran.check_failed(&["error: 2 matches (ambiguous_match)", "hint: name more of the text"]);
}
