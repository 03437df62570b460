//! Commands that only read: the ones that are no change in a read-only or ask-first session.

use crate::context::Workspace;
use crate::reading::{Part, Reading};

/// Programs that print and do nothing else, whatever their arguments.
const READERS: [&str; 48] = [
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "pwd",
    "echo",
    "printf",
    "grep",
    "egrep",
    "fgrep",
    "stat",
    "file",
    "du",
    "df",
    "which",
    "whoami",
    "id",
    "uname",
    "hostname",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "true",
    "false",
    "test",
    "[",
    "cut",
    "uniq",
    "comm",
    "diff",
    "cmp",
    "nl",
    "tac",
    "rev",
    "od",
    "hexdump",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "cksum",
    "strings",
    "ps",
    "uptime",
    "nproc",
    "cd",
    "seq",
];

/// Subcommands of git that read. `git` runs programs named in the repository's own configuration, so this counts only
/// where the owner vouches for the workspace.
const GIT_READERS: [&str; 12] = [
    "status",
    "log",
    "show",
    "diff",
    "blame",
    "shortlog",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "cat-file",
    "describe",
];

/// Whether every part of a command, all of it read, only reads.
pub(crate) fn only(reading: &Reading, workspace: &Workspace) -> bool {
    reading.unread.is_empty()
        && !reading.parts.is_empty()
        && reading.parts.iter().all(|part| reads(part, workspace))
}

fn reads(part: &Part, workspace: &Workspace) -> bool {
    let writes = part.redirects.iter().any(|redirect| redirect.writes && redirect.target.text != "/dev/null");
    if writes || !part.assignments.is_empty() {
        return false;
    }
    let Some(program) = part.words.first().map(|word| word.text.as_str()) else { return true };
    if part.wraps {
        return matches!(program, "time" | "timeout" | "nice" | "command" | "xargs");
    }
    let has_any =
        |options: &[&str]| part.texts().any(|text| options.iter().any(|option| text.starts_with(option)));
    match program {
        "rg" => !has_any(&["--pre", "--hostname-bin", "--search-zip"]) && !part.has('z', ""),
        "sort" => !has_any(&["-o", "--o", "--compress", "-T", "--temp"]) && !part.has('o', ""),
        "find" => !has_any(&["-delete", "-exec", "-ok", "-fprint", "-fls"]),
        "git" => workspace.trusted && git_reads(part),
        "date" => !part.has('s', "--set"),
        program => READERS.contains(&program),
    }
}

fn git_reads(part: &Part) -> bool {
    let texts: Vec<&str> = part.texts().collect();
    let Some((command, rest)) = texts.split_first() else { return false };
    let runs = rest.iter().any(|text| {
        ["--output", "--ext-diff", "--textconv", "--no-index", "-O", "--open-files"]
            .iter()
            .any(|option| text.starts_with(option))
    });
    GIT_READERS.contains(command) && !runs
}
