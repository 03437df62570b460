//! Reading, listing and describing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use super::*;

#[tokio::test]
async fn a_terabyte_of_nothing_answers_promptly() {
    let ws = Fixture::new();
    let sparse = fs::File::create(ws.tree.join("sparse")).expect("a file");
    sparse.set_len(1 << 40).expect("1 TiB");
    let begun = Instant::now();
    let reading = ws.lines("sparse", 1, 10, 1000).await.expect("read");
    let truncation = reading.truncation.expect("a mark");
    assert_eq!((truncation.reason, truncation.total, truncation.sent), (TruncationReason::Bytes, Some(1), 1));
    assert!(reading.binary && matches!(reading.version, Version::Stat(_)) && reading.size == 1 << 40);
    let reading = ws.lines("sparse", 2, 10, 1000).await.expect("read");
    assert_eq!((collect(reading).await.expect("nothing").len()), 0);
    let range = Range::Bytes(ByteRange { offset: (1 << 40) - 3, limit: None });
    let reading = ws.reading("sparse", range).await.expect("read");
    assert_eq!(collect(reading).await.expect("the end"), [0, 0, 0]);
    assert!(matches!(ws.files.stat(ws.path("sparse")).await.expect("stat").version, Some(Version::Stat(_))));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn sizes_around_a_frame_come_back_byte_for_byte() {
    let ws = Fixture::new();
    let frame = mooring_proto::MAX_FRAME_BYTES;
    for size in [0, 1, frame - 1, frame, frame + 1, 4_194_309] {
        let content: Vec<u8> = (0..size).map(|n| u8::try_from(n * 7 % 251).expect("below 251")).collect();
        let written = ws.write("f", &content).await.expect("written");
        assert_eq!(written.version, Version::of_content(&content));
        assert!(ws.read("f").await.expect("read") == content, "{size}");
        let range = Range::Bytes(ByteRange { offset: 1, limit: Some(frame as u64 + 7) });
        let part = collect(ws.reading("f", range).await.expect("read")).await.expect("read");
        assert!(part == content[1.min(size)..size.min(frame + 8)], "{size}");
    }
    let past = Range::Bytes(ByteRange { offset: 1 << 50, limit: None });
    assert!(collect(ws.reading("f", past).await.expect("read")).await.expect("nothing").is_empty());
}

#[tokio::test]
async fn lines_of_a_large_file_are_counted_and_its_version_is_whole() {
    let ws = Fixture::new();
    let mut text = String::new();
    for n in 1..=200_000 {
        writeln!(text, "line {n}").expect("memory");
    }
    ws.put("f", &text);
    let reading = ws.lines("f", 150_000, 2, 1000).await.expect("read");
    let truncation = reading.truncation.expect("a mark");
    assert_eq!(
        truncation,
        Truncation { reason: TruncationReason::Count, total: Some(200_000), sent: 2, next_offset: 150_002 }
    );
    assert_eq!(reading.version, Version::of_content(text.as_bytes()));
    assert_eq!(collect(reading).await.expect("two lines"), b"line 150000\nline 150001\n");
    ws.write("f", "short").await.expect("a part licenses");
}

#[tokio::test]
async fn a_long_line_is_cut_and_says_so() {
    let ws = Fixture::new();
    ws.put("f", vec![b'a'; 3 << 20]);
    let reading = ws.lines("f", 1, 10, 25_000).await.expect("read");
    let truncation = reading.truncation.expect("a mark");
    assert_eq!((truncation.reason, truncation.total), (TruncationReason::Bytes, Some(1)));
    assert_eq!(collect(reading).await.expect("a line").len(), 25_000);
}

#[tokio::test]
async fn a_file_that_grows_or_shrinks_while_it_is_read_is_never_mixed() {
    let ws = Fixture::new();
    ws.put("f", vec![b'a'; 3 << 20]);
    let whole = Range::Bytes(ByteRange { offset: 0, limit: None });
    let reading = ws.reading("f", whole).await.expect("read");
    let mut file = fs::OpenOptions::new().append(true).open(ws.tree.join("f")).expect("a file");
    file.write_all(b"more").expect("grown");
    assert_eq!(collect(reading).await.expect("as it was when it was opened").len(), 3 << 20);
    assert_eq!(code(ws.write("f", "x").await), ErrorCode::StaleVersion);

    let reading = ws.reading("f", whole).await.expect("read");
    file.set_len(10).expect("shrunk");
    assert_eq!(code(collect(reading).await), ErrorCode::Busy);
    assert_eq!(ws.read("f").await.expect("read"), [b'a'; 10]);

    ws.put("f", vec![b'a'; 3 << 20]);
    let reading = ws.reading("f", whole).await.expect("read");
    ws.put("f", vec![b'b'; 3 << 20]);
    assert_eq!(code(collect(reading).await), ErrorCode::Busy);
}

#[tokio::test]
async fn images_come_whole_and_other_binaries_are_marked() {
    let ws = Fixture::new();
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &vec![b'\n'; 2 << 20]].concat();
    ws.put("small.png", &png[..100]);
    ws.put("large.png", &png);
    ws.put("huge.png", [&png[..8], &vec![0; 10 << 20]].concat());
    ws.put("data", b"a\0b\nc\n");
    for (name, size) in [("small.png", 100), ("large.png", png.len())] {
        let reading = ws.lines(name, 5, 1, 10).await.expect("read");
        assert_eq!((reading.media_type, reading.truncation), (Some("image/png"), None));
        assert_eq!(collect(reading).await.expect("whole").len(), size);
    }
    let reading = ws.lines("huge.png", 1, 1, 10).await.expect("read");
    assert_eq!((reading.media_type, reading.binary), (None, true));
    let reading = ws.lines("data", 2, 1, 10).await.expect("read");
    assert!(reading.binary);
    assert_eq!(collect(reading).await.expect("a line"), b"c\n");
}

#[tokio::test]
async fn a_directory_is_listed_in_pages_whatever_changes_between_them() {
    let ws = Fixture::new();
    for n in 0..2500 {
        fs::write(ws.tree.join(format!("f{n:04}")), "xy").expect("a file");
    }
    fs::create_dir(ws.tree.join("dir")).expect("a folder");
    ws.link("link", "/etc/passwd");
    let (mut seen, mut after) = (Vec::new(), Vec::new());
    loop {
        let page = ws.files.list(WorkspacePath::root(), after.clone(), 1000).await.expect("a page");
        assert!(page.total >= 2500 && page.entries.len() <= 1000);
        seen.extend(page.entries);
        let Some(last) = page.last_name else { break };
        let _ = fs::remove_file(ws.tree.join(std::ffi::OsStr::from_bytes(&last)));
        after = last;
    }
    assert_eq!(seen.len(), 2502);
    assert!(seen.is_sorted_by(|a, b| a.name < b.name));
    let find = |name: &[u8]| seen.iter().find(|entry| entry.name == name).expect("listed").clone();
    assert_eq!((find(b"dir").kind, find(b"dir").size), (Kind::Directory, 0));
    assert_eq!((find(b"link").kind, find(b"link").link_target), (Kind::Link, b"/etc/passwd".to_vec()));
    assert_eq!((find(b"f0000").kind, find(b"f0000").size), (Kind::Regular, 2));
    assert_eq!(code(ws.list("f0001").await), ErrorCode::InvalidArgument);
    assert_eq!(code(ws.list("absent").await), ErrorCode::NotFound);
    assert_eq!(code(ws.list("link").await), ErrorCode::PathEscapes);
}

#[tokio::test]
async fn stat_describes_the_path_itself_and_licenses_nothing() {
    let ws = Fixture::new();
    ws.put("f", "abc");
    ws.link("l", "../ws-secret/loot");
    let file = ws.files.stat(ws.path("f")).await.expect("stat");
    assert_eq!((file.kind, file.size, file.version), (Kind::Regular, 3, Some(Version::of_content(b"abc"))));
    assert_eq!(code(ws.write("f", "x").await), ErrorCode::Unread);
    let link = ws.files.stat(ws.path("l")).await.expect("stat");
    assert_eq!(
        (link.kind, link.link_target.as_slice(), link.version),
        (Kind::Link, &b"../ws-secret/loot"[..], None)
    );
    assert_eq!(ws.files.stat(ws.path("")).await.expect("stat").kind, Kind::Directory);
    assert_eq!(code(ws.files.stat(ws.path("l/x")).await), ErrorCode::PathEscapes);
}
