//! Folders into a workspace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::fixture::{SESSION, World};

/// Names and content of what was imported.
fn imported(world: &World) -> Vec<(Vec<u8>, u64)> {
    let bytes = world.gateway.state().imported.clone();
    let mut archive = tar::Archive::new(bytes.as_slice());
    let entries = archive.entries().expect("an archive").map(|entry| {
        let entry = entry.expect("an entry");
        (entry.path_bytes().trim_ascii_end().to_vec(), entry.size())
    });
    entries.collect()
}

fn names(world: &World) -> Vec<String> {
    imported(world)
        .iter()
        .map(|(name, _)| String::from_utf8_lossy(name).trim_end_matches('/').to_owned())
        .collect()
}

async fn push(world: &World, folder: &Path, more: &[&str]) -> crate::fixture::Ran {
    let folder = folder.to_str().expect("UTF-8");
    world.run([&["session", "push", SESSION, folder], more].concat()).await
}

#[tokio::test]
async fn a_folder_arrives_but_for_what_is_ignored_or_leads_out() {
    let world = World::open().await;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [(".gitignore", "*.log"), ("a.log", ""), ("b", "text"), (".git/HEAD", "ref")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    symlink("/etc/passwd", folder.path().join("out")).expect("a link");
    symlink("b", folder.path().join("in")).expect("a link");
    let ran = push(&world, folder.path(), &["--to", "sub/dir"]).await;
    assert_eq!((ran.code, ran.text().as_str()), (0, ""), "{ran:?}");
    assert!(
        ran.stderr.starts_with("left out: out (a link that leads out of the folder)\npushed "),
        "{ran:?}"
    );
    assert_eq!(names(&world), [".git", ".git/HEAD", ".gitignore", "b", "in"]);
    assert_eq!(world.gateway.state().imported_to, "sub/dir");
    let ran = push(&world, folder.path(), &["--all"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(names(&world).contains(&"a.log".to_owned()));
}

#[tokio::test]
async fn long_names_names_that_are_not_utf8_and_large_files_arrive() {
    let world = World::open().await;
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("d".repeat(200)).join("e".repeat(200));
    std::fs::create_dir_all(&deep).expect("a folder");
    std::fs::write(deep.join("f"), "x").expect("a file");
    std::fs::write(folder.path().join(OsStr::from_bytes(b"\xff\n")), "y").expect("a file");
    let big = std::fs::File::create(folder.path().join("big")).expect("a file");
    big.set_len(20 * 1024 * 1024).expect("a file");
    let ran = push(&world, folder.path(), &[]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = imported(&world);
    assert!(found.contains(&(b"\xff\n".to_vec(), 1)) || found.contains(&(b"\xff".to_vec(), 1)), "{found:?}");
    assert!(found.contains(&(b"big".to_vec(), 20 * 1024 * 1024)));
    assert!(names(&world).contains(&format!("{}/{}/f", "d".repeat(200), "e".repeat(200))));
}

#[tokio::test]
async fn an_empty_folder_is_an_archive_of_nothing() {
    let world = World::open().await;
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(push(&world, folder.path(), &[]).await.code, 0);
    assert_eq!(world.gateway.state().imported, [0; 1024]);
}

#[tokio::test]
async fn a_refusal_in_the_midst_is_what_is_told() {
    let world = World::open().await;
    world.gateway.state().refuses_import = true;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::File::create(folder.path().join("big")).and_then(|file| file.set_len(1 << 28)).expect("a file");
    let ran = push(&world, folder.path(), &[]).await;
    ran.check_failed(&["error: the volume is full (no_space)", "hint: the volume is full: remove files"]);
}

#[tokio::test]
async fn a_preview_asks_nobody() {
    let world = World::open().await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("d")).expect("a folder");
    std::fs::write(folder.path().join("d/\u{1b}f"), "x").expect("a file");
    let ran = push(&world, folder.path(), &["--dry-run", "--kubeconfig", "/nowhere"]).await;
    assert_eq!((ran.code, ran.text().as_str()), (0, "d/\nd/\\x1Bf\n"), "{ran:?}");
    assert_eq!(ran.stderr, "would push 1 file, 1 B\n");
    assert_eq!(world.api().n_exchanges, 0);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_told_before_anybody_is_asked() {
    let world = World::open().await;
    let ran = push(&world, Path::new("/nowhere/at/all"), &[]).await;
    ran.check_failed(&["error: cannot read /nowhere/at/all: No such file"]);
    assert_eq!(world.api().n_exchanges, 0);
}
