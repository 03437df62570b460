//! Times as people write them.

use std::time::Duration;

/// `90` and `90s`, `10m`, `1h`, and these together as in `1h30m`: at least 1 s, at most a day.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let malformed = || "must be a time such as 90s, 10m or 1h30m, from 1s to 24h".to_owned();
    let mut seconds = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..n_digits].parse().map_err(|_| malformed())?;
        rest = &rest[n_digits..];
        let unit = rest.chars().next();
        let factor = match unit {
            None if n_digits == text.len() => 1,
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3600,
            None | Some(_) => return Err(malformed()),
        };
        rest = &rest[unit.map_or(0, char::len_utf8)..];
        seconds =
            number.checked_mul(factor).and_then(|more| seconds.checked_add(more)).ok_or_else(malformed)?;
    }
    if (1..=86_400).contains(&seconds) { Ok(Duration::from_secs(seconds)) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_numbers_with_units() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("24h", 86_400)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "-1", "1d", "0", "25h", "1h30", "1.5h", "99999999999999999999", "5ms"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
