//! Reading and writing without a file system.

use proptest::collection::vec;
use proptest::prelude::*;

use super::sample::{Sample, hostile};
use super::*;

/// Everything that is in an archive, its content joined; fed in pieces of `n_bytes`.
fn read(archive: &[u8], n_bytes: usize) -> Result<Vec<(Entry, Vec<u8>)>, ArchiveError> {
    let mut reader = Reader::default();
    let mut found: Vec<(Entry, Vec<u8>)> = Vec::new();
    for mut piece in archive.chunks(n_bytes) {
        while let Some(event) = reader.next(&mut piece)? {
            match event {
                Event::Entry(entry) => found.push((entry, Vec::new())),
                Event::Content(content) => {
                    let (_, whole) = found.last_mut().expect("an entry before content");
                    whole.extend_from_slice(content);
                }
            }
        }
    }
    reader.finish()?;
    Ok(found)
}

#[track_caller]
fn only(archive: &[u8]) -> Entry {
    let mut entries = read(archive, archive.len()).expect("sound");
    assert_eq!(entries.len(), 1);
    entries.remove(0).0
}

#[test]
fn pieces_of_any_size_say_the_same() {
    let archive = Sample::new()
        .directory("./d/")
        .records(&[("path", b"d/a\nb"), ("mtime", b"1.5"), ("size", b"3")])
        .file("x", "abc")
        .long(b'L', "l".repeat(200))
        .file("y", vec![7; 1025])
        .link("d/link", "../d")
        .hard_link("h", "./d//a\nb")
        .end();
    let whole = read(&archive, archive.len()).expect("sound");
    for n_bytes in [1, 2, 511, 512, 513, 1000] {
        assert_eq!(read(&archive, n_bytes).expect("sound"), whole, "{n_bytes}");
    }
    let kinds: Vec<_> = whole.iter().map(|(entry, content)| (&entry.path[..], content.len())).collect();
    let long = "l".repeat(200);
    assert_eq!(kinds, [(&b"d"[..], 0), (b"d/a\nb", 3), (long.as_bytes(), 1025), (b"d/link", 0), (b"h", 0)]);
    assert_eq!(whole[1].0.mtime, Mtime { seconds: 1, nanos: 500_000_000 });
    assert_eq!(whole[4].0.kind, EntryKind::HardLink { target: b"d/a\nb".to_vec() });
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for (case, archive, code) in hostile() {
        // The others are found out when entries are made.
        if let Err(error) = read(&archive, 700) {
            assert_eq!(error.code(), code, "{case}: {error}");
        }
    }
}

#[test]
fn of_equal_records_the_last_counts_and_an_empty_one_takes_back() {
    let entry = only(&Sample::new().records(&[("path", b"a"), ("path", b"b")]).file("x", "").end());
    assert_eq!(entry.path, b"b");
    let entry = only(&Sample::new().records(&[("path", b"a"), ("path", b"")]).file("x", "").end());
    assert_eq!(entry.path, b"x");
}

#[test]
fn a_global_time_counts_until_an_entry_has_its_own() {
    let archive = Sample::new()
        .entry(b'g', "g", "", "52 comment=0123456789012345678901234567890123456789\n11 mtime=7\n")
        .file("x", "")
        .records(&[("mtime", b"-1.25")])
        .file("y", "")
        .end();
    let times: Vec<_> = read(&archive, 4096).expect("sound").iter().map(|(entry, _)| entry.mtime).collect();
    assert_eq!(times, [Mtime { seconds: 7, nanos: 0 }, Mtime { seconds: -2, nanos: 750_000_000 }]);
}

#[test]
fn an_old_archive_marks_directories_by_name() {
    let entry = only(&Sample::new().entry(0, "d/", "", "").end());
    assert_eq!((entry.kind, entry.mode), (EntryKind::Directory, 0o755));
}

#[test]
fn modes_keep_who_may_run_and_lose_the_rest() {
    let modes = [(0o7777, 0o755), (0o644, 0o644), (0o400, 0o600), (0o111, 0o711), (0o666, 0o644), (0, 0o600)];
    for (mode, expected) in modes {
        assert_eq!(entry::file_mode(mode), expected, "{mode:o}");
    }
    assert_eq!((entry::directory_mode(0o1777), entry::directory_mode(0)), (0o755, 0o700));
}

#[test]
fn numbers_are_read_in_one_way_or_not_at_all() {
    let cases: [(&[u8], Option<i64>); 12] = [
        (b"00000000017\0", Some(15)),
        (b"   17 \0\0\0\0\0\0", Some(15)),
        (b"17", Some(15)),
        (b"\0\0\0", Some(0)),
        (b"8", None),
        (b"+7", None),
        (b"-7", None),
        (b"7 7", None),
        (b"\x80\0\0\x01", Some(1)),
        (b"\xff\xff\xff\xff", Some(-1)),
        (b"\x80\0\0\0\x80\0\0\0\0\0\0\0", None),
        (b"", None),
    ];
    for (field, expected) in cases {
        assert_eq!(number::field(field), expected, "{field:?}");
    }
    for (text, expected) in [
        ("1", Some((1, 0))),
        ("1.000000001", Some((1, 1))),
        ("1.9999999999", Some((1, 999_999_999))),
        ("-0.5", Some((-1, 500_000_000))),
        ("1.", Some((1, 0))),
        (".5", None),
        ("1.x", None),
        ("99999999999999999999", None),
    ] {
        let time = number::time(text.as_bytes());
        assert_eq!(time.map(|time| (time.seconds, time.nanos)), expected, "{text}");
    }
}

#[test]
fn a_link_stays_inside_when_it_climbs_only_at_its_beginning() {
    for (depth, target, expected) in [
        (0, "a/b", true),
        (0, "./a", true),
        (0, ".", true),
        (0, "..", false),
        (1, "..", true),
        (1, "../a/../b", false),
        (2, "../../a", true),
        (2, ".././../a", true),
        (2, "../../..", false),
        (9, "/a", false),
        (9, "", false),
        (9, "a/..", false),
        (0, "...", true),
        (0, "..a", true),
    ] {
        assert_eq!(stays_inside(depth, target.as_bytes()), expected, "{depth} {target}");
    }
    assert!(!stays_inside(0, b"a\0b"));
}

#[test]
fn names_are_shown_escaped_and_cut() {
    assert_eq!(shown(b"a\nb\x1b[2K\xff"), "a\\nb\\u{1b}[2K\\xFF");
    assert_eq!(shown("\u{202e}txt'\\".as_bytes()), "\\u{202e}txt'\\");
    let long = shown(&[b'x'; 5000]);
    assert!(long.len() < 600 && long.ends_with('…'), "{long}");
    assert_eq!(shown(b""), "(without a name)");
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("no name holds it", |byte| *byte != 0 && *byte != b'/');
    vec(byte, 1..120).prop_filter("no name", |name| name != b"." && name != b"..")
}

fn entry_of_any_kind() -> impl Strategy<Value = Entry> {
    let path = || vec(name(), 1..4).prop_map(|names| names.join(&b'/'));
    let target = vec(any::<u8>().prop_filter("NUL", |byte| *byte != 0), 1..200);
    let kind = prop_oneof![
        Just(EntryKind::Directory),
        Just(EntryKind::File { size: 0 }),
        target.prop_map(|target| EntryKind::Link { target }),
        path().prop_map(|target| EntryKind::HardLink { target }),
    ];
    (path(), kind, any::<bool>(), any::<i64>(), 0..1_000_000_000_u32).prop_map(
        |(path, kind, is_executable, seconds, nanos)| {
            let mode = if is_executable || kind == EntryKind::Directory { 0o755 } else { 0o644 };
            // The text form of the oldest second is out of range.
            let seconds = seconds.max(i64::MIN + 2);
            Entry { path, kind, mode, mtime: Mtime { seconds, nanos } }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in vec(entry_of_any_kind(), 0..8), n_bytes in 1_usize..2000) {
        let mut archive = Vec::new();
        for entry in &entries {
            header(&mut archive, entry);
        }
        archive.extend_from_slice(&END);
        let found: Vec<_> = read(&archive, n_bytes).expect("sound").into_iter().map(|(entry, _)| entry).collect();
        prop_assert_eq!(found, entries);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        mut archive in Just(Sample::new().records(&[("path", b"a"), ("mtime", b"1.5")]).file("x", "abc").link("l", "a").end()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        reseal in any::<bool>(),
        n_bytes in 1_usize..1500,
    ) {
        for (at, byte) in changes {
            let at = at.index(archive.len());
            archive[at] = byte;
        }
        if reseal {
            for block in archive.chunks_exact_mut(BLOCK_BYTES) {
                let whole: [u8; BLOCK_BYTES] = (&*block).try_into().expect("a block");
                if whole[257..262] == *b"ustar" {
                    block.copy_from_slice(&sample::sealed(whole));
                }
            }
        }
        let _ = read(&archive, n_bytes);
    }

    #[test]
    fn a_link_that_stays_inside_never_names_anything_outside(depth in 0_usize..4, target in "[a./]{1,12}") {
        if stays_inside(depth, target.as_bytes()) {
            let mut level = depth.cast_signed();
            for part in target.split('/') {
                match part {
                    "" | "." => {}
                    ".." => level -= 1,
                    _ => level += 1,
                }
                prop_assert!(level >= 0);
            }
        }
    }
}
