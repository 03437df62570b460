//! Samples and what is told of them.

use std::time::{Duration, Instant};

/// Times of one thing, in the order they were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Duration>);

impl Samples {
    pub(super) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value that `percent` of the samples do not exceed (nearest rank).
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let mut ordered = self.0.clone();
        ordered.sort_unstable();
        let rank = (ordered.len() * percent).div_ceil(100).max(1);
        ordered.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Takes `n` samples of each of both, one of the one and one of the other in turn, after `warm` unmeasured ones.
pub(super) async fn interleaved(
    warm: usize,
    n: usize,
    mut ours: impl AsyncFnMut() -> anyhow::Result<()>,
    mut reference: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<(Samples, Samples)> {
    let (mut first, mut second) = (Samples::default(), Samples::default());
    for round in 0..warm + n {
        let start = Instant::now();
        ours().await?;
        let middle = Instant::now();
        reference().await?;
        let end = Instant::now();
        if round >= warm {
            first.push(middle - start);
            second.push(end - middle);
        }
    }
    Ok((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut samples = Samples::default();
        (1..=200).rev().for_each(|millis| samples.push(Duration::from_millis(millis)));
        assert_eq!(samples.percentile(50), Duration::from_millis(100));
        assert_eq!(samples.percentile(99), Duration::from_millis(198));
        assert_eq!(Samples::default().percentile(50), Duration::ZERO);
    }
}
