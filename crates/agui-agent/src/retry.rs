//! Trying again: how often, and how long after.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// How often something that failed is tried again, and how long after.
///
/// Between two attempts passes a delay that doubles each time, from [`first_delay`](Self::first_delay)
/// up to [`longest_delay`](Self::longest_delay), of which a random part of up to a half is taken
/// away, so that clients that failed together do not return together. What the other side asks to
/// have waited is waited where it is longer; where it is longer than the longest delay, nothing more
/// is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    retries: u32,
    first: Duration,
    longest: Duration,
}

impl RetryPolicy {
    /// At most this many attempts after the first, with delays from 250 ms to 10 s.
    #[must_use]
    pub fn new(retries: u32) -> Self {
        Self { retries, first: Duration::from_millis(250), longest: Duration::from_secs(10) }
    }

    /// The delay before the first attempt after a failure. Default: 250 ms.
    #[must_use]
    pub fn first_delay(mut self, delay: Duration) -> Self {
        self.first = delay;
        self
    }

    /// What no delay is longer than. Default: 10 s.
    #[must_use]
    pub fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest = delay;
        self
    }

    /// How long to wait after a number of failures, the first being 1; `None` where nothing more is
    /// to be tried. `asked` is what the other side wants waited.
    pub(crate) fn delay(&self, failures: u32, asked: Option<Duration>) -> Option<Duration> {
        let asked = asked.unwrap_or_default();
        if failures > self.retries || asked > self.longest {
            return None;
        }
        let doubled = 1u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
        let full = self.first.saturating_mul(doubled).min(self.longest);
        Some(full.mul_f64(1.0 - random() / 2.0).max(asked))
    }
}

/// Three retries, as [`RetryPolicy::new`] makes them.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new(3)
    }
}

/// Whether a status says that the request was not taken up.
pub(crate) fn is_refused_for_now(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 503)
}

/// A number from 0 up to 1. The standard library's hashers are seeded at random.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_less_a_random_part() {
        let policy = RetryPolicy::new(40).first_delay(Duration::from_secs(1));
        for (failures, full) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (33, 10), (40, 10)] {
            let full = Duration::from_secs(full);
            for _ in 0..50 {
                let delay = policy.delay(failures, None).unwrap();
                assert!(full / 2 <= delay && delay <= full, "{failures}: {delay:?}");
            }
        }
        let different = (0..20).filter_map(|_| policy.delay(5, None));
        assert!(different.collect::<std::collections::HashSet<_>>().len() > 1);
        assert_eq!(policy.delay(41, None), None);
        assert_eq!(RetryPolicy::new(0).delay(1, None), None);
    }

    #[test]
    fn what_the_other_side_asks_for_is_waited_unless_it_is_too_long() {
        let policy = RetryPolicy::new(1).longest_delay(Duration::from_secs(30));
        let asked = |seconds| policy.delay(1, Some(Duration::from_secs(seconds)));
        assert_eq!(asked(30), Some(Duration::from_secs(30)));
        assert_eq!(asked(31), None);
        assert!(asked(0).unwrap() <= Duration::from_millis(250));
    }
}
