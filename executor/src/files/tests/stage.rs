//! Other devices, full ones, and what a dead executor left.

use std::path::Path;
use std::process::Command;

use super::*;

/// A small file system, where the tests may mount one.
pub(super) struct Mount(PathBuf);

impl Mount {
    pub(super) fn new(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(at).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("left out: mounting a tmpfs needs privilege");
        }
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_stage_on_another_device_leaves_nothing_beside_the_target() {
    let outside = tempfile::tempdir().expect("a folder");
    let stage = outside.path().join("stage");
    let Some(_mount) = Mount::new(&stage, "64m") else { return };
    let ws = Fixture::with_stage(outside, &stage);
    ws.write("new/f", "one").await.expect("created");
    ws.write("new/f", "two").await.expect("replaced");
    ws.edit("new/f", "two", "three").await.expect("edited");
    ws.copy("new/f", "new/g").await.expect("copied");
    let large = vec![b'x'; 3 << 20];
    ws.write("large", &large).await.expect("created across devices");
    assert!(ws.on_disk("large") == large);
    assert_eq!(ws.on_disk("new/g"), b"three");
    assert_eq!(code(ws.write_as("other", "large", b"x").await), ErrorCode::Unread);
    ws.check_clean();
}

#[tokio::test]
async fn a_mount_inside_the_tree_is_written_but_neither_moved_across_nor_removed() {
    let ws = Fixture::new();
    ws.put("f", "f");
    let Some(_mount) = Mount::new(&ws.tree.join("mnt"), "1m") else { return };
    ws.write("mnt/deep/g", "g").await.expect("written");
    assert_eq!(code(ws.relocate("f", "mnt/f").await), ErrorCode::Unsupported);
    fs::remove_dir_all(ws.tree.join("mnt/deep")).expect("emptied");
    assert_eq!(code(ws.remove("mnt").await), ErrorCode::Unsupported);
    ws.check_clean();
}

#[tokio::test]
async fn a_full_device_keeps_the_old_bytes_and_no_temporary() {
    let outside = tempfile::tempdir().expect("a folder");
    let Some(_mount) = Mount::new(outside.path(), "1m") else { return };
    let ws = Fixture::within(outside);
    ws.put("f", "old");
    ws.read("f").await.expect("read");
    assert_eq!(code(ws.write("f", vec![b'x'; 2 << 20]).await), ErrorCode::NoSpace);
    assert_eq!(code(ws.write("f", vec![b'x'; 1 << 20]).await), ErrorCode::NoSpace);
    assert_eq!(code(ws.write("new/deep/g", vec![b'x'; 1 << 20]).await), ErrorCode::NoSpace);
    assert_eq!(ws.on_disk("f"), b"old");
    assert!(!ws.tree.join("new").exists());
    ws.check_clean();
    ws.write("f", "new").await.expect("there is room for a little");
}

#[tokio::test]
async fn a_device_that_turns_read_only_is_said_and_still_read() {
    let outside = tempfile::tempdir().expect("a folder");
    let Some(mount) = Mount::new(outside.path(), "1m") else { return };
    let ws = Fixture::within(outside);
    ws.put("f", "old");
    ws.read("f").await.expect("read");
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(&mount.0).status();
    assert!(remounted.is_ok_and(|status| status.success()));
    assert_eq!(code(ws.write("f", "new").await), ErrorCode::ReadOnly);
    assert_eq!(code(ws.edit("f", "old", "new").await), ErrorCode::ReadOnly);
    assert_eq!(code(ws.write("dir/new", "new").await), ErrorCode::ReadOnly);
    assert_eq!(code(ws.remove("f").await), ErrorCode::ReadOnly);
    assert_eq!(ws.read("f").await.expect("read"), b"old");
}

#[tokio::test]
async fn an_immutable_file_stays_as_it_is() {
    let ws = Fixture::new();
    ws.put("f", "old");
    ws.read("f").await.expect("read");
    let set = |flag| {
        let done = Command::new("chattr").arg(flag).arg(ws.tree.join("f")).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !set("+i") {
        eprintln!("left out: the immutable attribute needs privilege and a file system that has it");
        return;
    }
    let outcomes = (code(ws.write("f", "new").await), code(ws.remove("f").await), ws.read("f").await);
    assert!(set("-i"));
    assert_eq!(outcomes, (ErrorCode::PermissionDenied, ErrorCode::PermissionDenied, Ok(b"old".to_vec())));
    ws.check_clean();
}

#[tokio::test]
async fn a_new_executor_removes_what_a_dead_one_left_and_nothing_else() {
    let ws = Fixture::new();
    let ours = format!(".mooring-{}", "0".repeat(32));
    ws.put(&format!("dir/{ours}"), "half");
    ws.put("dir/.mooring-notes", "a person's");
    ws.put("dir/kept", "kept");
    let stage = ws.outside.path().join("stage");
    symlink(format!("dir/{ours}"), stage.join("beside-1")).expect("an entry");
    symlink("dir/kept", stage.join("beside-2")).expect("an entry that names no temporary of ours");
    symlink(format!("../ws-secret/{ours}"), stage.join("beside-3")).expect("an entry that leaves the tree");
    fs::write(stage.join("0123"), "half").expect("a temporary");
    fs::create_dir_all(stage.join("old/deep")).expect("folders");
    symlink(ws.tree.join("dir"), stage.join("old/link")).expect("a link");
    fs::write(ws.outside.path().join("ws-secret").join(&ours), "loot").expect("a file");
    let again = fs::File::open(&stage).expect("the stage");
    drop(Stage::open(&again, ws.files.root()).expect("recovered"));
    let mut left: Vec<_> =
        fs::read_dir(ws.tree.join("dir")).expect("a folder").flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, [".mooring-notes", "kept"]);
    assert!(ws.outside.path().join("ws-secret").join(&ours).exists());
    fs::remove_file(ws.outside.path().join("ws-secret").join(&ours)).expect("removed");
    assert_eq!(fs::read_dir(stage).expect("the stage").count(), 0);
}
