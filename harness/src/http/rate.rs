//! Token buckets: one per caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whose bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Payer {
    /// The person.
    Person,
    /// A user that showed no good token.
    User(u32),
    /// Nobody knows who.
    Unknown,
}

impl Payer {
    /// Requests at once, and requests per second after that.
    const fn allowance(self) -> (f64, f64) {
        match self {
            Self::Person => (500.0, 100.0),
            Self::User(_) => (240.0, 20.0),
            Self::Unknown => (10.0, 1.0),
        }
    }
}

/// Buckets that are kept; the fullest go first, which forgets nothing that matters.
const MAX_BUCKETS: usize = 1024;

struct Bucket {
    left: f64,
    filled: Instant,
}

/// All buckets.
#[derive(Default)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<Payer, Bucket>>,
}

impl Rates {
    /// Takes one request from the caller's bucket; if it is empty, says when there will be one again.
    pub(crate) fn take(&self, payer: Payer, now: Instant) -> Result<(), Duration> {
        let (size, per_second) = payer.allowance();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&payer) {
            buckets.retain(|_, bucket| now.duration_since(bucket.filled) < Duration::from_mins(1));
        }
        let bucket = buckets.entry(payer).or_insert(Bucket { left: size, filled: now });
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.left = (bucket.left + passed * per_second).min(size);
        bucket.filled = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_bucket_refuses_its_caller_alone_and_fills_again() {
        let (rates, start) = (Rates::default(), Instant::now());
        for _ in 0..10 {
            assert_eq!(rates.take(Payer::Unknown, start), Ok(()));
        }
        let wait = rates.take(Payer::Unknown, start).expect_err("empty");
        assert_eq!(wait, Duration::from_secs(1));
        assert_eq!(rates.take(Payer::Person, start), Ok(()));
        assert_eq!(rates.take(Payer::User(1000), start), Ok(()));
        assert_eq!(rates.take(Payer::Unknown, start + wait), Ok(()));
        assert!(rates.take(Payer::Unknown, start + wait).is_err());
    }
}
