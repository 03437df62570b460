//! Rules about single files: their length, their names, what they may not say.

use std::path::Path;

use super::{check_none, files, has_extension, root, text, texts};

/// A longer file needs a line in `ARCHITECTURE.md` that names it.
const MOST_LINES: usize = 600;
/// `main.rs` parses, installs the crypto provider and runs.
const MOST_MAIN_LINES: usize = 30;

const TOP_LEVEL: &[&str] = &[
    // What every part of the work needs.
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "Taskfile.yml",
    "clippy.toml",
    "deny.toml",
    "docs",
    "rustfmt.toml",
    "taskw",
    // The rooms.
    "authority",
    "charts",
    "cli",
    "console",
    "deploy",
    "e2e",
    "executor",
    "harness",
    "operator",
    "proto",
];

const VAGUE_MODULES: &[&str] =
    &["utils", "util", "helpers", "helper", "common", "types", "manager", "handler"];

fn is_hand_written(file: &Path) -> bool {
    // Written by `./taskw generate`; a test of operator/api compares.
    let is_generated = file.starts_with("charts/mooring/templates/crds");
    let is_code =
        has_extension(file, &["rs", "proto", "sql", "yaml", "yml", "tpl", "toml", "html", "js", "css", "sh"]);
    (is_code && !is_generated) || file == Path::new("taskw")
}

/// Tests beside the code, and the tests of a room.
fn is_test(file: &Path) -> bool {
    let is_in_tests = file.iter().any(|part| part == "tests");
    has_extension(file, &["rs"]) && (is_in_tests || file.ends_with("tests.rs"))
}

/// Not the rules themselves, which have to name what they forbid.
fn is_rule(file: &Path) -> bool {
    file.starts_with("e2e/tests/house") || file == Path::new("e2e/tests/house.rs")
}

/// `file:line: text` for every line of which `is_offence` holds.
fn lines_where(files: &[(std::path::PathBuf, String)], is_offence: impl Fn(&str) -> bool) -> Vec<String> {
    files
        .iter()
        .flat_map(|(file, text)| text.lines().enumerate().map(move |(at, line)| (file, at + 1, line)))
        .filter(|(_, _, line)| is_offence(line))
        .map(|(file, at, line)| format!("{}:{at}: {}", file.display(), line.trim()))
        .collect()
}

#[test]
fn a_long_file_says_in_the_architecture_why_it_is_long() {
    let architecture =
        if root().join("ARCHITECTURE.md").exists() { text("ARCHITECTURE.md") } else { String::new() };
    let offences: Vec<String> = texts(is_hand_written)
        .iter()
        .map(|(file, text)| (file.display().to_string(), text.lines().count()))
        .filter(|(file, lines)| *lines > MOST_LINES && !architecture.contains(file.as_str()))
        .map(|(file, lines)| format!("{file}: {lines} lines"))
        .collect();
    check_none("files over 600 lines that ARCHITECTURE.md does not name", &offences);
}

#[test]
fn a_main_file_only_parses_and_runs() {
    let offences: Vec<String> = texts(|file| file.ends_with("src/main.rs"))
        .iter()
        .filter(|(_, text)| text.lines().count() > MOST_MAIN_LINES)
        .map(|(file, text)| format!("{}: {} lines", file.display(), text.lines().count()))
        .collect();
    check_none("main.rs over 30 lines", &offences);
}

#[test]
fn modules_are_nouns_beside_their_folder() {
    let offences: Vec<String> = files()
        .iter()
        .filter(|file| has_extension(file, &["rs"]))
        .filter(|file| {
            file.ends_with("mod.rs")
                || file.with_extension("").iter().any(|part| VAGUE_MODULES.iter().any(|vague| part == *vague))
        })
        .map(|file| file.display().to_string())
        .collect();
    check_none("mod.rs, or a module whose name says nothing", &offences);
}

#[test]
fn the_top_level_holds_the_rooms_and_what_all_of_them_need() {
    let offences: Vec<String> = files()
        .iter()
        .filter_map(|file| file.iter().next()?.to_str())
        .filter(|name| !TOP_LEVEL.contains(name))
        .map(String::from)
        .collect();
    check_none("unknown at the top", &offences);
}

#[test]
fn no_test_is_switched_off_or_expects_any_panic() {
    let sources = texts(|file| has_extension(file, &["rs"]) && !is_rule(file));
    let offences = lines_where(&sources, |line| line.contains("#[ignore") || line.contains("should_panic"));
    check_none("a test that does not run, or that any panic passes", &offences);
}

#[test]
fn no_test_sleeps() {
    let sources = texts(|file| is_test(file) && !is_rule(file));
    let offences = lines_where(&sources, |line| {
        ["thread::sleep(", "time::sleep(", "sleep(Duration"].iter().any(|call| line.contains(call))
    });
    check_none("a test waits for a condition with a deadline, it does not sleep", &offences);
}

#[test]
fn nothing_is_left_to_be_done_later_in_the_code() {
    let sources = texts(|file| is_hand_written(file) && !is_rule(file));
    let offences = lines_where(&sources, |line| {
        ["TODO", "FIXME", "XXX:", "todo!(", "unimplemented!("].iter().any(|word| line.contains(word))
    });
    check_none("code that is not finished", &offences);
}

#[test]
fn no_file_speaks_of_the_machine_it_was_written_on() {
    let everything = texts(|file| !is_rule(file) && file != Path::new("Cargo.lock"));
    let offences = lines_where(&everything, |line| {
        ["/work/", "../shared", "/root/.c", "/root/.r", "/root/go"].iter().any(|path| line.contains(path))
    });
    check_none("a path of one machine", &offences);
}

/// Characters that make a text read otherwise than it is (CVE-2021-42574), and invisible ones.
#[test]
fn no_file_holds_characters_that_cannot_be_seen() {
    let everything = texts(|file| !has_extension(file, &["png", "ico"]));
    let offences = lines_where(&everything, |line| {
        line.chars().any(|letter| {
            matches!(letter, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
                || (letter.is_control() && letter != '\t')
        })
    });
    check_none("a control or invisible character: write its escape", &offences);
}

#[test]
fn ci_runs_the_readmes_test_command() {
    let commands: Vec<String> = text(".ci/run")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(String::from)
        .collect();
    let expected = ["set -euo pipefail", r#"cd "$(dirname "${BASH_SOURCE[0]}")/..""#, "exec ./taskw test"];
    assert_eq!(commands, expected);
    assert!(text("README.md").contains("./taskw test"), "README.md shows the test command");
}
