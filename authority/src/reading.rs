//! Reading a command: a script becomes the simple commands it would run, nested scripts included.
//!
//! Only constructs that are modelled here are read; for the rest the reading says so, and the command is judged at its
//! worst. Grammar by brush-parser, words by [`word`].

mod code;
mod expand;
mod interpreter;
mod nested;
mod options;
mod variables;
mod walk;
mod word;
mod wrapper;

use brush_parser::ast::Program;
use brush_parser::{ParseError, ParserOptions, Token, TokenizerError, TokenizerOptions};

pub(crate) use code::Code;
pub(crate) use word::{UNKNOWN, Word};
pub(crate) use wrapper::is_narrowed;

use crate::context::Workspace;
use crate::decision::Malformed;
use crate::place;

/// Longer texts are not read.
pub(crate) const MAX_CHARACTERS: usize = 10_000;
/// Commands of more parts are not read.
pub(crate) const MAX_PARTS: usize = 50;

/// What a script would run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// The simple commands, in the order written; a wrapper stands before the command that it runs.
    pub(crate) parts: Vec<Part>,
    /// What could not be read; empty for a script read in full.
    pub(crate) unread: Vec<Unread>,
}

/// One simple command, with the facts around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Program and arguments; empty for a bare assignment or redirect.
    pub(crate) words: Vec<Word>,
    /// Variables set for it, or by it.
    pub(crate) assignments: Vec<(String, Word)>,
    /// Where its input and output go.
    pub(crate) redirects: Vec<Redirect>,
    /// The folder it runs in, absolute, if that can be told.
    pub(crate) folder: Option<String>,
    /// The parts whose output it reads, through pipes and process substitutions.
    pub(crate) fed_by: Vec<usize>,
    /// The parts whose output stands in its words.
    pub(crate) substituted: std::ops::Range<usize>,
    /// Text on its standard input, from a here-document or here-string.
    pub(crate) input: Option<String>,
    /// Whether it only runs another command, which is a part of its own.
    pub(crate) wraps: bool,
    /// Program text given to an interpreter other than a shell.
    pub(crate) code: Option<Code>,
    /// A shell, or `eval`, that reads a script which cannot be seen.
    pub(crate) runs_unseen: bool,
    /// A function that starts itself again, in a pipe or in the background.
    pub(crate) multiplies: bool,
}

/// One redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) writes: bool,
    pub(crate) target: Word,
}

/// Why a script, or a piece of it, is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLong,
    TooManyParts,
    TooDeep,
    Grammar,
    UnclosedQuote,
    Construct(&'static str),
    /// A program whose name only the shell will know.
    Program,
    /// A wrapper with an option that is not known.
    Wrapper,
}

impl Unread {
    /// Whether nothing at all is known of the rest, so that it may be anything.
    pub(crate) fn is_blind(self) -> bool {
        match self {
            Self::TooLong
            | Self::TooManyParts
            | Self::TooDeep
            | Self::Grammar
            | Self::UnclosedQuote
            | Self::Construct(_) => true,
            Self::Program | Self::Wrapper => false,
        }
    }

    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "it is longer than 10,000 characters",
            Self::TooManyParts => "it has more than 50 parts",
            Self::TooDeep => "it is nested too deeply to be read",
            Self::Grammar | Self::UnclosedQuote => "it could not be read as shell text",
            Self::Construct(_) => "it holds a construct that is not read",
            Self::Program => "what it runs is only known when it runs",
            Self::Wrapper => "it runs another command in a way that is not known",
        }
    }
}

impl Part {
    /// The program's name without its folder; empty if there is none or it is unknown.
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", |word| base_name(&word.text))
    }

    pub(crate) fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The arguments' texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.args().iter().map(|word| word.text.as_str())
    }

    /// Whether an option is given: `long` with its dashes, or `short` in a cluster of one dash.
    pub(crate) fn has(&self, short: char, long: &str) -> bool {
        self.texts().take_while(|text| *text != "--").any(|text| {
            let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            cluster.is_some_and(|rest| rest.contains(short)) || is_long(text, long)
        })
    }

    /// Whether a long option is given, also as `--option=value` or in a single-dash form.
    pub(crate) fn has_long(&self, long: &str) -> bool {
        self.texts().any(|text| is_long(text, long))
    }

    /// The value of an option: the next word, or what follows in the same one.
    pub(crate) fn value_of(&self, options: &[&str]) -> Option<&str> {
        let texts: Vec<&str> = self.texts().collect();
        texts.iter().enumerate().find_map(|(at, text)| {
            options.iter().find_map(|option| {
                let rest = text.strip_prefix(option)?;
                if rest.is_empty() {
                    texts.get(at + 1).copied()
                } else if let Some(value) = rest.strip_prefix('=') {
                    Some(value)
                } else {
                    (!option.starts_with("--")).then_some(rest)
                }
            })
        })
    }

    /// Arguments that are not options, taking options in `valued` to be followed by a value.
    pub(crate) fn operands<'a>(&'a self, valued: &[&str]) -> Vec<&'a Word> {
        let mut operands = Vec::new();
        let mut only_operands = false;
        let mut skip = false;
        for word in self.args() {
            if skip {
                skip = false;
            } else if only_operands || !word.text.starts_with('-') || word.text == "-" {
                operands.push(word);
            } else if word.text == "--" {
                only_operands = true;
            } else {
                skip = valued.contains(&word.text.as_str());
            }
        }
        operands
    }

    /// One of its words as a normal absolute path, as far as that can be told.
    pub(crate) fn path(&self, word: &Word) -> String {
        place::resolve(self.folder.as_deref(), &word.text)
    }

    /// The part as text, for a person.
    pub(crate) fn shown(&self) -> String {
        let words = self.words.iter().map(|word| word.text.replace(UNKNOWN, "…"));
        let targets = self.redirects.iter().map(|redirect| {
            format!(
                "{} {}",
                if redirect.writes { ">" } else { "<" },
                redirect.target.text.replace(UNKNOWN, "…")
            )
        });
        words.chain(targets).collect::<Vec<_>>().join(" ")
    }
}

/// Whether `text` gives the option `long`, also by a beginning of three letters or more: getopt_long(3) and git take any
/// that is unambiguous.
fn is_long(text: &str, long: &str) -> bool {
    const SHORTEST: usize = "--abc".len();
    let name = text.split('=').next().unwrap_or(text);
    !long.is_empty()
        && (name == long || (name.len() >= SHORTEST && name.starts_with("--") && long.starts_with(name)))
}

/// What follows the last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The text of a command, or why it is none.
pub(crate) fn text(command: &[u8]) -> Result<&str, Malformed> {
    if command.contains(&0) {
        return Err(Malformed::Nul);
    }
    let text = std::str::from_utf8(command).map_err(|_| Malformed::NotUtf8)?;
    if text.trim().is_empty() { Err(Malformed::Empty) } else { Ok(text) }
}

/// Reads a script.
///
/// # Errors
/// [`Malformed::UnclosedQuote`] for a script that ends within a quote: a shell would refuse it too.
pub(crate) fn read(script: &str, workspace: &Workspace) -> Result<Reading, Malformed> {
    if script.chars().count() > MAX_CHARACTERS {
        return Ok(Reading { parts: Vec::new(), unread: vec![Unread::TooLong] });
    }
    let reading = walk::read(script, workspace);
    // Only where the whole script failed is there no part at all: what fails within one leaves that one.
    if reading.parts.is_empty() && reading.unread.contains(&Unread::UnclosedQuote) {
        return Err(Malformed::UnclosedQuote);
    }
    Ok(reading)
}

/// `Err(None)` where the tokenizer was not asked, or failed on itself.
fn tokens(script: &str) -> Result<Vec<Token>, Option<TokenizerError>> {
    let openings = script.matches(['(', '{', '`']).count();
    let nested = script.matches("$(").count() + script.matches("${").count() + script.matches('`').count();
    if nested > 100 || (nested > 0 && openings > 400) {
        return Err(None);
    }
    let options = TokenizerOptions { enable_extended_globbing: false, posix_mode: false, sh_mode: false };
    std::panic::catch_unwind(|| brush_parser::uncached_tokenize_str(script, &options))
        .map_err(|_| None)?
        .map_err(Some)
}

fn unread(error: &TokenizerError) -> Unread {
    let in_a_quote = matches!(
        error,
        TokenizerError::UnterminatedSingleQuote(_)
            | TokenizerError::UnterminatedDoubleQuote(_)
            | TokenizerError::UnterminatedAnsiCQuote(_)
    );
    if in_a_quote { Unread::UnclosedQuote } else { Unread::Grammar }
}

/// Parses one script, within bounds that keep the grammar's recursion and backtracking small.
fn parse(script: &str) -> Result<Program, Unread> {
    let tokens = tokens(script).map_err(|error| error.map_or(Unread::TooDeep, |error| unread(&error)))?;
    let mut parentheses = 0usize;
    let mut adjacent = false;
    let mut keywords = 0usize;
    let mut cases = 0usize;
    let mut previous_opens = false;
    for token in &tokens {
        let opens = matches!(token, Token::Operator(text, _) if text == "(");
        parentheses += usize::from(opens);
        adjacent |= opens && previous_opens;
        previous_opens = opens;
        if let Token::Word(text, _) = token {
            keywords += usize::from(matches!(
                text.as_str(),
                "{" | "if"
                    | "elif"
                    | "for"
                    | "while"
                    | "until"
                    | "case"
                    | "function"
                    | "coproc"
                    | "!"
                    | "select"
                    | "[["
            ));
            cases += usize::from(text == "case");
        }
    }
    if parentheses > 30 || keywords > 40 || cases > 5 || (adjacent && parentheses > 10) {
        return Err(Unread::TooDeep);
    }
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    std::panic::catch_unwind(|| brush_parser::parse_tokens(&tokens, &options))
        .map_err(|_| Unread::Grammar)?
        .map_err(|error: ParseError| match error {
            ParseError::ParsingNear(_) | ParseError::ParsingAtEndOfInput | ParseError::Tokenizing { .. } => {
                Unread::Grammar
            }
        })
}

#[cfg(test)]
mod tests;
