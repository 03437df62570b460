//! The product's own ground: its state, its interface, its programs. Refused in every mode, by every tool.

use crate::call::Call;
use crate::context::{ApiAddress, Context, OWN_PROGRAMS, Protected, Workspace};
use crate::decision::Because;
use crate::place;
use crate::reading::{Part, Reading, UNKNOWN, base_name};
use crate::visible::visible;

/// What a file tool touches that it must not.
pub(crate) fn by_path(call: &Call, context: &Context) -> Option<Because> {
    let workspace = context.workspace.as_ref()?;
    call.paths().into_iter().find_map(|path| {
        let expanded = match path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => format!("{}{rest}", workspace.home.as_deref().unwrap_or_default()),
            None => path.to_owned(),
        };
        let full = place::resolve(Some(&workspace.root), &expanded);
        names_state(&full, &context.protected).then(|| Because::ProtectedPath { path: visible(path) })
    })
}

/// What a command names that it must not. `script` is the whole text, for the pieces that were not read.
pub(crate) fn by_command(script: &str, reading: &Reading, context: &Context) -> Option<Because> {
    let protected = &context.protected;
    let workspace = context.workspace.as_ref()?;
    reading
        .parts
        .iter()
        .find_map(|part| {
            own_program(part, protected)
                .or_else(|| state(part, protected, workspace))
                .or_else(|| taken_whole(part, protected))
                .or_else(|| interface(part, reading, protected))
        })
        .or_else(|| in_text(script, protected))
}

fn own_program(part: &Part, protected: &Protected) -> Option<Because> {
    let name = part.name();
    let is_own =
        |name: &str| OWN_PROGRAMS.contains(&name) || protected.programs.iter().any(|program| program == name);
    let plugin = || {
        let words = part.operands(&[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "-s",
            "--server",
            "--user",
            "--token",
            "--as",
        ]);
        matches!(name, "kubectl" | "oc")
            && words.first().is_some_and(|word| is_own(&format!("kubectl-{}", word.text)))
    };
    // Signals by name: pkill(1), killall(1).
    let signals = || matches!(name, "pkill" | "killall") && part.texts().any(is_own);
    (is_own(name) || plugin() || signals()).then(|| Because::OwnProgram { program: visible(name) })
}

fn state(part: &Part, protected: &Protected, workspace: &Workspace) -> Option<Because> {
    let targets = part.redirects.iter().map(|redirect| &redirect.target);
    let values = part.assignments.iter().map(|(_, value)| value);
    part.words.iter().chain(targets).chain(values).find_map(|word| {
        // An option may carry a path: `--file=/state/x`, `of=/state/x`, `@/state/x`.
        let pieces = std::iter::once(word.text.as_str())
            .chain(word.text.split_once('=').map(|(_, value)| value))
            .chain(word.text.split_once('@').map(|(_, value)| value))
            .chain(word.text.find('/').map(|at| &word.text[at..]));
        let home = workspace.home.as_deref().unwrap_or_default();
        pieces
            .map(|piece| {
                piece.strip_prefix("~/").map_or_else(|| piece.to_owned(), |rest| format!("{home}/{rest}"))
            })
            .any(|piece| {
                let full = place::resolve(part.folder.as_deref(), &piece);
                names_state(&full, protected) || (word.glob && glob_reaches(&full, protected))
            })
            .then(|| Because::ProtectedPath { path: visible(&word.text.replace(UNKNOWN, "…")) })
    })
}

/// A folder above the state that is copied, moved or packed with all that is in it.
fn taken_whole(part: &Part, protected: &Protected) -> Option<Because> {
    let mut sources = part.operands(&["-f", "--file", "-C", "-t"]);
    match part.name() {
        "cp" | "mv" | "rsync" | "ln" | "scp" => {
            sources.pop();
        }
        "tar" | "zip" | "7z" | "cpio" => {}
        // The first word is the pattern.
        "grep" | "egrep" | "fgrep" if reads_all_below(part) && !sources.is_empty() => {
            sources.remove(0);
        }
        "rg" | "ag" | "ack" if !sources.is_empty() => {
            sources.remove(0);
        }
        _ => return None,
    }
    sources.into_iter().find_map(|word| {
        let full = part.path(word);
        let above = full != "/" && protected.paths.iter().any(|path| place::is_within(path, &full));
        above.then(|| Because::ProtectedPath { path: visible(&word.text) })
    })
}

fn reads_all_below(part: &Part) -> bool {
    part.has('r', "--recursive") || part.has('R', "--dereference-recursive")
}

fn names_state(full: &str, protected: &Protected) -> bool {
    let closed = protected.paths.iter().any(|path| !path.is_empty() && place::is_within(full, path));
    closed && !protected.open.iter().any(|open| !open.is_empty() && place::is_within(full, open))
}

/// Whether a pattern can mean a protected path or something in it.
fn glob_reaches(pattern: &str, protected: &Protected) -> bool {
    if protected.open.iter().any(|open| !open.is_empty() && place::is_within(pattern, open)) {
        return false;
    }
    let pieces: Vec<&str> = pattern.split('/').collect();
    protected.paths.iter().any(|path| {
        let wanted: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        wanted.len() > 1
            && pieces.len() >= wanted.len()
            && wanted.iter().zip(&pieces).all(|(name, piece)| matches_glob(piece, name))
    })
}

/// A shell pattern: `*` and `?`; a bracket stands for any one character, so that the answer errs towards yes.
pub(crate) fn matches_glob(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let mut reachable = vec![false; name.len() + 1];
    reachable[0] = true;
    let mut at = 0;
    while let Some(&piece) = pattern.get(at) {
        let mut next = vec![false; name.len() + 1];
        if piece == '*' || piece == UNKNOWN {
            let mut any = false;
            for (index, slot) in next.iter_mut().enumerate() {
                any |= reachable[index];
                *slot = any;
            }
        } else {
            let bracket = (piece == '[').then(|| pattern[at..].iter().position(|c| *c == ']')).flatten();
            at += bracket.unwrap_or(0);
            for (index, character) in name.iter().enumerate() {
                next[index + 1] =
                    reachable[index] && (bracket.is_some() || piece == '?' || piece == *character);
            }
        }
        reachable = next;
        at += 1;
    }
    reachable[name.len()]
}

/// Programs that can open a connection, given an address or text to run.
fn interface(part: &Part, reading: &Reading, protected: &Protected) -> Option<Because> {
    if is_text_only(part.name()) {
        return None;
    }
    let fed = part
        .fed_by
        .iter()
        .filter_map(|index| reading.parts.get(*index))
        .flat_map(Part::texts)
        .chain(part.input.as_deref());
    let texts: Vec<&str> = part
        .words
        .iter()
        .map(|word| word.text.as_str())
        .chain(part.redirects.iter().map(|redirect| redirect.target.text.as_str()))
        .chain(part.assignments.iter().map(|(_, value)| value.text.as_str()))
        .chain(part.code.iter().map(|code| code.text.as_str()))
        .collect();
    let feeds_a_client =
        matches!(part.name(), "xargs" | "nc" | "ncat" | "netcat" | "socat" | "telnet" | "curl" | "wget");
    let fed: Vec<&str> = if feeds_a_client { fed.collect() } else { Vec::new() };
    protected.api.iter().find_map(|address| {
        let joined = texts.iter().chain(&fed).copied().collect::<Vec<_>>().join(" ");
        reaches(&joined, address, part)
            .then(|| Because::OwnInterface { address: format!("{}:{}", address.host, address.port) })
    })
}

fn is_text_only(program: &str) -> bool {
    matches!(
        program,
        "echo"
            | "printf"
            | "grep"
            | "rg"
            | "git"
            | "cat"
            | "ls"
            | "sed"
            | "true"
            | "test"
            | "["
            | "export"
            | "lsof"
            | "ss"
            | "netstat"
            | "fuser"
            | ""
    )
}

/// Whether text names a host of this machine and the port, in any way a client would read.
fn reaches(text: &str, address: &ApiAddress, part: &Part) -> bool {
    let port = address.port.to_string();
    let names_port = text.match_indices(port.as_str()).any(|(at, found)| {
        // `:08081` is the same port to most clients.
        let before = text[..at].trim_end_matches('0').chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !before.is_some_and(|c| c.is_ascii_digit() || c == '.') && !after.is_some_and(|c| c.is_ascii_digit())
    });
    let lower = text.to_ascii_lowercase();
    let is_client = matches!(
        part.name(),
        "curl"
            | "wget"
            | "http"
            | "https"
            | "xh"
            | "nc"
            | "ncat"
            | "netcat"
            | "socat"
            | "telnet"
            | "grpcurl"
            | "websocat"
            | "openssl"
            | "ssh"
            | "hey"
            | "ab"
            | "wrk"
    );
    let own_host = lower.contains(&address.host.to_ascii_lowercase());
    // HTTPie's `:8081/path` is a port of this machine.
    let shorthand = matches!(part.name(), "http" | "xh") && text.split(' ').any(|word| word.starts_with(':'));
    let host = own_host || shorthand || names_this_machine(&lower);
    let answers = ["/v1/approvals", "/v1/sessions", "/v1/preferences", "/v1/tasks"]
        .iter()
        .any(|route| lower.contains(route));
    names_port && (host || is_client && text.contains(UNKNOWN) || lower.contains("/dev/tcp/"))
        || (answers && (host || text.contains(UNKNOWN)) && (is_client || part.code.is_some()))
}

/// Spellings of loopback: names, IPv4 in its short, decimal, hexadecimal and octal forms, IPv6 with and without mapping.
fn names_this_machine(lower: &str) -> bool {
    [
        "localhost",
        "127.",
        "::1",
        "0:0:0:0:0:0:0:1",
        "0.0.0.0",
        "::ffff:7f00",
        "2130706433",
        "0x7f",
        "0177.",
        "//0:",
        "//0/",
        " 0 ",
        "[::]",
        "ip6-loopback",
    ]
    .iter()
    .any(|spelling| lower.contains(spelling))
}

/// The last look, at text that may not have been read: a protected path as it is written.
fn in_text(script: &str, protected: &Protected) -> Option<Because> {
    protected
        .paths
        .iter()
        .filter(|path| path.len() > 1)
        .find(|path| {
            script.match_indices(path.as_str()).any(|(at, found)| {
                let rest = &script[at..];
                let ends = !script[at + found.len()..]
                    .starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '.');
                let word = rest
                    .split(|c: char| {
                        c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|' | '<' | '>' | ')')
                    })
                    .next()
                    .unwrap_or(rest);
                ends && names_state(&place::resolve(None, word), protected)
            })
        })
        .map(|path| Because::ProtectedPath { path: visible(base_name(path)) })
}
