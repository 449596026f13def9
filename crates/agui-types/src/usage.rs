//! Token usage and its accounting.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::number::Count;

object! {
    /// Token counts of one provider and model (P-85 to P-88).
    ///
    /// `input_tokens` and `output_tokens` are totals. `cached_input_tokens` and
    /// `cache_write_input_tokens` are disjoint parts of the first, `reasoning_tokens` is a part of
    /// the second; parts are never added to totals. An absent count was not reported, which is not
    /// zero (C-90).
    TokenUsage {
        required {}
        optional {
            /// Who served the request.
            provider "provider": String,
            /// Which model served it.
            model "model": String,
            /// Every prompt token charged: cached, written to a cache, text or not.
            input_tokens "inputTokens": Count,
            /// Every generated token, reasoning included.
            output_tokens "outputTokens": Count,
            /// Input plus output.
            total_tokens "totalTokens": Count,
            /// The part of the output spent on reasoning.
            reasoning_tokens "reasoningTokens": Count,
            /// The part of the input read from a cache.
            cached_input_tokens "cachedInputTokens": Count,
            /// The part of the input written to a cache.
            cache_write_input_tokens "cacheWriteInputTokens": Count,
        }
    }
}

impl TokenUsage {
    /// Input plus output where both are reported, else the reported total (P-86).
    #[must_use]
    pub fn total(&self) -> Option<Count> {
        match (self.input_tokens, self.output_tokens) {
            (Some(input), Some(output)) => Some(input.saturating_add(output)),
            _ => self.total_tokens,
        }
    }

    /// Adds another entry's counts; provider and model stay. A count that neither reports stays
    /// absent; one that only one reports is taken as it is (P-87, C-90).
    pub fn add(&mut self, other: &Self) {
        // Before the parts change: an entry with only a total must not lose it.
        let total = sum(self.total(), other.total());
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        self.total_tokens = match (self.total_tokens, other.total_tokens) {
            (None, None) => None,
            _ => total,
        };
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
        self.cached_input_tokens = sum(self.cached_input_tokens, other.cached_input_tokens);
        self.cache_write_input_tokens =
            sum(self.cache_write_input_tokens, other.cache_write_input_tokens);
    }

    /// The counts over all entries, without provider and model.
    #[must_use]
    pub fn sum<'a>(entries: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::new();
        for entry in entries {
            all.add(entry);
        }
        all
    }

    /// One entry per provider and model, in the order first met, as `RUN_FINISHED.usage` wants it.
    #[must_use]
    pub fn by_model<'a>(entries: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        let mut places: HashMap<_, usize> = HashMap::new();
        for entry in entries {
            match places.entry((&entry.provider, &entry.model)) {
                Entry::Occupied(place) => merged[*place.get()].add(entry),
                Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push(entry.clone());
                }
            }
        }
        merged
    }
}

fn sum(a: Option<Count>, b: Option<Count>) -> Option<Count> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(model: &str, input: u32, output: u32) -> TokenUsage {
        TokenUsage::new().model(model).input_tokens(input).output_tokens(output)
    }

    #[test]
    fn an_absent_count_is_not_zero() {
        // P-87, C-90
        let all = TokenUsage::sum(&[usage("a", 1, 2), TokenUsage::new().reasoning_tokens(1)]);
        assert_eq!(all.input_tokens, Some(Count::from(1)));
        assert_eq!(all.reasoning_tokens, Some(Count::from(1)));
        assert_eq!(all.cached_input_tokens, None);
        assert_eq!(all.total_tokens, None);
        assert_eq!(all.total(), Some(Count::from(3)));
        assert_eq!(TokenUsage::sum([]).total(), None);
    }

    #[test]
    fn entries_merge_by_provider_and_model() {
        let entries = [usage("a", 1, 2), usage("b", 10, 20), usage("a", 3, 4)];
        let merged = TokenUsage::by_model(&entries);
        assert_eq!(merged, [usage("a", 4, 6), usage("b", 10, 20)]);
        let other = usage("a", 1, 1).provider("p");
        assert_eq!(TokenUsage::by_model(&[usage("a", 1, 2), other]).len(), 2);
    }

    #[test]
    fn a_hostile_list_costs_by_its_length() {
        // Compared each with each, these would take minutes.
        let entries: Vec<_> = (0..200_000).map(|n| usage(&n.to_string(), 1, 1)).collect();
        assert_eq!(TokenUsage::by_model(&entries).len(), entries.len());
    }

    #[test]
    fn a_total_is_the_sum_of_input_and_output() {
        // P-86: a provider's total that counts differently is not copied.
        let mut held = usage("a", 1, 2).total_tokens(99u32);
        assert_eq!(held.total(), Some(Count::from(3)));
        held.add(&TokenUsage::new().total_tokens(5u32));
        assert_eq!(held.total_tokens, Some(Count::from(8)));
    }

    #[test]
    fn sums_stay_within_the_safe_range() {
        let most = TokenUsage::new().input_tokens(Count::MAX);
        assert_eq!(TokenUsage::sum([&most, &most]).input_tokens, Some(Count::MAX));
    }
}
