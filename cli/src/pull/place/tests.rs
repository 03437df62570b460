use std::os::unix::fs::symlink;

use super::*;

/// A destination in `folder` whose hidden tree has these: a name that ends in a slash is a folder.
fn prepared(folder: &Path, names: &[&str]) -> (Destination, Vec<(PathBuf, Made)>) {
    let destination = Destination::prepare(folder).expect("a destination");
    let mut entries = Vec::new();
    for name in names {
        let path = destination.tree().join(name);
        if name.ends_with('/') {
            fs::create_dir(&path).expect("a folder");
            entries.push((PathBuf::from(name.trim_end_matches('/')), Made::Directory));
        } else {
            fs::write(&path, "new").expect("a file");
            entries.push((PathBuf::from(name), Made::Leaf));
        }
    }
    (destination, entries)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_new_folder_appears_whole_and_nothing_hidden_stays() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("new");
    let (destination, entries) = prepared(&folder, &["a/", "a/b"]);
    assert!(!folder.exists());
    destination.place(&entries, false).expect("placed");
    assert_eq!(fs::read_to_string(folder.join("a/b")).expect("a file"), "new");
    assert_eq!(names(above.path()), ["new"]);
}

#[test]
fn files_that_are_there_are_replaced_by_force_alone_and_others_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("a")).expect("a folder");
    for name in ["a/b", "mine"] {
        fs::write(folder.path().join(name), "old").expect("a file");
    }
    let (destination, entries) = prepared(folder.path(), &["a/", "a/b", "a/c", "d/", "d/e"]);
    let refused = destination.place(&entries, false);
    assert!(matches!(refused, Err(Error::Overwrites { count: 1, .. })), "{refused:?}");
    assert_eq!(names(folder.path()), ["a", "mine"]);
    assert_eq!(names(&folder.path().join("a")), ["b"]);
    let (destination, entries) = prepared(folder.path(), &["a/", "a/b", "a/c", "d/", "d/e"]);
    destination.place(&entries, true).expect("placed");
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    assert_eq!([text("a/b"), text("a/c"), text("d/e"), text("mine")], ["new", "new", "new", "old"]);
    assert_eq!(names(folder.path()), ["a", "d", "mine"]);
}

#[test]
fn nothing_is_written_through_a_link_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), folder.path().join("a")).expect("a link");
    let (destination, entries) = prepared(folder.path(), &["a/", "a/b"]);
    let refused = destination.place(&entries, true);
    assert!(matches!(refused, Err(Error::OtherKind { .. })), "{refused:?}");
    assert_eq!(names(outside.path()), Vec::<String>::new());
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::NamedTempFile::new().expect("a file");
    symlink(outside.path(), folder.path().join("f")).expect("a link");
    let (destination, entries) = prepared(folder.path(), &["f"]);
    destination.place(&entries, true).expect("placed");
    assert_eq!(fs::read_to_string(outside.path()).expect("a file"), "");
    assert!(folder.path().join("f").symlink_metadata().expect("a file").is_file());
}

#[test]
fn a_file_never_takes_the_place_of_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("f")).expect("a folder");
    let (destination, entries) = prepared(folder.path(), &["f"]);
    assert!(matches!(destination.place(&entries, true), Err(Error::OtherKind { .. })));
}
