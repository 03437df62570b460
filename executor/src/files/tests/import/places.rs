//! How entries take their places, and what is there already.

use super::*;

#[tokio::test]
async fn a_second_import_replaces_files_and_keeps_the_rest() {
    let ws = Fixture::new();
    ws.put("d/kept", "kept");
    ws.put("d/f", "old");
    ws.link("l", "d/f");
    fs::set_permissions(ws.tree.join("d"), fs::Permissions::from_mode(0o750)).expect("chmod");
    let archive =
        Sample::new().directory("d").file("d/f", "new").link("l", "d/kept").file("d/e/new", "new").end();
    ws.import(&archive).await.expect("imported");
    assert_eq!((ws.on_disk("d/f"), ws.on_disk("d/kept")), (b"new".to_vec(), b"kept".to_vec()));
    assert_eq!((ws.on_disk("l"), ws.on_disk("d/e/new")), (b"kept".to_vec(), b"new".to_vec()));
    assert_eq!(fs::metadata(ws.tree.join("d")).expect("d").permissions().mode() & 0o777, 0o750);
    ws.import(&archive).await.expect("as often as one likes");
    ws.becomes_clean().await;
}

#[tokio::test]
async fn an_import_counts_as_a_change_for_whoever_read_the_file() {
    let ws = Fixture::new();
    ws.put("f", "old");
    ws.read("f").await.expect("read");
    ws.import(&Sample::new().file("f", "new").file("g", "new").end()).await.expect("imported");
    assert_eq!(code(ws.write("f", "mine").await), ErrorCode::StaleVersion);
    assert_eq!(code(ws.edit("f", "old", "mine").await), ErrorCode::StaleVersion);
    assert_eq!(code(ws.write("g", "mine").await), ErrorCode::Unread);
    assert_eq!(ws.on_disk("f"), b"new");
}

#[tokio::test]
async fn kinds_never_change_and_no_link_of_the_tree_is_followed() {
    let ws = Fixture::new();
    ws.put("file", "f");
    ws.put("folder/f", "f");
    ws.put("z", "old");
    ws.link("link", "folder");
    ws.link("out", "../ws-secret");
    ws.link("loot", "../ws-secret/loot");
    assert!(Command::new("mkfifo").arg(ws.tree.join("pipe")).status().expect("mkfifo").success());
    let before = ws.picture();
    // A file that would be replaced and one that would be new come with each.
    let with = |sample: Sample| sample.file("z", "new").file("new", "new").end();
    for archive in [
        with(Sample::new().file("file/x", "x")),
        with(Sample::new().directory("file")),
        with(Sample::new().link("file", "z")),
        with(Sample::new().file("folder", "x")),
        with(Sample::new().link("folder", "z")),
        with(Sample::new().file("link", "x")),
        with(Sample::new().file("link/x", "x")),
        with(Sample::new().file("out/x", "x")),
        with(Sample::new().directory("out")),
        with(Sample::new().file("loot", "x")),
        with(Sample::new().file("pipe", "x")),
    ] {
        let error = ws.import(&archive).await.expect_err("another kind");
        assert_eq!(error.code(), ErrorCode::AlreadyExists, "{error}");
        assert_eq!(ws.picture(), before, "{error}");
        ws.becomes_clean().await;
    }
    for folder in ["file", "file/x"] {
        assert_eq!(refused(ws.import_at(folder, &with(Sample::new())).await), ErrorCode::NotFound);
    }
    for folder in ["out", "link", "out/x", "../ws-secret", "/etc"] {
        let outcome = ws.import_at(folder, &with(Sample::new())).await.expect_err(folder);
        assert!(matches!(outcome.code(), ErrorCode::PathEscapes | ErrorCode::InvalidArgument), "{folder}");
    }
    assert_eq!(ws.picture(), before);
}

#[tokio::test]
async fn an_error_on_the_way_takes_everything_back() {
    let ws = Fixture::new();
    for name in ["a", "m", "z"] {
        ws.put(&format!("{name}/f"), "old");
    }
    // Nothing can be renamed onto another mount, which shows only when it is tried.
    let Some(_mount) = Mount::new(&ws.tree.join("mnt"), "1m") else { return };
    let before = ws.picture();
    let archive = Sample::new()
        .file("a/f", "new")
        .file("a/new", "new")
        .file("m/f", "new")
        .file("mnt/deep/f", "new")
        .file("z/f", "new")
        .file("new/f", "new")
        .end();
    assert_eq!(refused(ws.import(&archive).await), ErrorCode::Unsupported);
    assert_eq!(ws.picture(), before);
    ws.becomes_clean().await;
    // Into the mount itself it goes, past the stage folder.
    ws.import_at("mnt", &archive).await.expect("imported");
    assert_eq!(ws.on_disk("mnt/mnt/deep/f"), b"new");
    ws.becomes_clean().await;
}

#[tokio::test]
async fn a_stage_on_another_device_leaves_nothing_in_the_tree() {
    let outside = tempfile::tempdir().expect("a folder");
    let stage = outside.path().join("stage");
    let Some(_mount) = Mount::new(&stage, "64m") else { return };
    let ws = Fixture::with_stage(outside, &stage);
    ws.put("d/f", "old");
    ws.import_at("d", &Sample::new().file("f", "new").file("g", "new").end()).await.expect("imported");
    ws.import_at("e/f", &Sample::new().file("f", "new").end()).await.expect("imported");
    assert_eq!((ws.on_disk("d/f"), ws.on_disk("e/f/f")), (b"new".to_vec(), b"new".to_vec()));
    assert_eq!(
        refused(ws.import_at("d", &Sample::new().file("x/../f", "").end()).await),
        ErrorCode::PathEscapes
    );
    ws.becomes_clean().await;
}

#[tokio::test]
async fn a_new_executor_removes_a_half_unpacked_tree_of_any_depth() {
    let outside = tempfile::tempdir().expect("a folder");
    let stage = outside.path().join("stage");
    let Some(_mount) = Mount::new(&stage, "64m") else { return };
    let ws = Fixture::with_stage(outside, &stage);
    ws.put("d/kept", "kept");
    let deep = "d/".repeat(1500) + "f";
    let archive = Sample::new().long(b'L', &deep).file("x", "x").link("l", ".").open_end();
    // In the tree, since the stage is elsewhere; forgotten, as by a process that was killed.
    let import = ws.files.import(ws.path("d"), AMPLE).await.expect("begun");
    let import = import.push(vec![Bytes::from(archive.clone())]).await.expect("taken");
    std::mem::forget(import);
    assert_eq!(fs::read_dir(ws.tree.join("d")).expect("d").count(), 2);
    // And in the stage folder itself.
    fs::create_dir(stage.join("tree")).expect("a folder");
    let inner = Fixture::with_stage(tempfile::tempdir().expect("a folder"), &stage.join("tree"));
    let again = fs::File::open(&stage).expect("the stage");
    drop(Stage::open(&again, ws.files.root()).expect("recovered"));
    drop(inner);
    assert_eq!(fs::read_dir(ws.tree.join("d")).expect("d").count(), 1);
    assert_eq!(fs::read_dir(&stage).expect("the stage").count(), 0);
}

#[tokio::test]
async fn a_tree_of_any_depth_is_brought_in_merged_and_packed() {
    let ws = Fixture::new();
    let deep = "d/".repeat(1500) + "f";
    let archive = |content: &str| Sample::new().long(b'L', &deep).file("x", content).end();
    ws.import(&archive("old")).await.expect("imported");
    ws.import(&archive("new")).await.expect("merged");
    let (packed, report) = ws.pack("").await.expect("packed");
    assert_eq!((report.files, report.skipped_total), (1, 0));
    assert!(packed.windows(3).any(|bytes| bytes == b"new"));
    ws.becomes_clean().await;
    fs::rename(ws.tree.join("d"), ws.outside.path().join("stage/d")).expect("moved");
    let stage = fs::File::open(ws.outside.path().join("stage")).expect("the stage");
    drop(Stage::open(&stage, ws.files.root()).expect("emptied"));
    ws.becomes_clean().await;
}

#[tokio::test]
async fn imports_and_writes_to_one_file_never_mix() {
    let ws = Fixture::new();
    ws.put("f", "start");
    ws.read("f").await.expect("read");
    let archives: Vec<_> = (0..20).map(|n| Sample::new().file("f", format!("import {n}")).end()).collect();
    let imports = async {
        for archive in &archives {
            ws.import(archive).await.expect("imported");
        }
    };
    let writes = async {
        for n in 0..20 {
            let known = ws.read("f").await.expect("read");
            match ws.write("f", format!("write {n}")).await {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::StaleVersion, "after {known:?}");
                }
            }
        }
    };
    tokio::join!(imports, writes);
    let last = String::from_utf8(ws.on_disk("f")).expect("text");
    assert!(last.starts_with("import ") || last.starts_with("write "), "{last}");
    ws.becomes_clean().await;
}

#[test]
fn without_a_call_for_it_files_change_places_all_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = ["one", "other"].map(|name| {
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        fs::write(path.join("f"), name).expect("a file");
        std::os::fd::OwnedFd::from(fs::File::open(path).expect("open"))
    });
    let content = |name: &str| fs::read_to_string(folder.path().join(name).join("f")).expect("a file");
    crate::files::import::exchange_by_link(&one, &other, b"f").expect("changed");
    assert_eq!((content("one"), content("other")), ("other".to_owned(), "one".to_owned()));
    crate::files::import::exchange_by_link(&one, &other, b"f").expect("changed back");
    assert_eq!((content("one"), content("other")), ("one".to_owned(), "other".to_owned()));
    assert_eq!(fs::read_dir(folder.path().join("one")).expect("one").count(), 1);
}
