//! Text of foreign origin as the model is shown it: cut within a bound, nothing invisible left invisible.

use std::fmt::Write as _;

/// The most bytes of one result that reach the model.
pub(crate) const MAX_RESULT_BYTES: usize = 25_000;

/// Shows `bytes`: what is not UTF-8 becomes U+FFFD; control characters but tab, line feed and carriage return before a
/// line feed, and characters that have no width or turn the direction, are written `\u{…}`.
pub(crate) fn visible(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.chars().any(is_suspect) {
        return text.into_owned();
    }
    let mut shown = String::with_capacity(text.len() + 64);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_line_end = character == '\r' && characters.peek() == Some(&'\n');
        if is_suspect(character) && !is_line_end {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_suspect(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Zero width, direction and invisible operators; variation selectors beyond the first sixteen; tags.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => character.is_control(),
    }
}

/// The beginning of `text`, at most `bound` bytes, cut on a character boundary, with a mark when something is left out.
pub(crate) fn head(text: &str, bound: usize) -> String {
    if text.len() <= bound {
        return text.to_owned();
    }
    let cut = text.floor_char_boundary(bound);
    let end_of_line = if text[..cut].ends_with('\n') { "" } else { "\n" };
    format!("{}{end_of_line}[… {} bytes left out]\n", &text[..cut], text.len() - cut)
}

/// Beginning and end of `text`, at most `bound` bytes of it, with a mark between them. The end gets the larger part: it
/// is where commands say how it went.
pub(crate) fn head_and_tail(text: &str, bound: usize) -> String {
    if text.len() <= bound {
        return text.to_owned();
    }
    let first = text.floor_char_boundary(bound / 3);
    let last = text.ceil_char_boundary(text.len() - (bound - bound / 3));
    format!("{}\n[… {} bytes left out …]\n{}", &text[..first], last - first, &text[last..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invisible_characters_are_seen_and_ordinary_text_is_untouched() {
        assert_eq!(visible("caf\u{e9}\t\u{1f30a}\r\nx".as_bytes()), "caf\u{e9}\t\u{1f30a}\r\nx");
        assert_eq!(
            visible("\u{202e}evoppa\u{200b}\x1b[2J\rx\0".as_bytes()),
            "\\u{202e}evoppa\\u{200b}\\u{1b}[2J\\u{d}x\\u{0}"
        );
        assert_eq!(visible(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn a_cut_is_on_a_character_and_says_how_much_is_missing() {
        assert_eq!(head("ab\u{20ac}d", 4), "ab\n[… 4 bytes left out]\n");
        assert_eq!(head("abcd", 4), "abcd");
        assert_eq!(head_and_tail("abcdefghi", 6), "ab\n[… 3 bytes left out …]\nfghi");
    }

    proptest! {
        #[test]
        fn no_cut_panics_or_grows(text in "\\PC{0,60}", bound in 0usize..80) {
            prop_assert!(head(&text, bound).len() <= bound.max(text.len().min(bound)) + 40);
            prop_assert!(head_and_tail(&text, bound).len() <= bound + 44);
        }
    }
}
