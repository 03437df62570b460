use super::*;
use crate::pull::unpack::sample::{END, blocks, plain, records, with_records};

fn read(bytes: &[u8]) -> Result<Vec<Entry>, Error> {
    let mut archive = Archive::new(bytes);
    let mut entries = Vec::new();
    while let Some(entry) = archive.next()? {
        if let Kind::File(size) = entry.kind {
            archive.content(size, &mut io::sink()).map_err(truncated)?;
        }
        entries.push(entry);
    }
    Ok(entries)
}

#[track_caller]
fn check(bytes: Vec<u8>, expected: &str) {
    let told = match read(&[bytes, END.to_vec()].concat()) {
        Ok(entries) => format!("{entries:?}"),
        Err(error) => error.line(),
    };
    assert!(told.contains(expected), "{told}");
}

#[test]
fn what_export_writes_is_read() {
    let long = "d/".repeat(80) + "file";
    let text = records(&[("path", long.as_bytes()), ("mtime", b"1700000000.5"), ("hdrcharset", b"BINARY")]);
    let bytes = [with_records(&text, &plain(b'0', b"cut", 3, 0o4777)), blocks(b"abc"), END.to_vec()].concat();
    let entries = read(&bytes).expect("an archive");
    let expected = Entry {
        path: long.into(),
        kind: Kind::File(3),
        mode: 0o755,
        mtime: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500),
    };
    assert_eq!(entries, [expected]);
}

#[test]
fn names_with_line_ends_and_bytes_that_are_not_utf8_are_names() {
    let name = b"a\nb=\xff";
    let bytes = with_records(&records(&[("path", name)]), &plain(b'5', b"x", 0, 0o755));
    let entries = read(&[bytes, END.to_vec()].concat()).expect("an archive");
    assert_eq!(entries[0].path.as_os_str().as_bytes(), name);
}

#[test]
fn a_name_never_leads_anywhere_else() {
    for name in [&b"../a"[..], b"a/../../b", b"/etc/passwd", b"a/..", b"..", b"//x"] {
        let bytes = with_records(&records(&[("path", name)]), &plain(b'0', b"x", 0, 0o644));
        check(bytes, "name: nothing was changed");
        check(plain(b'0', name, 0, 0o644).to_vec(), "name: nothing was changed");
    }
    check(with_records(&records(&[("path", b"a\0b")]), &plain(b'0', b"x", 0, 0o644)), "NUL");
    check(with_records(&records(&[("path", b"")]), &plain(b'0', b"x", 0, 0o644)), "no name");
    check(with_records(&records(&[("path", &[b'a'; 256])]), &plain(b'0', b"x", 0, 0o644)), "too long");
    let deep = b"a/".repeat(3000);
    check(with_records(&records(&[("path", &deep)]), &plain(b'0', b"x", 0, 0o644)), "too long");
    check(plain(b'0', b"./", 0, 0o644).to_vec(), "no name");
}

#[test]
fn kinds_that_export_never_writes_are_refused() {
    for kind in *b"1346gLKSV7" {
        check(plain(kind, b"x", 0, 0o644).to_vec(), "nothing was changed");
    }
    check(plain(b'5', b"x", 512, 0o755).to_vec(), "has content");
}

#[test]
fn what_is_no_archive_is_said_to_be_none() {
    for bytes in [vec![], vec![1; 100], vec![7; 512], plain(b'0', b"x", 9, 0o644).to_vec()] {
        assert!(matches!(read(&bytes), Err(Error::NoArchive(_))), "{} bytes", bytes.len());
    }
    let alone = with_records(&records(&[]), &[0; 512]);
    check(alone, "records are about nothing");
    let twice = with_records(&records(&[]), &plain(b'x', b"x", 0, 0o644));
    check(twice, "records come twice");
    let header = plain(b'x', b"x", 1 << 40, 0o644);
    check(header.to_vec(), "records are too long");
    for text in [
        &b"7 path=a\n"[..],
        b"x path=a\n",
        b"8 patha\n\n",
        b"99999999999999999999999 path=a\n",
        b"12 strange=1\n",
    ] {
        check(with_records(text, &plain(b'0', b"x", 0, 0o644)), "records cannot be read");
    }
    let mut wrong = plain(b'0', b"x", 0, 0o644);
    wrong[0] = b'y';
    check(wrong.to_vec(), "sum is wrong");
    let after = [END.to_vec(), plain(b'0', b"x", 0, 0o644).to_vec()].concat();
    assert!(matches!(read(&after), Err(Error::NoArchive("something comes after its end"))));
}

#[test]
fn a_content_longer_than_the_archive_ends_it_early() {
    let text = records(&[("size", b"18446744073709551615")]);
    check(with_records(&text, &plain(b'0', b"x", 0, 0o644)), "it ends early");
}
