//! Where a nested construct ends.

use super::Unread;

/// What ends a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    Parenthesis,
    Brace,
    Bracket,
}

/// The index of the character that closes the construct whose inside begins at `start`. Quotes and nesting are followed
/// with a stack of their own, so that no input exhausts the program's.
pub(super) fn closing(chars: &[char], start: usize, closing: Closing) -> Result<usize, Unread> {
    let mut open = vec![end_of(closing)];
    let mut documents: Vec<(String, bool)> = Vec::new();
    let mut at = start;
    while let Some(&character) = chars.get(at) {
        let inside = open.last().copied().unwrap_or(')');
        match (inside, character) {
            (_, '\\') => at += 1,
            (end, found) if end == found => {
                open.pop();
                if open.is_empty() {
                    return Ok(at);
                }
            }
            ('"' | ')' | '}' | ']', '$') => match chars.get(at + 1) {
                Some('(') => {
                    open.push(')');
                    at += 1;
                }
                Some('{') => {
                    open.push('}');
                    at += 1;
                }
                _ => {}
            },
            (')' | '}' | ']', '\'') => {
                let length = chars[at + 1..].iter().position(|&c| c == '\'');
                at += 1 + length.ok_or(Unread::Construct("a quote without an end"))?;
            }
            (')' | '}' | ']', '"' | '`') | ('"', '`') => open.push(character),
            (')', '<') if chars.get(at + 1) == Some(&'<') => {
                if chars.get(at + 2) == Some(&'<') {
                    at += 2;
                } else {
                    documents.extend(document_tag(chars, at + 2));
                    at += 1;
                }
            }
            (')', '\n') if !documents.is_empty() => {
                at = after_documents(chars, at, std::mem::take(&mut documents));
            }
            (')', '(') => open.push(')'),
            (')', '#') if comment_starts(chars, at) => {
                at += chars[at..].iter().position(|&c| c == '\n').unwrap_or(chars.len() - at) - 1;
            }
            _ => {}
        }
        at += 1;
    }
    Err(Unread::Construct("a construct without an end"))
}

/// The delimiter of a here-document from what follows `<<`, without its quotes, and whether tabs are stripped.
fn document_tag(chars: &[char], start: usize) -> Option<(String, bool)> {
    let strips = chars.get(start) == Some(&'-');
    let rest = chars[(start + usize::from(strips)).min(chars.len())..]
        .iter()
        .skip_while(|c| matches!(c, ' ' | '\t'));
    let tag: String = rest
        .take_while(|c| !c.is_ascii_whitespace() && !matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')'))
        .filter(|c| !matches!(c, '\'' | '"' | '\\'))
        .collect();
    (!tag.is_empty()).then_some((tag, strips))
}

/// The index of the newline that ends the last of the here-documents whose bodies begin after the newline at `at`.
fn after_documents(chars: &[char], at: usize, documents: Vec<(String, bool)>) -> usize {
    let mut end = at;
    for (tag, strips) in documents {
        while end < chars.len() {
            let start = end + 1;
            let length = chars.get(start..).map_or(0, |rest| rest.iter().take_while(|c| **c != '\n').count());
            let line: String = chars.iter().skip(start).take(length).collect();
            end = start + length;
            if (if strips { line.trim_start_matches('\t') } else { line.as_str() }) == tag {
                break;
            }
        }
    }
    end
}

fn end_of(closing: Closing) -> char {
    match closing {
        Closing::Parenthesis => ')',
        Closing::Brace => '}',
        Closing::Bracket => ']',
    }
}

fn comment_starts(chars: &[char], at: usize) -> bool {
    at > 0 && chars.get(at - 1).is_some_and(|c| c.is_ascii_whitespace() || *c == ';')
}

/// Decodes `$'…'` from the character after the quote; gives the index after its end. Escapes as in bash(1), QUOTING.
pub(super) fn ansi_quoted(chars: &[char], start: usize, text: &mut String) -> Result<usize, Unread> {
    let mut at = start;
    while let Some(&character) = chars.get(at) {
        match character {
            '\'' => return Ok(at + 1),
            '\\' => at = ansi_escape(chars, at + 1, text),
            _ => {
                text.push(character);
                at += 1;
            }
        }
    }
    Err(Unread::Construct("a quote without an end"))
}

fn ansi_escape(chars: &[char], at: usize, text: &mut String) -> usize {
    let number = |from: usize, most: usize, radix: u32| {
        let digits: String = chars.iter().skip(from).take(most).take_while(|c| c.is_digit(radix)).collect();
        let value = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
        (value.unwrap_or('\u{fffd}'), from + digits.len())
    };
    let Some(&kind) = chars.get(at) else { return at };
    let (decoded, next) = match kind {
        'a' => ('\u{7}', at + 1),
        'b' => ('\u{8}', at + 1),
        'e' | 'E' => ('\u{1b}', at + 1),
        'f' => ('\u{c}', at + 1),
        'n' => ('\n', at + 1),
        'r' => ('\r', at + 1),
        't' => ('\t', at + 1),
        'v' => ('\u{b}', at + 1),
        'x' => number(at + 1, 2, 16),
        'u' => number(at + 1, 4, 16),
        'U' => number(at + 1, 8, 16),
        '0'..='7' => number(at, 3, 8),
        'c' => ('\u{fffd}', at + 2),
        other => (other, at + 1),
    };
    text.push(decoded);
    next
}
