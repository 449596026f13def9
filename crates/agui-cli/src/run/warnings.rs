//! What was amiss in a run, as far as it is kept.

use agui_stream::Warning;

/// How many warnings of a run are kept, and told.
pub(super) const MOST_KEPT: usize = 1000;

/// How many bytes the texts of the kept warnings have together, at most.
const MOST_BYTES: usize = 1 << 20;

/// The first warnings of a run, and how many more there were.
///
/// An agent may give reason for any number of them. The first [`MOST_KEPT`] are kept, as far as they
/// have [`MOST_BYTES`] together; the others are counted.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    kept: Vec<Warning>,
    bytes: usize,
    omitted: u64,
}

impl Warnings {
    /// Keeps one more, or counts it; whether it was kept.
    pub(super) fn push(&mut self, warning: Warning) -> bool {
        let bytes = self.bytes + warning.message.len() + warning.path.len();
        // Once one is left out, so is all that follows: what is kept are the first.
        let keeps = self.omitted == 0 && self.kept.len() < MOST_KEPT && bytes <= MOST_BYTES;
        if keeps {
            self.kept.push(warning);
            self.bytes = bytes;
        } else {
            self.omitted += 1;
        }
        keeps
    }

    /// Counts others that were not kept.
    pub(super) fn omit(&mut self, count: u64) {
        self.omitted += count;
    }

    /// Those that are kept, in order.
    pub(super) fn kept(&self) -> &[Warning] {
        &self.kept
    }

    /// How many more there were.
    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(message: String) -> Warning {
        Warning { rule: "C-22", event: None, path: String::new(), message }
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let mut warnings = Warnings::default();
        assert!((0..MOST_KEPT).all(|at| warnings.push(warning(at.to_string()))));
        assert!(!warnings.push(warning(String::new())));
        warnings.omit(2);
        assert_eq!((warnings.kept().len(), warnings.omitted()), (MOST_KEPT, 3));
    }

    #[test]
    fn their_texts_are_no_longer_than_they_may_be() {
        let mut warnings = Warnings::default();
        assert!(warnings.push(warning("x".repeat(MOST_BYTES - 1))));
        assert!(warnings.push(warning("x".into())));
        assert!(!warnings.push(warning("x".into())));
        assert!(!warnings.push(warning(String::new())), "what is kept are the first");
        assert_eq!((warnings.kept().len(), warnings.omitted()), (2, 2));
    }
}
