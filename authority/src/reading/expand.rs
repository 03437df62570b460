//! Braces and blanks: one written word that becomes several.

use super::Unread;
use super::word::{BRACE_CLOSE, BRACE_COMMA, BRACE_OPEN, SPLIT, UNKNOWN, Word};

const MOST_WORDS: usize = 64;

/// The words a read word becomes.
pub(super) fn words(word: Word) -> Result<Vec<Word>, Unread> {
    if !word.text.contains([SPLIT, BRACE_OPEN, BRACE_COMMA, BRACE_CLOSE]) {
        return Ok(vec![word]);
    }
    let glob = word.glob;
    let mut texts = Vec::new();
    braces(&word.text, 0, &mut texts)?;
    let words = texts
        .iter()
        .flat_map(|text| text.split(SPLIT).filter(|piece| !piece.is_empty()))
        .map(|piece| Word { text: plain(piece), glob })
        .collect();
    Ok(words)
}

/// The text with its marks turned back into what was written.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            BRACE_OPEN => '{',
            BRACE_COMMA => ',',
            BRACE_CLOSE => '}',
            SPLIT => ' ',
            other => other,
        })
        .collect()
}

fn braces(text: &str, depth: usize, into: &mut Vec<String>) -> Result<(), Unread> {
    if depth > MOST_WORDS || into.len() > MOST_WORDS {
        return Err(Unread::TooManyParts);
    }
    let Some((before, alternatives, after)) = first_braces(text) else {
        into.push(text.to_owned());
        return Ok(());
    };
    for alternative in alternatives {
        braces(&format!("{before}{alternative}{after}"), depth + 1, into)?;
    }
    Ok(())
}

/// The first braces that the shell would expand: text before, alternatives, text after.
fn first_braces(text: &str) -> Option<(&str, Vec<String>, &str)> {
    for (start, _) in text.match_indices(BRACE_OPEN) {
        let inside = start + BRACE_OPEN.len_utf8();
        let mut depth = 0usize;
        let mut pieces = Vec::new();
        let mut from = inside;
        for (at, character) in text[inside..].char_indices().map(|(at, c)| (at + inside, c)) {
            match character {
                BRACE_OPEN => depth += 1,
                BRACE_CLOSE if depth > 0 => depth -= 1,
                BRACE_COMMA if depth == 0 => {
                    pieces.push(text[from..at].to_owned());
                    from = at + character.len_utf8();
                }
                BRACE_CLOSE => {
                    pieces.push(text[from..at].to_owned());
                    let after = &text[at + character.len_utf8()..];
                    if pieces.len() > 1 {
                        return Some((&text[..start], pieces, after));
                    }
                    if text[from..at].contains("..") {
                        return Some((&text[..start], sequence(&text[from..at]), after));
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

/// `a..c` as its ends; what lies between does not change what a word is.
fn sequence(inside: &str) -> Vec<String> {
    let mut ends: Vec<String> = inside.splitn(3, "..").take(2).map(str::to_owned).collect();
    ends.push(UNKNOWN.to_string());
    ends
}
