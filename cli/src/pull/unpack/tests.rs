use std::os::unix::fs::MetadataExt as _;

use super::sample::{END, file, folder, link};
use super::*;

fn unpacked(parts: &[Vec<u8>], with_git: bool) -> (tempfile::TempDir, Result<Unpacked, Error>) {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("tree")).expect("a folder");
    let bytes = [parts.concat(), END.to_vec()].concat();
    let result = unpack(bytes.as_slice(), &root.path().join("tree"), with_git);
    (root, result)
}

#[track_caller]
fn check_hostile(parts: &[Vec<u8>], expected: &str) {
    let (root, result) = unpacked(parts, true);
    match result {
        Err(Error::Hostile { why, .. }) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    }
    let beside: Vec<_> = fs::read_dir(root.path()).expect("a folder").collect();
    assert_eq!(beside.len(), 1, "nothing is written beside the folder");
}

#[test]
fn files_folders_and_links_are_what_they_were() {
    let parts =
        [folder(b"a/"), file(b"a/run", b"#!", 0o4755), link(b"a/l", b"../a/run"), file(b"b/c", b"", 0o444)];
    let (root, result) = unpacked(&parts, false);
    let result = result.expect("unpacked");
    assert_eq!((result.n_files, result.n_bytes, result.n_git), (2, 2, 0));
    let run = root.path().join("tree/a/run");
    // Neither set-id nor what the mask takes away.
    assert_eq!(run.metadata().expect("a file").mode() & 0o7700, 0o700);
    assert_eq!(fs::read_link(root.path().join("tree/a/l")).expect("a link"), Path::new("../a/run"));
    assert!(root.path().join("tree/b/c").is_file());
}

#[test]
fn links_that_lead_out_and_what_lies_below_a_link_are_refused() {
    let out = "is a link that leads out of the folder";
    check_hostile(&[link(b"l", b"/etc/passwd")], out);
    check_hostile(&[link(b"l", b"../x")], out);
    check_hostile(&[folder(b"d"), link(b"d/l", b"../../x")], out);
    check_hostile(&[link(b"l", b"")], out);
    check_hostile(&[link(b"l", b"d/../../x")], out);
    let below = "lies below a file or a link";
    check_hostile(&[folder(b"d"), link(b"l", b"d"), file(b"l/x", b"", 0o644)], below);
    check_hostile(&[file(b"f", b"", 0o644), file(b"f/x", b"", 0o644)], below);
    check_hostile(&[link(b"l", b"d"), folder(b"l/x")], below);
}

#[test]
fn nothing_is_written_twice() {
    let twice = "comes twice";
    check_hostile(&[link(b"l", b"d"), file(b"l", b"", 0o644)], twice);
    check_hostile(&[link(b"l", b"d"), folder(b"l")], twice);
    check_hostile(&[file(b"f", b"", 0o644), file(b"./f", b"", 0o644)], twice);
    check_hostile(&[folder(b"f"), link(b"f", b"x")], twice);
}

#[test]
fn what_git_would_run_stays_out_unless_it_is_asked_for() {
    let parts = [
        folder(b".git"),
        file(b".git/config", b"x", 0o644),
        file(b"a/.GIT/hooks/post-merge", b"", 0o755),
        link(b"b/.git", b"x"),
    ];
    let (root, result) = unpacked(&parts, false);
    assert_eq!(result.expect("unpacked").n_git, 4);
    assert_eq!(fs::read_dir(root.path().join("tree")).expect("a folder").count(), 0);
    let (_root, result) = unpacked(&parts, true);
    assert_eq!(result.expect("unpacked").n_files, 2);
}
