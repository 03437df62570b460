//! Numbers as headers and extended records spell them.

use super::Mtime;

/// A numeric field of a header: octal digits between blanks, or two's complement after a set high bit. Blank is 0.
pub(super) fn field(field: &[u8]) -> Option<i64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        return binary(first, rest);
    }
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let digits = field[..end].trim_ascii();
    let mut value: i64 = 0;
    for digit in digits {
        if !(b'0'..=b'7').contains(digit) {
            return None;
        }
        value = value.checked_mul(8)?.checked_add(i64::from(digit - b'0'))?;
    }
    Some(value)
}

/// All bytes count, so that no two readers of the field can differ; what does not fit is no number.
fn binary(first: u8, rest: &[u8]) -> Option<i64> {
    let is_negative = first & 0x40 != 0;
    // The first bit says that the field is binary, the second is the sign.
    let mut value = if is_negative { i64::from(first) - 0x100 } else { i64::from(first & 0x3f) };
    for byte in rest {
        value = value.checked_mul(256)?.checked_add(i64::from(*byte))?;
    }
    Some(value)
}

/// A decimal number without a sign.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// A time as an extended record has it: `[-]seconds[.fraction]`; digits beyond nanoseconds are cut.
pub(super) fn time(text: &[u8]) -> Option<Mtime> {
    let (is_negative, text) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let mut nanos: u32 = 0;
    let fraction = parts.next().unwrap_or_default();
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    for place in 0..9 {
        nanos = nanos * 10 + fraction.get(place).map_or(0, |digit| u32::from(digit - b'0'));
    }
    Some(match (is_negative, nanos) {
        (false, _) => Mtime { seconds, nanos },
        (true, 0) => Mtime { seconds: -seconds, nanos: 0 },
        (true, _) => Mtime { seconds: -seconds - 1, nanos: 1_000_000_000 - nanos },
    })
}
