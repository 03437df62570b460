//! Spans of time as people write them in a manifest.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::rule::rules;

/// As [`WholeSeconds`] reads them.
const FORM: &str = "self.matches('^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$') && self != ''";

/// The rule of a field: a span from `least` to `most`. One rule for form and bounds, so that a mistake is told once.
pub(crate) fn within(least: &str, most: &str) -> Value {
    let rule =
        format!("{FORM} && duration(self) >= duration('{least}') && duration(self) <= duration('{most}')");
    rules(&[(&rule, &format!("must be a duration such as 90s, 30m or 1h30m, from {least} to {most}"))])
}

/// The longest span there is.
const LONGEST: &str = "99999h59m59s";

/// A span of time in whole seconds, written as `1h30m`, `45s`, `0s`: Go's form of a duration, as elsewhere in Kubernetes,
/// with at most five digits for each unit and below 100,000 hours in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String", extend("minLength" = 2, "maxLength" = 18, "x-kubernetes-validations" = within("0s", LONGEST)))]
pub struct WholeSeconds(u64);

impl WholeSeconds {
    /// So many seconds.
    pub const fn new(seconds: u64) -> Self {
        Self(seconds)
    }

    /// So many minutes.
    pub const fn from_minutes(minutes: u64) -> Self {
        Self(minutes * 60)
    }

    /// The number of seconds.
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// The span as the standard library has it.
    pub const fn to_duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// A text that is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADuration(String);

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a duration such as 90s, 30m or 1h30m", self.0)
    }
}

impl std::error::Error for NotADuration {}

impl FromStr for WholeSeconds {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let refused = || NotADuration(text.to_owned());
        let (mut rest, mut seconds) = (text, 0_u64);
        for (unit, size) in [('h', 3600), ('m', 60), ('s', 1)] {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            if let Some(after) = after.strip_prefix(unit) {
                if digits > 5 {
                    return Err(refused());
                }
                seconds += number.parse::<u64>().map_err(|_| refused())? * size;
                rest = after;
            }
        }
        if text.is_empty() || !rest.is_empty() || seconds >= 100_000 * 3600 {
            Err(refused())
        } else {
            Ok(Self(seconds))
        }
    }
}

impl fmt::Display for WholeSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3600, self.0 / 60 % 60, self.0 % 60);
        for (number, unit) in [(hours, 'h'), (minutes, 'm'), (seconds, 's')] {
            if number > 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        if self.0 == 0 { f.write_str("0s") } else { Ok(()) }
    }
}

impl Serialize for WholeSeconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WholeSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_as_it_is_written_and_written_shortest() {
        for (text, seconds, written) in [
            ("90s", 90, "1m30s"),
            ("30m", 1800, "30m"),
            ("1h30m", 5400, "1h30m"),
            ("0s", 0, "0s"),
            ("0h0m0s", 0, "0s"),
            ("99999m99999s", 99_999 * 61, "1694h25m39s"),
            ("99999h59m59s", 100_000 * 3600 - 1, "99999h59m59s"),
        ] {
            let span: WholeSeconds = text.parse().unwrap();
            assert_eq!((span.as_secs(), span.to_string().as_str()), (seconds, written), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in
            ["", "5", "m", "1.5h", "-1s", "1d", "30s1m", "1m 30s", "100000s", "1h1h", "٣s", "99999h60m"]
        {
            assert_eq!(text.parse::<WholeSeconds>(), Err(NotADuration(text.to_owned())));
        }
    }
}
