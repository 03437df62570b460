//! How long to wait before asking a provider again.

use std::time::Duration;

use jiff::Timestamp;

/// The pause before attempt `attempt` (the first repeat is 1): exponential from `base`, half of it at random, at most
/// `longest`. `random` is uniform over all of `u64`.
pub(crate) fn backoff(attempt: u32, base: Duration, longest: Duration, random: u64) -> Duration {
    let whole = base.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1))).min(longest);
    let half = whole / 2;
    #[expect(clippy::cast_precision_loss, reason = "a fraction needs no more than 53 bits")]
    let fraction = random as f64 / u64::MAX as f64;
    half + half.mul_f64(fraction)
}

/// What a `Retry-After` header asks for: seconds or a date (RFC 9110 section 10.2.3). `None` when it is neither.
pub(crate) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_is_jittered_and_bounded() {
        let pause = |attempt, random| {
            backoff(attempt, Duration::from_millis(500), Duration::from_secs(4), random).as_millis()
        };
        assert_eq!([pause(1, 0), pause(1, u64::MAX)], [250, 500]);
        assert_eq!([pause(3, 0), pause(3, u64::MAX)], [1000, 2000]);
        assert_eq!([pause(40, 0), pause(40, u64::MAX)], [2000, 4000]);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2015-10-21T07:28:00Z".parse().expect("timestamp");
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:30 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:27:30 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert_eq!(retry_after("-1", now), None);
    }
}
