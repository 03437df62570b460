//! Program text given on a command line or in a here-document to an interpreter other than a shell.

use super::{Part, UNKNOWN};

/// Text for an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
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
    let options: &[&str] = match stem {
        "python" | "pypy" => &["-c"],
        "node" | "nodejs" | "bun" => &["-e", "--eval", "-p", "--print", "-pe"],
        "ruby" | "lua" | "Rscript" | "osascript" => &["-e"],
        "perl" => &["-e", "-E", "-ne", "-pe", "-i -pe", "-lne", "-le", "-pie", "-0pe", "-0777pe"],
        "php" => &["-r"],
        "deno" => &["eval"],
        "awk" | "gawk" | "mawk" | "nawk" => {
            let text = part.operands(&["-v", "-F", "-f"]).first().map(|word| word.text.clone())?;
            return Some(Code { text });
        }
        _ => return None,
    };
    if let Some(text) = options.iter().find_map(|option| part.value_of(&[option])) {
        return Some(Code { text: text.to_owned() });
    }
    let operands = part.operands(&["-m", "-W", "-X", "-I", "-r", "--require"]);
    let from_input = operands.first().is_none_or(|word| word.text == "-")
        && !part.texts().any(|text| {
            text.starts_with("-m") || text.starts_with("--version") || text == "-V" || text == "-v"
        });
    match (from_input, input) {
        (true, Some(text)) => Some(Code { text: text.to_owned() }),
        (true, None) if !part.fed_by.is_empty() => Some(Code { text: UNKNOWN.to_string() }),
        _ => None,
    }
}

/// The commands that code runs, as shell text, and whether it runs some whose text is not a literal.
pub(super) fn commands(code: &Code) -> (Vec<String>, bool) {
    let mut scripts = Vec::new();
    let mut hidden = false;
    for call in RUNS {
        for (at, _) in code.text.match_indices(call) {
            let follows_name = code.text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            if follows_name || (call.ends_with(' ') && !starts_statement(&code.text[..at])) {
                continue;
            }
            let literals = literals(argument(&code.text[at + call.len()..]));
            if literals.is_empty() {
                hidden = true;
            } else {
                scripts.push(literals.join(" "));
            }
        }
    }
    scripts.sort();
    scripts.dedup();
    (scripts, hidden)
}

/// Whether the text before a bare word (`system "x"` in Perl and Ruby) is the beginning of a statement.
fn starts_statement(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with([';', '{', '\n', '}'])
}

/// Up to the parenthesis that closes the call, or the end of the statement; at most 2,000 bytes.
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

/// The quoted literals of an expression.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(char, String)> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match open.as_mut() {
            Some((quote, _)) if *quote == character => found.extend(open.take().map(|(_, text)| text)),
            Some((_, text)) if character == '\\' => text.extend(characters.next()),
            Some((_, text)) => text.push(character),
            None if matches!(character, '"' | '\'' | '`') => open = Some((character, String::new())),
            None => {}
        }
    }
    found
}
