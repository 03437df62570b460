//! Text of others on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every character escaped that would not show, or would change how its neighbours show or what a terminal does:
/// controls (C1 too), line ends, bidirectional marks, invisible characters.
///
/// A backslash is left alone: names come from the protocol with escapes of its own in them.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if character.is_ascii_control() => {
                let _ = write!(out, "\\x{:02X}", u32::from(character));
            }
            _ if hides(character) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// JSON in which nothing hides either: such characters are only in its strings, where an escape means the same.
pub(crate) fn shown_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character == '\n' || !hides(character) {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Control, format, separator, private and unassigned-plane characters, fillers and variation selectors, by the Unicode 16
/// categories Cc, Cf, Zl, Zp, Co and Cn, as ranges.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x034f | 0x0600..=0x0605 | 0x061c | 0x06dd | 0x070f | 0x0890..=0x0891 | 0x08e2
            | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164
            | 0xe000..=0xf8ff | 0xfdd0..=0xfdef | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xfffe..=0xffff
            | 0x110bd | 0x110cd | 0x13430..=0x1343f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a
            | 0xe0000..=0x10_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_by_a_name() {
        for (raw, expected) in [
            ("a b", "a b"),
            ("naïve 日本語", "naïve 日本語"),
            ("\u{1b}]52;c;cm0=\u{7}", "\\x1B]52;c;cm0=\\x07"),
            ("\u{1b}[2J\r\n", "\\x1B[2J\\r\\n"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}cod.exe", "\\u{202e}cod.exe"),
            ("a\u{200b}b\u{2028}", "a\\u{200b}b\\u{2028}"),
            ("x\\xFFy", "x\\xFFy"),
        ] {
            assert_eq!(shown(raw), expected);
        }
    }

    #[test]
    fn json_means_the_same_and_hides_nothing() {
        let text = "a\u{9b}\u{202e}\u{e0041}\u{1b}\n";
        let json = serde_json::to_string_pretty(&[text]).expect("JSON");
        let safe = shown_json(&json);
        assert!(safe.chars().all(|character| character == '\n' || !hides(character)), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).expect("JSON"), [text]);
    }
}
