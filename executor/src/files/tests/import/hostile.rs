//! Archives that must change nothing.

use super::*;
use crate::archive::sample::hostile;

#[tokio::test]
async fn a_hostile_archive_changes_nothing() {
    let ws = Fixture::new();
    ws.put("present", "present");
    ws.put("d/present", "present");
    let before = ws.picture();
    for (case, archive, code) in hostile() {
        for folder in ["", "d", "new/folder"] {
            // Below a folder, climbing once is climbing inside.
            if case.contains("above the root") && !folder.is_empty() {
                continue;
            }
            let error = ws.import_at(folder, &archive).await.expect_err(case);
            assert_eq!(error.code(), code, "{case} in {folder:?}: {error}");
            assert!(!error.to_string().contains(ws.outside.path().to_str().expect("UTF-8")), "{error}");
            assert_eq!(ws.picture(), before, "{case}");
            ws.check_clean();
        }
    }
}

#[tokio::test]
async fn links_and_hard_links_inside_are_made() {
    let ws = Fixture::new();
    let archive = Sample::new()
        .link("early", "d/f")
        .file("d/f", "f")
        .link("d/e/up", "../../d/f")
        .hard_link("d/e/same", "d/f")
        .end();
    let imported = ws.import(&archive).await.expect("imported");
    assert_eq!((imported.files, imported.bytes), (2, 1));
    assert_eq!((ws.on_disk("early"), ws.on_disk("d/e/up")), (b"f".to_vec(), b"f".to_vec()));
    let (one, other) = (fs::metadata(ws.tree.join("d/f")), fs::metadata(ws.tree.join("d/e/same")));
    assert_eq!(one.expect("a file").ino(), other.expect("a file").ino());
}

#[tokio::test]
async fn how_far_a_link_may_climb_counts_from_the_workspace_root() {
    let ws = Fixture::new();
    ws.put("common", "s");
    let archive = Sample::new().link("l", "../../common").end();
    ws.import_at("a/b", &archive).await.expect("inside");
    assert_eq!(ws.on_disk("a/b/l"), b"s");
    assert_eq!(refused(ws.import_at("a", &archive).await), ErrorCode::PathEscapes);
    // A link in the folder's path would make the count wrong.
    ws.link("short", "a/b");
    assert_eq!(refused(ws.import_at("short/c", &archive).await), ErrorCode::PathEscapes);
    assert_eq!(refused(ws.import_at("a/../a", &archive).await), ErrorCode::InvalidArgument);
    ws.check_clean();
}

#[tokio::test]
async fn set_id_bits_go_and_the_owner_can_always_write() {
    let ws = Fixture::new();
    ws.import(&Sample::new().file("d/f", "f").directory("d").end()).await.expect("imported");
    for name in ["d/f", "d"] {
        let mode = fs::metadata(ws.tree.join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
}

#[tokio::test]
async fn a_budget_that_is_exceeded_leaves_nothing() {
    let ws = Fixture::new();
    let archive = Sample::new().file("a/b/one", "12345").file("a/two", "12345").link("l", "a").end();
    for (budget, field) in [
        (ImportBudget { bytes: 9, ..AMPLE }, "max_bytes"),
        (ImportBudget { entries: 4, ..AMPLE }, "max_files"),
    ] {
        let error = ws.unpack("", &archive, budget).await.expect_err("too much");
        assert_eq!(error.code(), ErrorCode::TooLarge);
        assert!(error.fields().contains(&("budget", field.to_owned())), "{error:?}");
        ws.check_clean();
    }
    let exact = ImportBudget { bytes: 10, entries: 5, ..AMPLE };
    ws.files
        .bring_in(ws.unpack("", &archive, exact).await.expect("exactly enough"))
        .await
        .expect("brought in");
    let announced = Sample::new().raw(b'0', "x", "", "77777777777\0", "x").open_end();
    let error = ws.unpack("", &announced, AMPLE).await.expect_err("by its header alone");
    assert_eq!(error.code(), ErrorCode::TooLarge);
    ws.check_clean();
}

#[tokio::test]
async fn a_full_device_is_said_and_nothing_is_left() {
    let outside = tempfile::tempdir().expect("a folder");
    let Some(_mount) = Mount::new(outside.path(), "1m") else { return };
    let ws = Fixture::within(outside);
    ws.put("f", "old");
    let archive = Sample::new().file("f", "new").file("g", vec![b'x'; 2 << 20]).end();
    assert_eq!(refused(ws.import(&archive).await), ErrorCode::NoSpace);
    assert_eq!(ws.on_disk("f"), b"old");
    ws.check_clean();
    let fits = Sample::new().file("f", "new").file("g", vec![b'x'; 1 << 19]).end();
    ws.import(&fits).await.expect("there is room for a little");
    assert_eq!(ws.on_disk("f"), b"new");
}

#[tokio::test]
async fn an_import_that_is_given_up_leaves_nothing() {
    let ws = Fixture::new();
    let archive = Sample::new().file("a/b", vec![b'x'; 100_000]).open_end();
    let import = ws.files.import(ws.path(""), AMPLE).await.expect("begun");
    let import = import.push(vec![Bytes::copy_from_slice(&archive[..50_000])]).await.expect("taken");
    drop(import);
    ws.becomes_clean().await;
}
