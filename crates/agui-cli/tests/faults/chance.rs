//! Random choices that can be made again.

use std::time::{SystemTime, UNIX_EPOCH};

/// A generator of numbers that are random enough to choose when something goes wrong.
pub(crate) struct Chance(u64);

impl Chance {
    /// Begins where `AGUI_SEED` says, else anywhere, and says where.
    pub(crate) fn new(test: &str) -> Self {
        let seed = std::env::var("AGUI_SEED").ok().map(|seed| seed.parse().expect("AGUI_SEED"));
        let seed: u64 = seed.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            u64::try_from(now.as_micros() % 1_000_000_007).unwrap()
        });
        eprintln!("{test}: AGUI_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
