//! Program text given on a command line or in a here-document to an interpreter other than a shell.

use super::{Part, UNKNOWN};

/// Text for an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The interpreter, without its version.
    pub(crate) language: String,
    /// The text, or [`UNKNOWN`] where it cannot be seen.
    pub(crate) text: String,
}

/// Calls that run a command, in the languages that agents write inline.
const RUNS: &[&str] = &[
    "system(",
    "popen(",
    "popen2(",
    "popen3(",
    "subprocess.run(",
    "subprocess.call(",
    "subprocess.Popen(",
    "check_call(",
    "check_output(",
    "getoutput(",
    "getstatusoutput(",
    "execSync(",
    "execFileSync(",
    "spawnSync(",
    "spawn(",
    ".exec(",
    "exec(",
    "execvp(",
    "execv(",
    "execl(",
    "execlp(",
    "execute(",
    "shell_exec(",
    "passthru(",
    "qx(",
    "qx{",
    "IO.popen(",
    "Open3.",
    "os.spawn",
    "system ",
    "exec ",
];

/// The code a part runs inline, if it is an interpreter that is given some.
pub(super) fn of(part: &Part, input: Option<&str>) -> Option<Code> {
    let name = part.name();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let made = |text| Code { language: stem.to_owned(), text };
    let options: &[&str] = match stem {
        "python" | "pypy" => &["-c"],
        "node" | "nodejs" | "bun" => &["-e", "--eval", "-p", "--print", "-pe"],
        "ruby" | "lua" | "Rscript" | "osascript" => &["-e"],
        "perl" => &["-e", "-E", "-ne", "-pe", "-i -pe", "-lne", "-le", "-pie", "-0pe", "-0777pe"],
        "php" => &["-r"],
        "deno" => &["eval"],
        "awk" | "gawk" | "mawk" | "nawk" => {
            let text = part.operands(&["-v", "-F", "-f"]).first().map(|word| word.text.clone())?;
            return Some(made(text));
        }
        _ => return None,
    };
    if let Some(text) = options.iter().find_map(|option| part.value_of(&[option])) {
        return Some(made(text.to_owned()));
    }
    let operands = part.operands(&["-m", "-W", "-X", "-I", "-r", "--require"]);
    let from_input = operands.first().is_none_or(|word| word.text == "-")
        && !part.texts().any(|text| {
            text.starts_with("-m") || text.starts_with("--version") || text == "-V" || text == "-v"
        });
    match (from_input, input) {
        (true, Some(text)) => Some(made(text.to_owned())),
        (true, None) if !part.fed_by.is_empty() => Some(made(UNKNOWN.to_string())),
        _ => None,
    }
}

/// The commands that code runs, as shell text, and whether it runs some that cannot be seen.
pub(super) fn commands(code: &Code) -> (Vec<String>, bool) {
    let mut scripts = Vec::new();
    let mut hidden = false;
    for call in RUNS {
        for (at, _) in code.text.match_indices(call) {
            let before = &code.text[..at];
            let follows_name = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let is_method = before.ends_with('.') && *call == "exec(";
            if follows_name || is_method || (call.ends_with(' ') && !starts_statement(before)) {
                continue;
            }
            match pieces(argument(&code.text[at + call.len()..])) {
                Some(pieces) if pieces.iter().any(|piece| !piece.starts_with(UNKNOWN)) => {
                    scripts.push(pieces.join(" "));
                }
                Some(_) | None => hidden = true,
            }
        }
    }
    // `exec` and `eval` of these languages run more code, not a command.
    hidden |= ["exec(", "eval(", "__import__(\"base64", "new Function("].iter().any(|call| {
        code.text.match_indices(call).any(|(at, _)| {
            !code.text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        })
    });
    scripts.extend(quoted_commands(code));
    scripts.sort();
    scripts.dedup();
    (scripts, hidden)
}

/// Commands in backquotes (Perl, Ruby, PHP) and on the far side of a pipe (awk).
fn quoted_commands(code: &Code) -> Vec<String> {
    match code.language.as_str() {
        "perl" | "ruby" | "php" => code.text.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let piped = code
                .text
                .split('|')
                .skip(1)
                .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
            let read = code.text.match_indices("getline").filter_map(|(at, _)| {
                let before = code.text[..at].trim_end().strip_suffix('|')?.trim_end().strip_suffix('"')?;
                before.rsplit('"').next()
            });
            piped.chain(read).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the text before a bare word (`system "x"` in Perl and Ruby) is the beginning of a statement.
fn starts_statement(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with([';', '{', '\n', '}'])
}

/// Up to the parenthesis that closes the call, or the end of the statement; at most 2,000 characters.
fn argument(text: &str) -> &str {
    let mut depth = 0usize;
    let mut quote = None;
    for (at, character) in text.char_indices().take(2_000) {
        match (quote, character) {
            (Some(open), found) if open == found => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}' | ';' | '\n') if depth == 0 => return &text[..at],
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    text
}

/// The literals of an expression in order, [`UNKNOWN`] for each name between them; `None` where it computes its text.
fn pieces(argument: &str) -> Option<Vec<String>> {
    const COMPUTES: [&str; 14] = [
        "decode",
        "fromhex",
        "atob",
        "base64",
        "hexlify",
        "chr(",
        "fromCharCode",
        "join",
        "replace",
        "reverse",
        "[::-1]",
        "pack(",
        "rot13",
        ".format",
    ];
    const SETTINGS: [&str; 10] = ["True", "False", "None", "true", "false", "null", "f", "r", "b", "rb"];
    if COMPUTES.iter().any(|sign| argument.contains(sign)) {
        return None;
    }
    let mut found: Vec<String> = Vec::new();
    let mut name = String::new();
    let mut names = true;
    let mut characters = argument.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' | '\'' | '`' => {
                let formatted = name == "f" || character == '`';
                name.clear();
                found.push(literal(&mut characters, character, formatted));
            }
            // What follows a `name=` is a setting, and so is what stands in a block of them.
            '=' | ':' => {
                name.clear();
                names = false;
            }
            ',' => {
                push_name(&mut found, &mut name, names, &SETTINGS);
                names = true;
            }
            c if c.is_alphanumeric() || matches!(c, '_' | '.') => name.push(c),
            _ => push_name(&mut found, &mut name, names, &SETTINGS),
        }
    }
    push_name(&mut found, &mut name, names, &SETTINGS);
    Some(found)
}

fn push_name(found: &mut Vec<String>, name: &mut String, names: bool, settings: &[&str]) {
    let is_value = name.starts_with(|c: char| c.is_ascii_digit()) || settings.contains(&name.as_str());
    if names && !name.is_empty() && !is_value {
        found.push(UNKNOWN.to_string());
    }
    name.clear();
}

/// One literal up to its quote; what a format puts into it is unknown.
fn literal(characters: &mut std::str::Chars, quote: char, formatted: bool) -> String {
    let mut text = String::new();
    let mut inside = 0usize;
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            found if found == quote => break,
            '{' if formatted => {
                inside += 1;
                if quote == '`' && text.ends_with('$') {
                    text.pop();
                }
            }
            '}' if formatted && inside > 0 => {
                inside -= 1;
                text.push(UNKNOWN);
            }
            _ if inside > 0 => {}
            other => text.push(other),
        }
    }
    text
}
