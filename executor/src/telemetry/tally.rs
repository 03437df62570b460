//! How often something happened that anybody may cause at will, said without filling the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most one line in so long a time.
const INTERVAL: Duration = Duration::from_secs(10);

/// Counts, and tells when a line is due: the first time at once, later at most every 10 s.
#[derive(Debug, Default)]
pub struct Tally(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    unsaid: u64,
    last_line: Option<Instant>,
}

impl Tally {
    /// Counts one. `Some` when a line is due: how many there were since the last line, this one included.
    pub fn note(&self) -> Option<u64> {
        self.note_at(Instant::now())
    }

    fn note_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.unsaid += 1;
        if state.last_line.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            return None;
        }
        state.last_line = Some(now);
        Some(std::mem::take(&mut state.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line_and_its_size_is_told_with_the_next() {
        let tally = Tally::default();
        let start = Instant::now();
        assert_eq!(tally.note_at(start), Some(1));
        for _ in 0..1000 {
            assert_eq!(tally.note_at(start + Duration::from_secs(1)), None);
        }
        assert_eq!(tally.note_at(start + INTERVAL), Some(1001));
    }
}
