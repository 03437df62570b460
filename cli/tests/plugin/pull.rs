//! Workspaces to here.

use std::path::Path;

use tar::{Builder, EntryType, Header};

use crate::fixture::{Ran, SESSION, World};

/// An archive of files, and of a link where a name has an arrow.
fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = Header::new_ustar();
        header.set_mode(0o6777);
        header.set_mtime(1_700_000_000);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(target) = content.strip_prefix("-> ") {
            header.set_entry_type(EntryType::Symlink);
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, std::io::empty()).expect("an entry");
        } else {
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).expect("an entry");
        }
    }
    builder.into_inner().expect("an archive")
}

async fn world(entries: &[(&str, &str)]) -> World {
    let world = World::open().await;
    world.gateway.state().archive = archive(entries);
    world
}

async fn pull(world: &World, folder: &Path, more: &[&str]) -> Ran {
    let folder = folder.to_str().expect("UTF-8");
    world.run([&["session", "pull", SESSION, folder], more].concat()).await
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_workspace_arrives_in_a_new_folder() {
    let world = world(&[("a/b", "text"), ("l", "-> a/b"), (".git/config", "[core]")]).await;
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("new");
    let ran = pull(&world, &folder, &[]).await;
    assert_eq!((ran.code, ran.text().as_str()), (0, ""), "{ran:?}");
    assert_eq!(std::fs::read_to_string(folder.join("l")).expect("a file"), "text");
    assert_eq!(names(above.path()), ["new"]);
    assert_eq!(names(&folder), ["a", "l"]);
    assert!(ran.stderr.contains("left out: sock\\x1Bet (neither a file"), "{ran:?}");
    assert!(ran.stderr.contains("left out: .git"), "{ran:?}");
    assert!(ran.stderr.contains("pulled 1 file, 4 B, into "), "{ran:?}");
    let ran = pull(&world, &folder, &["--force", "--with-git"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(&folder), [".git", "a", "l"]);
}

#[tokio::test]
async fn files_that_are_there_stay_unless_force_says_otherwise() {
    let world = world(&[("a", "new"), ("b", "new")]).await;
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "mine"] {
        std::fs::write(folder.path().join(name), "old").expect("a file");
    }
    let ran = pull(&world, folder.path(), &[]).await;
    ran.check_failed(&["error: 1 of the files are there already, such as ", "hint: --force replaces them"]);
    assert_eq!(names(folder.path()), ["a", "mine"]);
    let ran = pull(&world, folder.path(), &["--force"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(names(folder.path()), ["a", "b", "mine"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("a")).expect("a file"), "new");
    assert_eq!(std::fs::read_to_string(folder.path().join("mine")).expect("a file"), "old");
}

#[tokio::test]
async fn a_hostile_archive_changes_nothing() {
    for entries in [
        &[("good", "x"), ("../loot", "x")][..],
        &[("good", "x"), ("/tmp/loot", "x")],
        &[("l", "-> /etc"), ("l/passwd", "x")],
        &[("l", "-> ../.."), ("good", "x")],
        &[("good", "x"), ("good", "y")],
        &[("d/\u{1b}[2J/../x", "x")],
    ] {
        let world = world(entries).await;
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("new");
        let ran = pull(&world, &folder, &[]).await;
        ran.check_failed(&["error: the archive holds ", "nothing was changed", "hint: somebody tampered"]);
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
        assert_eq!(names(above.path()), Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_archive_that_is_none_or_not_what_was_sent_changes_nothing() {
    let above = tempfile::tempdir().expect("a folder");
    let world = world(&[("a", "x")]).await;
    world.gateway.state().damages = true;
    pull(&world, above.path(), &[]).await.check_failed(&["error: the archive did not arrive as it was sent"]);
    world.gateway.state().damages = false;
    world.gateway.state().archive = b"no archive".repeat(100);
    pull(&world, above.path(), &[]).await.check_failed(&["error: what came is no archive"]);
    world.gateway.state().archive.clear();
    pull(&world, above.path(), &[]).await.check_failed(&["error: what came is no archive"]);
    assert_eq!(names(above.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_large_workspace_arrives() {
    let text = "x".repeat(24 * 1024 * 1024);
    let world = world(&[("big", &text), ("small", "y")]).await;
    let above = tempfile::tempdir().expect("a folder");
    let ran = pull(&world, &above.path().join("new"), &[]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(std::fs::read_to_string(above.path().join("new/big")).expect("a file") == text);
}
