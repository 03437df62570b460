//! Text as a person must see it.

use std::fmt::Write as _;

/// The text with every character that would not show, or would change how its neighbours show, written as an escape.
///
/// A newline stays one, and is preceded by `\n`, so that neither a hidden line nor a fake one goes unseen. A tab is `\t`,
/// others are `\xNN` or `\u{NNNN}`; runs of more than eight blanks are counted, `{400 spaces}`. A backslash is left alone: what is escaped is
/// escaped for the eye and is never read back. Nothing is cut.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut blanks = 0usize;
    for character in text.chars() {
        if character == ' ' {
            blanks += 1;
            continue;
        }
        flush_blanks(&mut shown, &mut blanks);
        show(&mut shown, character);
    }
    flush_blanks(&mut shown, &mut blanks);
    shown
}

fn flush_blanks(shown: &mut String, blanks: &mut usize) {
    if *blanks > 8 {
        let _ = write!(shown, "{{{blanks} spaces}}");
    } else {
        shown.extend(std::iter::repeat_n(' ', *blanks));
    }
    *blanks = 0;
}

fn show(shown: &mut String, character: char) {
    match character {
        '\n' => shown.push_str("\\n\n"),
        '\t' => shown.push_str("\\t"),
        '\r' => shown.push_str("\\r"),
        '\u{0}'..='\u{7f}' if character.is_ascii_control() => {
            let _ = write!(shown, "\\x{:02x}", u32::from(character));
        }
        ' '..='~' => shown.push(character),
        _ if hides(character) => {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        }
        _ => shown.push(character),
    }
}

/// Control, format, separator, private and unassigned-plane characters, combining marks without a base of their own on
/// screen, and blanks other than the space. From the Unicode 16 categories Cc, Cf, Zl, Zp, Zs, Co, Cn and the variation
/// selectors, as ranges.
fn hides(character: char) -> bool {
    matches!(u32::from(character),
        0x80..=0xa0 | 0xad | 0x034f | 0x0600..=0x0605 | 0x061c | 0x06dd | 0x070f | 0x0890..=0x0891 | 0x08e2
        | 0x115f..=0x1160 | 0x1680 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x2800 | 0x3000 | 0x3164
        | 0xe000..=0xf8ff | 0xfdd0..=0xfdef | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffc | 0xfffe..=0xffff
        | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0x1fffe..=0x1ffff
        | 0x2fffe..=0x2ffff | 0x323b0..=0x10_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_show_is_escaped() {
        for (raw, shown) in [
            ("ls\u{200b} -la", "ls\\u{200b} -la"),
            ("\u{202e}ls -la", "\\u{202e}ls -la"),
            ("ls\u{3000}-la", "ls\\u{3000}-la"),
            ("ls -la\u{feff}", "ls -la\\u{feff}"),
            ("ls -la\u{1b}[2K\rls", "ls -la\\x1b[2K\\rls"),
            ("a\u{2066}b\u{2069}", "a\\u{2066}b\\u{2069}"),
            ("x\u{e0100}\u{1d173}", "x\\u{e0100}\\u{1d173}"),
            ("ls -la\r", "ls -la\\r"),
            ("echo hello\n\nid", "echo hello\\n\n\\n\nid"),
            ("a\tb\u{0}\u{7f}", "a\\tb\\x00\\x7f"),
            ("a\u{2028}b\u{2029}c\u{85}", "a\\u{2028}b\\u{2029}c\\u{85}"),
            ("\u{e000}\u{10ffff}", "\\u{e000}\\u{10ffff}"),
        ] {
            assert_eq!(visible(raw), shown);
        }
    }

    #[test]
    fn text_that_shows_is_left_alone() {
        for text in ["ls -la", "cat 'café.md'", "echo ```", "日本語 ⛵", "a\\nb", "héllo – “x”", "        x"]
        {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn a_tail_pushed_out_of_sight_by_blanks_comes_back() {
        let hidden = format!("ls -la{}; id", " ".repeat(400));
        assert_eq!(visible(&hidden), "ls -la{400 spaces}; id");
        let tabs = format!("ls{}; id", "\t".repeat(20));
        assert_eq!(visible(&tabs), format!("ls{}; id", "\\t".repeat(20)));
    }

    #[test]
    fn a_long_text_is_never_cut() {
        let long = "echo x;".repeat(4000);
        assert_eq!(visible(&long), long);
    }
}
