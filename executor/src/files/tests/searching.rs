//! Grep and Glob.

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::{Expect, expect};

use super::*;

const TIME: Duration = Duration::from_secs(30);

fn query(pattern: &str) -> GrepQuery {
    GrepQuery {
        path: WorkspacePath::root(),
        glob: None,
        pattern: pattern.to_owned(),
        case_insensitive: false,
        include_ignored: false,
        max_matches: 200,
        context_lines: 0,
        max_bytes: 25_000,
        time: TIME,
    }
}

async fn grep(ws: &Fixture, query: GrepQuery) -> String {
    let answer = ws.files.grep(query).await.expect("an answer");
    let mut text = String::new();
    for line in &answer.lines {
        let mark = if line.is_context { '-' } else { ':' };
        let path = crate::path::escape(&line.path);
        writeln!(text, "{path}{mark}{}{mark}{}", line.line, line.text).expect("memory");
    }
    text.push_str(&counts(answer.report, answer.truncation));
    text
}

async fn glob(ws: &Fixture, pattern: &str, path: &str, include_ignored: bool) -> String {
    let query = GlobQuery::new(pattern, ws.path(path), include_ignored, 1000, TIME).expect("a glob");
    let answer = ws.files.glob(query).await.expect("an answer");
    let mut text = String::new();
    for path in &answer.paths {
        writeln!(text, "{}", crate::path::escape(path)).expect("memory");
    }
    text.push_str(&counts(answer.report, answer.truncation));
    text
}

fn counts(report: SearchReport, truncation: Option<Truncation>) -> String {
    let SearchReport {
        files_searched,
        binary_files_skipped,
        links_skipped,
        special_files_skipped,
        unreadable_skipped,
    } = report;
    let mut text = format!(
        "searched {files_searched}, binary {binary_files_skipped}, links {links_skipped}, special \
         {special_files_skipped}, unreadable {unreadable_skipped}\n"
    );
    if let Some(truncation) = truncation {
        let Truncation { reason, sent, total, .. } = truncation;
        writeln!(text, "{reason:?} {sent} of {total:?}").expect("memory");
    }
    text
}

#[track_caller]
fn check(seen: &str, expected: &Expect) {
    expected.assert_eq(seen);
}

/// Links of every kind, a FIFO, a binary, ignored and hidden files.
fn tree() -> Fixture {
    let ws = Fixture::new();
    ws.put("src/main.rs", "fn main() {\r\n    // SECRET one\r\n}\n");
    ws.put("src/deep/lib.rs", "SECRET two\nsecret three\n");
    ws.put("src.rs", "SECRET last\n");
    ws.put("bin", b"SECRET\0");
    ws.put(".gitignore", "target/\n*.log\n!kept.log\n");
    ws.put(".hidden/f.rs", "SECRET hidden\n");
    ws.put("target/out.rs", "SECRET built\n");
    ws.put("noise.log", "SECRET noise\n");
    ws.put("kept.log", "SECRET kept\n");
    ws.put(".git/config", "SECRET git\n");
    ws.link("link.rs", "../ws-secret/loot");
    ws.link("dangling.rs", "nowhere");
    ws.link("src/loop", "..");
    ws.link("out", "../ws-secret");
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, ws.tree.join("fifo"), rustix::fs::FileType::Fifo, mode, 0)
        .expect("a FIFO");
    ws
}

#[tokio::test]
async fn matches_come_in_order_and_what_was_skipped_is_said() {
    let ws = tree();
    check(
        &grep(&ws, query("SECRET")).await,
        &expect![[r"
        kept.log:1:SECRET kept
        src.rs:1:SECRET last
        src/deep/lib.rs:1:SECRET two
        src/main.rs:2:    // SECRET one
        searched 4, binary 1, links 4, special 1, unreadable 0
    "]],
    );
    check(
        &grep(&ws, query("loot")).await,
        &expect![[r"
        searched 4, binary 1, links 4, special 1, unreadable 0
    "]],
    );
}

#[tokio::test]
async fn ignored_and_hidden_files_are_searched_when_asked_for_and_git_only_from_within() {
    let ws = tree();
    check(
        &grep(&ws, GrepQuery { include_ignored: true, ..query("SECRET") }).await,
        &expect![[r"
        .hidden/f.rs:1:SECRET hidden
        kept.log:1:SECRET kept
        noise.log:1:SECRET noise
        src.rs:1:SECRET last
        src/deep/lib.rs:1:SECRET two
        src/main.rs:2:    // SECRET one
        target/out.rs:1:SECRET built
        searched 8, binary 1, links 4, special 1, unreadable 0
    "]],
    );
    check(
        &grep(&ws, GrepQuery { path: ws.path(".git"), ..query("SECRET") }).await,
        &expect![[r"
        .git/config:1:SECRET git
        searched 1, binary 0, links 0, special 0, unreadable 0
    "]],
    );
}

#[tokio::test]
async fn a_search_keeps_to_its_folder_glob_case_and_context() {
    let ws = tree();
    let narrowed = GrepQuery {
        path: ws.path("src"),
        glob: Some("*.rs".to_owned()),
        case_insensitive: true,
        context_lines: 1,
        ..query("secret t")
    };
    check(
        &grep(&ws, narrowed).await,
        &expect![[r"
        src/deep/lib.rs:1:SECRET two
        src/deep/lib.rs:2:secret three
        searched 2, binary 0, links 1, special 0, unreadable 0
    "]],
    );
    let one = GrepQuery { path: ws.path("./src/main.rs"), context_lines: 1, ..query("SECRET") };
    check(
        &grep(&ws, one).await,
        &expect![[r"
        src/main.rs-1-fn main() {
        src/main.rs:2:    // SECRET one
        src/main.rs-3-}
        searched 1, binary 0, links 0, special 0, unreadable 0
    "]],
    );
    let fifo = ws.files.grep(GrepQuery { path: ws.path("fifo"), ..query("x") }).await;
    assert_eq!(code(fifo), ErrorCode::NotRegularFile);
    let outside = ws.files.grep(GrepQuery { path: ws.path("out"), ..query("x") }).await;
    assert_eq!(code(outside), ErrorCode::PathEscapes);
}

#[tokio::test]
async fn bounded_answers_are_the_first_lines_and_count_the_rest() {
    let ws = Fixture::new();
    for n in 0..300 {
        ws.put(&format!("d{}/f{n:03}", n % 7), "hit\nmiss\nhit\n");
    }
    let first = ws.files.grep(GrepQuery { max_matches: 5, ..query("hit") }).await.expect("an answer");
    for _ in 0..5 {
        let again = ws.files.grep(GrepQuery { max_matches: 5, ..query("hit") }).await.expect("an answer");
        assert_eq!(again, first);
    }
    check(
        &grep(&ws, GrepQuery { max_matches: 5, ..query("hit") }).await,
        &expect![[r"
        d0/f000:1:hit
        d0/f000:3:hit
        d0/f007:1:hit
        d0/f007:3:hit
        d0/f014:1:hit
        searched 300, binary 0, links 0, special 0, unreadable 0
        Count 5 of Some(600)
    "]],
    );
    check(
        &grep(&ws, GrepQuery { max_bytes: 7, ..query("hit") }).await,
        &expect![[r"
        d0/f000:1:hit
        d0/f000:3:hit
        searched 300, binary 0, links 0, special 0, unreadable 0
        Bytes 2 of Some(600)
    "]],
    );
    let exact = ws.files.grep(GrepQuery { max_matches: 600, ..query("hit") }).await.expect("an answer");
    assert_eq!((exact.lines.len(), exact.truncation), (600, None));
    let late = ws.files.grep(GrepQuery { time: Duration::ZERO, ..query("hit") }).await.expect("an answer");
    let truncation = late.truncation.expect("a mark");
    assert_eq!((truncation.reason, truncation.total), (TruncationReason::Time, None));
}

#[tokio::test]
async fn long_lines_are_cut_at_a_character_and_bytes_that_are_no_text_are_replaced() {
    let ws = Fixture::new();
    ws.put("f", [&b"x\xffhit"[..], "é".repeat(1500).as_bytes(), b"\n"].concat());
    let answer = ws.files.grep(query("hit")).await.expect("an answer");
    let line = &answer.lines[0];
    assert!(line.cut && line.text.len() <= 2000 && line.text.starts_with("x\u{fffd}hité"));
}

#[tokio::test]
async fn patterns_that_are_wrong_or_too_big_are_refused() {
    let ws = Fixture::new();
    for pattern in ["", "(", "a\\nb", "(?:a{1000}){1000}", &"x".repeat(10_001)] {
        assert_eq!(code(ws.files.grep(query(pattern)).await), ErrorCode::InvalidArgument, "{pattern}");
    }
    for glob in ["", "[", "../x", "a/../b", "/etc/*", &"x".repeat(4097)] {
        let refused = GlobQuery::new(glob, WorkspacePath::root(), false, 1, TIME).map(drop);
        assert_eq!(code(refused), ErrorCode::InvalidArgument, "{glob}");
    }
}

#[tokio::test]
async fn globs_find_each_file_once_and_cycles_end() {
    let ws = tree();
    check(
        &glob(&ws, "**/*.rs", "", false).await,
        &expect![[r"
        src.rs
        src/deep/lib.rs
        src/main.rs
        searched 5, binary 0, links 4, special 1, unreadable 0
    "]],
    );
    check(
        &glob(&ws, "*.rs", "", false).await,
        &expect![[r"
        src.rs
        searched 5, binary 0, links 4, special 1, unreadable 0
    "]],
    );
    check(
        &glob(&ws, "{main,lib}.[r]?", "src", false).await,
        &expect![[r"
        src/main.rs
        searched 2, binary 0, links 1, special 0, unreadable 0
    "]],
    );
    check(
        &glob(&ws, ".hidden/**", "", false).await,
        &expect![[r"
        .hidden/f.rs
        searched 7, binary 0, links 4, special 1, unreadable 0
    "]],
    );
    check(
        &glob(&ws, "**/*.rs", "target", false).await,
        &expect![[r"
        target/out.rs
        searched 1, binary 0, links 0, special 0, unreadable 0
    "]],
    );
    let file = GlobQuery::new("*", ws.path("src.rs"), false, 1, TIME).expect("a glob");
    assert_eq!(code(ws.files.glob(file).await), ErrorCode::InvalidArgument);
    let query = GlobQuery::new("**/*", ws.path(""), false, 2, TIME).expect("a glob");
    let answer = ws.files.glob(query).await.expect("an answer");
    assert_eq!(answer.paths, [b"bin".to_vec(), b"kept.log".to_vec()]);
    assert_eq!(answer.truncation.and_then(|mark| mark.total), Some(5));
}

#[tokio::test]
async fn nearer_ignore_files_win_and_a_nested_repository_is_its_own() {
    let ws = Fixture::new();
    ws.put(".gitignore", "*.a\n/only-here\n");
    ws.put("sub/.gitignore", "!wanted.a\n");
    ws.put("sub/.ignore", "*.b\n");
    for name in
        ["x.a", "only-here", "sub/only-here", "sub/wanted.a", "sub/x.a", "sub/x.b", "nested/x.a", "x.b"]
    {
        ws.put(name, "");
    }
    fs::create_dir(ws.tree.join("nested/.git")).expect("a folder");
    check(
        &glob(&ws, "**/*", "", false).await,
        &expect![[r"
        nested/x.a
        sub/only-here
        sub/wanted.a
        x.b
        searched 4, binary 0, links 0, special 0, unreadable 0
    "]],
    );
    check(
        &glob(&ws, "*", "sub", false).await,
        &expect![[r"
        sub/only-here
        sub/wanted.a
        searched 2, binary 0, links 0, special 0, unreadable 0
    "]],
    );
}
