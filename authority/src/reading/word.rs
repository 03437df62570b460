//! One word of a command: what the shell would make of it, as far as that can be known without running anything.
//!
//! Written by hand and linear: a backtracking grammar takes time exponential in the nesting of `"$("`.

use super::Unread;
use super::expand;
use super::nested::{self, Closing};
use super::variables::Variables;

/// Stands in a word for text that only the shell knows when it runs.
pub(crate) const UNKNOWN: char = '\u{fffc}';
/// Where an unquoted value with blanks falls apart into several words.
pub(super) const SPLIT: char = '\u{fdd0}';
pub(super) const BRACE_OPEN: char = '\u{fdd1}';
pub(super) const BRACE_COMMA: char = '\u{fdd2}';
pub(super) const BRACE_CLOSE: char = '\u{fdd3}';

/// A word after quotes, escapes and known variables.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Word {
    /// The text; [`UNKNOWN`] where it cannot be known.
    pub(crate) text: String,
    /// Whether an unquoted `*`, `?` or `[` is in it.
    pub(crate) glob: bool,
}

impl Word {
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), glob: false }
    }

    /// Whether some of the text cannot be known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.text.contains(UNKNOWN)
    }
}

/// How the text around a word is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A word of a command.
    Command,
    /// The right side of an assignment, a redirect's target: no braces, no splitting.
    Single,
    /// The body of a here-document: quotes are ordinary characters.
    Document,
}

/// Reads words and collects the scripts nested in them.
pub(super) struct WordReader<'a> {
    pub(super) variables: &'a Variables,
    /// Texts of command substitutions, in order.
    pub(super) scripts: Vec<String>,
    /// Variables given a value by `${name:=value}`.
    pub(super) defaults: Vec<(String, String)>,
    depth: usize,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(variables: &'a Variables) -> Self {
        Self { variables, scripts: Vec::new(), defaults: Vec::new(), depth: 0 }
    }

    /// The words that `raw` becomes: usually one, more after braces and unquoted blanks, none if it vanishes.
    pub(super) fn words(&mut self, raw: &str) -> Result<Vec<Word>, Unread> {
        let word = self.read(raw, Style::Command)?;
        expand::words(word)
    }

    /// `raw` as one word.
    pub(super) fn single(&mut self, raw: &str, style: Style) -> Result<Word, Unread> {
        let mut word = self.read(raw, style)?;
        word.text = expand::plain(&word.text);
        Ok(word)
    }

    fn read(&mut self, raw: &str, style: Style) -> Result<Word, Unread> {
        if self.depth > 12 {
            return Err(Unread::TooDeep);
        }
        if raw.chars().any(|c| matches!(c, '\u{fdd0}'..='\u{fdef}')) {
            return Err(Unread::Construct("a character that no text uses"));
        }
        let chars: Vec<char> = raw.chars().collect();
        let mut word = Word::default();
        let mut at = 0;
        if style != Style::Document && chars.first() == Some(&'~') {
            at = self.tilde(&chars, &mut word);
        }
        while let Some(&character) = chars.get(at) {
            at = match character {
                '\\' if style == Style::Document => document_escape(&chars, at, &mut word),
                '\\' => escape(&chars, at, &mut word),
                '\'' if style != Style::Document => single_quoted(&chars, at, &mut word)?,
                '"' if style != Style::Document => self.double_quoted(&chars, at, &mut word)?,
                '$' => self.dollar(&chars, at, style == Style::Command, &mut word, style)?,
                '`' => self.backquoted(&chars, at, style == Style::Command, &mut word)?,
                _ => {
                    bare(character, style, &mut word);
                    at + 1
                }
            };
        }
        Ok(word)
    }

    fn tilde(&self, chars: &[char], word: &mut Word) -> usize {
        let end = chars.iter().position(|&c| matches!(c, '/' | ':')).unwrap_or(chars.len());
        let user: String = chars[1..end].iter().collect();
        if user == "+" {
            push_value(self.variables.folder.clone(), false, word);
        } else if user.is_empty() {
            word.text.push_str(self.variables.home());
        } else if user.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
            match user.as_str() {
                "root" => word.text.push_str("/root"),
                "-" => word.text.push(UNKNOWN),
                _ => word.text.extend(["/home/", &user]),
            }
        } else {
            return 0;
        }
        end
    }

    fn double_quoted(&mut self, chars: &[char], start: usize, word: &mut Word) -> Result<usize, Unread> {
        let mut at = start + 1;
        while let Some(&character) = chars.get(at) {
            at = match character {
                '"' => return Ok(at + 1),
                '\\' => match chars.get(at + 1) {
                    Some(&next @ ('$' | '`' | '"' | '\\')) => {
                        word.text.push(next);
                        at + 2
                    }
                    Some('\n') => at + 2,
                    _ => {
                        word.text.push('\\');
                        at + 1
                    }
                },
                '$' => self.dollar(chars, at, false, word, Style::Document)?,
                '`' => self.backquoted(chars, at, false, word)?,
                _ => {
                    word.text.push(character);
                    at + 1
                }
            };
        }
        Err(Unread::Construct("a quote without an end"))
    }

    fn dollar(
        &mut self,
        chars: &[char],
        at: usize,
        split: bool,
        word: &mut Word,
        style: Style,
    ) -> Result<usize, Unread> {
        match chars.get(at + 1) {
            Some('\'') if style != Style::Document => nested::ansi_quoted(chars, at + 2, &mut word.text),
            Some('"') if style != Style::Document => self.double_quoted(chars, at + 1, word),
            Some('(') if chars.get(at + 2) == Some(&'(') => self.arithmetic(chars, at, split, word),
            Some('(') => self.substitution(chars, at, split, word),
            Some('[') => {
                let end = nested::closing(chars, at + 2, Closing::Bracket)?;
                let inner: String = chars[at + 2..end].iter().collect();
                self.inside(&inner)?;
                word.text.push(UNKNOWN);
                Ok(end + 1)
            }
            Some('{') => {
                let end = nested::closing(chars, at + 2, Closing::Brace)?;
                let inner: String = chars[at + 2..end].iter().collect();
                self.parameter(&inner, split, word)?;
                Ok(end + 1)
            }
            Some(&first) if first.is_ascii_alphabetic() || first == '_' => {
                let length =
                    chars[at + 1..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count();
                let name: String = chars[at + 1..at + 1 + length].iter().collect();
                push_value(self.variables.value(&name), split, word);
                Ok(at + 1 + length)
            }
            Some(&name @ ('0'..='9' | '@' | '*' | '#' | '?' | '$' | '!' | '-')) => {
                push_value(self.variables.value(name.encode_utf8(&mut [0; 4])), split || name == '@', word);
                Ok(at + 2)
            }
            _ => {
                word.text.push('$');
                Ok(at + 1)
            }
        }
    }

    /// `$((…))`: a number, unless it was a substitution that begins with a subshell.
    fn arithmetic(
        &mut self,
        chars: &[char],
        at: usize,
        split: bool,
        word: &mut Word,
    ) -> Result<usize, Unread> {
        let end = nested::closing(chars, at + 3, Closing::Parenthesis)?;
        if chars.get(end + 1) != Some(&')') {
            return self.substitution(chars, at, split, word);
        }
        let inner: String = chars[at + 3..end].iter().collect();
        self.inside(&inner)?;
        word.text.push(UNKNOWN);
        Ok(end + 2)
    }

    fn substitution(
        &mut self,
        chars: &[char],
        at: usize,
        split: bool,
        word: &mut Word,
    ) -> Result<usize, Unread> {
        let end = nested::closing(chars, at + 2, Closing::Parenthesis)?;
        let script: String = chars[at + 2..end].iter().collect();
        push_value(self.variables.output_of(&script), split, word);
        self.scripts.push(script);
        Ok(end + 1)
    }

    fn backquoted(
        &mut self,
        chars: &[char],
        start: usize,
        split: bool,
        word: &mut Word,
    ) -> Result<usize, Unread> {
        let mut script = String::new();
        let mut at = start + 1;
        while let Some(&character) = chars.get(at) {
            match (character, chars.get(at + 1)) {
                ('`', _) => {
                    push_value(self.variables.output_of(&script), split, word);
                    self.scripts.push(script);
                    return Ok(at + 1);
                }
                ('\\', Some(&next @ ('`' | '\\' | '$'))) => {
                    script.push(next);
                    at += 2;
                }
                _ => {
                    script.push(character);
                    at += 1;
                }
            }
        }
        // In a here-document or an odd quote a lone backquote is an error of the shell's.
        Err(Unread::Construct("a backquote without an end"))
    }

    /// `${…}`: a known value, the default where there is none, or unknown.
    fn parameter(&mut self, inner: &str, split: bool, word: &mut Word) -> Result<(), Unread> {
        let name: String = inner.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let rest = &inner[name.len()..];
        if rest.is_empty() && !name.is_empty() {
            push_value(self.variables.value(&name), split, word);
            return Ok(());
        }
        if rest.starts_with('@') {
            return Err(Unread::Construct("a transformed variable"));
        }
        let known = self.variables.value(&name);
        let default = ["-", ":-", "=", ":="]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign).map(|value| (value, sign.ends_with('='))));
        match default {
            Some((raw, assigns)) if !name.is_empty() => {
                self.depth += 1;
                let value = self.single(raw, Style::Single)?;
                self.depth -= 1;
                if assigns {
                    self.defaults.push((name, value.text.clone()));
                }
                let text = known.filter(|text| !text.contains(UNKNOWN)).unwrap_or(value.text);
                push_value(Some(text), split, word);
            }
            _ => {
                self.inside(rest)?;
                word.text.push(UNKNOWN);
            }
        }
        Ok(())
    }

    /// Collects what is nested in text whose own value does not matter.
    fn inside(&mut self, raw: &str) -> Result<(), Unread> {
        self.depth += 1;
        let read = self.read(raw, Style::Document).map(|_| ());
        self.depth -= 1;
        read
    }
}

fn push_value(value: Option<String>, split: bool, word: &mut Word) {
    match value {
        None => word.text.push(UNKNOWN),
        Some(value) if split => {
            word.glob |= value.contains(['*', '?', '[']);
            word.text.extend(value.chars().map(|c| if c.is_ascii_whitespace() { SPLIT } else { c }));
        }
        Some(value) => word.text.push_str(&value),
    }
}

fn bare(character: char, style: Style, word: &mut Word) {
    let marked = match (style, character) {
        (Style::Command, '{') => BRACE_OPEN,
        (Style::Command, ',') => BRACE_COMMA,
        (Style::Command, '}') => BRACE_CLOSE,
        (_, other) => other,
    };
    word.glob |= style != Style::Document && matches!(character, '*' | '?' | '[');
    word.text.push(marked);
}

fn escape(chars: &[char], at: usize, word: &mut Word) -> usize {
    match chars.get(at + 1) {
        Some('\n') => {}
        Some(&next) => word.text.push(next),
        None => word.text.push('\\'),
    }
    at + 2
}

fn document_escape(chars: &[char], at: usize, word: &mut Word) -> usize {
    match chars.get(at + 1) {
        Some('\n') => at + 2,
        Some(&next @ ('$' | '`' | '\\')) => {
            word.text.push(next);
            at + 2
        }
        _ => {
            word.text.push('\\');
            at + 1
        }
    }
}

fn single_quoted(chars: &[char], start: usize, word: &mut Word) -> Result<usize, Unread> {
    let length = chars[start + 1..].iter().position(|&c| c == '\'');
    let end = start + 1 + length.ok_or(Unread::Construct("a quote without an end"))?;
    word.text.extend(&chars[start + 1..end]);
    Ok(end + 1)
}
