//! Writing and editing: the ledger, atomic replacement, and what stays as it was.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;

fn mode(ws: &Fixture, name: &str) -> u32 {
    fs::metadata(ws.tree.join(name)).expect("a file").mode() & 0o7777
}

#[tokio::test]
async fn a_new_file_gets_its_folders_and_mode_0644() {
    let ws = Fixture::new();
    let written = ws.write("a/b/c.txt", "hello").await.expect("written");
    assert!(written.created && written.size == 5);
    assert_eq!(ws.on_disk("a/b/c.txt"), b"hello");
    assert_eq!(mode(&ws, "a/b/c.txt"), 0o644);
    ws.write("a/b/c.txt", "again").await.expect("its own version is known");
    ws.write("empty", "").await.expect("no content is content");
    assert_eq!(ws.on_disk("empty"), b"");
    ws.check_clean();
}

#[tokio::test]
async fn only_who_has_read_a_file_may_overwrite_it() {
    let ws = Fixture::new();
    ws.put("f", "one");
    let refused = ws.write("f", "two").await.expect_err("unread");
    assert_eq!(refused.code(), ErrorCode::Unread);
    assert!(refused.to_string().contains("no data was lost"), "{refused}");
    assert_eq!(code(ws.edit("f", "one", "two").await), ErrorCode::Unread);
    ws.read("f").await.expect("read");
    assert_eq!(code(ws.write_as("person:ann", "f", b"two").await), ErrorCode::Unread);
    ws.write("./f", "two").await.expect("another spelling of what was read");
    assert_eq!(ws.on_disk("f"), b"two");
    ws.check_clean();
}

#[tokio::test]
async fn reading_a_part_licenses_a_write_and_a_change_by_anybody_ends_it() {
    let ws = Fixture::new();
    ws.put("f", "one\ntwo\n");
    ws.lines("f", 2, 1, 100).await.expect("read in part");
    ws.put("f", "ONE\ntwo\n");
    assert_eq!(code(ws.write("f", "x").await), ErrorCode::StaleVersion);
    assert_eq!(code(ws.edit("f", "two", "x").await), ErrorCode::StaleVersion);
    ws.read("f").await.expect("read");
    ws.put("f", "ONE\ntwo\n");
    ws.edit("f", "two", "2").await.expect("the same bytes are the same version");
    fs::remove_file(ws.tree.join("f")).expect("removed");
    assert!(ws.write("f", "new").await.expect("absent: created").created);
    ws.check_clean();
}

#[tokio::test]
async fn edits_follow_each_other_and_keep_mode_and_line_ends() {
    let ws = Fixture::new();
    ws.put("run.sh", b"\xef\xbb\xbf#!/bin/sh\r\necho one\r\nexit");
    fs::set_permissions(ws.tree.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("mode");
    ws.read("run.sh").await.expect("read");
    let edited = ws.edit("run.sh", "one", "two").await.expect("edited");
    assert_eq!((edited.replacements, edited.link_count, edited.size), (1, 1, 28));
    ws.edit("run.sh", "two", "three").await.expect("without a new read");
    assert_eq!(ws.on_disk("run.sh"), b"\xef\xbb\xbf#!/bin/sh\r\necho three\r\nexit");
    assert_eq!(mode(&ws, "run.sh"), 0o755);
    ws.write("run.sh", "x").await.expect("written");
    assert_eq!(mode(&ws, "run.sh"), 0o755);
    assert_eq!(code(ws.edit("run.sh", "absent", "x").await), ErrorCode::NoMatch);
    ws.check_clean();
}

#[tokio::test]
async fn a_hard_link_keeps_the_old_bytes_and_the_edit_says_so() {
    let ws = Fixture::new();
    ws.put("f", "old");
    fs::hard_link(ws.tree.join("f"), ws.outside.path().join("partner")).expect("a hard link");
    ws.read("f").await.expect("read");
    assert_eq!(ws.edit("f", "old", "new").await.expect("edited").link_count, 2);
    assert_eq!(fs::read(ws.outside.path().join("partner")).expect("partner"), b"old");
    assert_eq!(ws.on_disk("f"), b"new");
}

#[tokio::test]
async fn of_two_creators_only_one_wins_and_nothing_is_overwritten() {
    let ws = Fixture::new();
    for n in 0..50 {
        let (name, one, two) = (format!("dir-{n}/f"), format!("one {n}"), format!("two {n}"));
        let (first, second) =
            tokio::join!(ws.write_as("a", &name, one.as_bytes()), ws.write_as("b", &name, two.as_bytes()));
        let winner = if first.is_ok() { one } else { two };
        assert_eq!(ws.on_disk(&name), winner.as_bytes());
        assert_eq!(code(if first.is_ok() { second } else { first }), ErrorCode::Unread);
    }
    ws.check_clean();
}

#[tokio::test]
async fn changes_of_one_file_by_one_actor_come_one_after_the_other() {
    let ws = Fixture::new();
    ws.put("f", "0");
    ws.read("f").await.expect("read");
    let edits = (0..20).map(|n| ws.edit_owned("f", n.to_string(), (n + 1).to_string()));
    let done = futures::future::join_all(edits).await.into_iter().flatten().count();
    let value: usize = String::from_utf8(ws.on_disk("f")).expect("text").parse().expect("a number");
    assert_eq!(value, done, "each edit that succeeded is in the file");
    assert!(done >= 1);
    ws.check_clean();
}

impl Fixture {
    async fn edit_owned(&self, text: &str, old: String, new: String) -> Outcome<Edited> {
        self.edit(text, &old, &new).await
    }
}

#[tokio::test]
async fn content_that_is_not_what_was_announced_is_not_written() {
    let ws = Fixture::new();
    let upload = |content: &'static [u8]| {
        let mut upload = ws.files.upload(ws.path("f"));
        async move {
            upload.push(Bytes::from_static(content)).await.expect("taken");
            upload
        }
    };
    let short = upload(b"abc").await.finish(4, &Sha256::digest(b"abc"));
    assert_eq!(short.expect_err("size"), FileError::Transfer { what: "size" });
    let other = upload(b"abc").await.finish(3, &Sha256::digest(b"abd"));
    assert_eq!(other.expect_err("digest"), FileError::Transfer { what: "digest" });
    let none = upload(b"abc").await.finish(3, b"");
    assert_eq!(none.expect_err("digest").code(), ErrorCode::InvalidArgument);
    assert!(!ws.tree.join("f").exists());
    let mut large = upload(b"abc").await;
    large.push(vec![7; 3 << 20].into()).await.expect("taken");
    drop(large);
    ws.check_clean();
}

#[tokio::test]
async fn a_write_that_is_refused_leaves_no_folder_it_made() {
    let ws = Fixture::new();
    ws.put("file", "x");
    assert_eq!(code(ws.write("new/deep/../../file", "y").await), ErrorCode::Unread);
    assert_eq!(code(ws.write("file/x", "y").await), ErrorCode::NotFound);
    assert!(!ws.tree.join("new").exists());
    ws.check_clean();
}

#[tokio::test]
async fn a_large_file_is_known_by_its_times_and_a_change_is_seen() {
    let ws = Fixture::new();
    let sparse = fs::File::create(ws.tree.join("big")).expect("a file");
    sparse.set_len(HASHED_UP_TO_BYTES + 1).expect("sparse");
    let reading = ws.lines("big", 1, 1, 100).await.expect("read");
    assert!(matches!(reading.version, Version::Stat(_)));
    assert!(matches!(ws.edit("big", "a", "b").await, Err(FileError::TooLarge { .. })));
    std::os::unix::fs::FileExt::write_at(&sparse, b"x", 5).expect("changed");
    assert_eq!(code(ws.write("big", "small").await), ErrorCode::StaleVersion);
    ws.lines("big", 1, 1, 100).await.expect("read");
    ws.write("big", "small").await.expect("read since");
    assert_eq!(ws.on_disk("big"), b"small");
}

#[tokio::test]
async fn a_large_write_is_known_to_its_writer() {
    let ws = Fixture::new();
    let content = vec![b'x'; usize::try_from(HASHED_UP_TO_BYTES).expect("64 MiB") + 1];
    let written = ws.write("big", &content).await.expect("written");
    assert!(matches!(written.version, Version::Stat(_)));
    ws.write("big", "small").await.expect("its own version is known");
    ws.check_clean();
}
