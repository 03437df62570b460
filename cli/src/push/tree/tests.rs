use std::ffi::OsStr;
use std::os::unix::fs::symlink;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.entries.iter().map(|entry| entry.path.to_string_lossy().into_owned()).collect()
}

#[test]
fn ignored_files_stay_here_and_history_goes_whatever_the_rules_say() {
    let folder = folder(&[
        (".gitignore", "*.log\nbuild/\nindex\n"),
        (".git/index", ""),
        (".git/refs/build/x.log", ""),
        ("a/.gitignore", "!kept.log\n"),
        ("a/kept.log", ""),
        ("a/lost.log", ""),
        ("build/out", ""),
        ("nested/.git/HEAD", ""),
        (".env", ""),
    ]);
    let tree = Tree::read(folder.path(), false).expect("a tree");
    let expected = [
        ".git",
        ".git/index",
        ".git/refs",
        ".git/refs/build",
        ".git/refs/build/x.log",
        ".env",
        ".gitignore",
        "a",
        "a/.gitignore",
        "a/kept.log",
        "nested",
        "nested/.git",
        "nested/.git/HEAD",
    ];
    assert_eq!(paths(&tree), expected);
    assert!(!tree.has_history_elsewhere);
    let all = Tree::read(folder.path(), true).expect("a tree");
    for path in ["build/out", "a/lost.log", ".git/index"] {
        assert!(paths(&all).contains(&path.to_owned()), "{path}");
    }
}

#[test]
fn rules_above_the_folder_do_not_count() {
    let folder = folder(&[(".gitignore", "*\n"), ("in/file", "")]);
    let tree = Tree::read(&folder.path().join("in"), false).expect("a tree");
    assert_eq!(paths(&tree), ["file"]);
}

#[test]
fn links_that_lead_out_and_special_files_stay_here_and_are_told() {
    let folder = folder(&[("a/file", "x")]);
    let root = folder.path();
    for (name, target) in [
        ("a/up", "../a/file"),
        ("a/out", "../../etc"),
        ("abs", "/etc/passwd"),
        ("dangling", "nowhere"),
        ("winding", "a/../a/file"),
    ] {
        symlink(target, root.join(name)).expect("a link");
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a pipe");
    let tree = Tree::read(root, false).expect("a tree");
    assert_eq!(paths(&tree), ["a", "a/file", "a/up", "dangling"]);
    let left_out: Vec<_> = tree.left_out.iter().map(|(path, _)| path.to_str().expect("UTF-8")).collect();
    assert_eq!(left_out, ["a/out", "abs", "pipe", "winding"]);
}

#[test]
fn names_are_bytes_and_an_empty_folder_is_a_tree() {
    let folder = folder(&[]);
    assert_eq!(Tree::read(folder.path(), false).expect("a tree").entries, []);
    let name = OsStr::from_bytes(b"a\xff\n");
    fs::write(folder.path().join(name), "x").expect("a file");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    let tree = Tree::read(folder.path(), false).expect("a tree");
    assert_eq!(tree.entries[0].path.as_os_str(), name);
    assert_eq!(tree.entries[1].kind, Kind::Directory);
}

#[test]
fn a_worktree_s_history_is_said_to_be_elsewhere() {
    let folder = folder(&[(".git", "gitdir: elsewhere")]);
    assert!(Tree::read(folder.path(), false).expect("a tree").has_history_elsewhere);
}

#[test]
fn rules_that_are_no_file_are_not_opened() {
    for below in ["", "a/b"] {
        for target in ["/dev/zero", "pipe", "rules"] {
            let folder = folder(&[("rules", "*\n"), ("a/b/file", "")]);
            rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), 0o600.into()).expect("a pipe");
            let path = folder.path().join(below).join(".gitignore");
            symlink(target, &path).expect("a link");
            let error = Tree::read(folder.path(), false).expect_err("refused").line();
            assert!(error.contains(".gitignore") && error.contains("no regular file"), "{error}");
            assert!(Tree::read(folder.path(), true).is_ok(), "everything goes without rules");
        }
    }
}
