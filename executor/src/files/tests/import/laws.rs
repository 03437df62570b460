//! Laws over random trees and random archives.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// An entry of a random tree: where, and what.
#[derive(Clone, Debug)]
struct Planted {
    path: Vec<u8>,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Directory,
    File { content: Vec<u8>, is_executable: bool },
    Link { target: Vec<u8> },
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-d]".prop_map(String::into_bytes),
        1 => vec(any::<u8>().prop_filter("no name", |byte| *byte != 0 && *byte != b'/'), 1..150)
            .prop_filter("no name", |name| name != b"." && name != b".." && !name.starts_with(b".mooring-")),
    ]
}

fn planted() -> impl Strategy<Value = Planted> {
    let what = prop_oneof![
        Just(What::Directory),
        (vec(any::<u8>(), 0..2000), any::<bool>())
            .prop_map(|(content, is_executable)| What::File { content, is_executable }),
        vec(name(), 1..3).prop_map(|names| What::Link { target: names.join(&b'/') }),
    ];
    (vec(name(), 1..5), what).prop_map(|(names, what)| Planted { path: names.join(&b'/'), what })
}

/// What cannot be made, because something else is there, is left out.
fn grow(ws: &Fixture, tree: &[Planted]) {
    for Planted { path, what } in tree {
        let path = ws.tree.join(std::ffi::OsStr::from_bytes(path));
        let _ = fs::create_dir_all(path.parent().expect("a parent"));
        let is_inside = path.parent().and_then(|parent| parent.canonicalize().ok());
        if fs::symlink_metadata(&path).is_ok() || !is_inside.is_some_and(|it| it.starts_with(&ws.tree)) {
            continue;
        }
        match what {
            What::Directory => drop(fs::create_dir(&path)),
            What::File { content, is_executable } => {
                if fs::write(&path, content).is_ok() && *is_executable {
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
                }
            }
            What::Link { target } => drop(symlink(std::ffi::OsStr::from_bytes(target), &path)),
        }
    }
}

/// An entry of a random archive, with names that meet each other, climb, and are hostile now and then.
fn sampled() -> impl Strategy<Value = (u8, String, String, Vec<u8>)> {
    let flag = prop_oneof![
        6 => Just(b'0'), 3 => Just(b'5'), 3 => Just(b'2'), 1 => Just(b'1'), 1 => Just(b'x'), 1 => any::<u8>()
    ];
    (flag, "[ab./]{1,7}", "[ab./]{1,7}", vec(any::<u8>(), 0..700))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn importing_what_was_exported_gives_the_same_tree(tree in vec(planted(), 0..25)) {
        runtime().block_on(async {
            let (one, other) = (Fixture::new(), Fixture::new());
            grow(&one, &tree);
            let (archive, report) = one.pack("").await.expect("packed");
            prop_assert_eq!(report.skipped_total, 0);
            other.import(&archive).await.expect("imported");
            prop_assert_eq!(other.picture(), one.picture());
            // And once more over itself.
            other.import(&archive).await.expect("imported");
            prop_assert_eq!(other.picture(), one.picture());
            other.becomes_clean().await;
            Ok(())
        })?;
    }

    #[test]
    fn no_archive_changes_anything_outside_and_a_refused_one_nothing_inside(
        tree in vec(planted(), 0..8),
        entries in vec(sampled(), 0..8),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        runtime().block_on(async {
            let ws = Fixture::new();
            grow(&ws, &tree);
            let before = ws.picture();
            let sample = entries.iter().fold(Sample::new(), |sample, (flag, name, target, content)| {
                let is_file = *flag == b'0' || *flag == b'x';
                sample.entry(*flag, name, target, if is_file { &content[..] } else { b"" })
            });
            let mut archive = sample.end();
            for (at, byte) in &changes {
                let at = at.index(archive.len());
                archive[at] = *byte;
            }
            if ws.import(&archive).await.is_err() {
                prop_assert_eq!(ws.picture(), before);
            }
            ws.becomes_clean().await;
            // Nothing in the tree leads out that did not before.
            for (path, found) in ws.picture() {
                let depth = path.split(|byte| *byte == b'/').count() - 1;
                if let Found::Link { target, .. } = found {
                    prop_assert!(crate::archive::stays_inside(depth, &target), "{:?}", path);
                }
            }
            Ok(())
        })?;
    }
}
