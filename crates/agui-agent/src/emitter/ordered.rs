//! What is kept by key in the order added.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, in the order added. Adding and removing one costs the same however many there
/// are, but for a factor that grows with their number's logarithm.
pub(super) struct Ordered<K, V> {
    values: BTreeMap<u64, V>,
    places: HashMap<K, u64>,
    next: u64,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), places: HashMap::new(), next: 0 }
    }
}

impl<K: Eq + Hash, V> Ordered<K, V> {
    pub(super) fn contains(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    /// Adds a value at the end; one with the same key makes way for it.
    pub(super) fn push(&mut self, key: K, value: V) {
        self.remove(&key);
        self.places.insert(key, self.next);
        self.values.insert(self.next, value);
        self.next += 1;
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some(place) = self.places.remove(key) {
            self.values.remove(&place);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.places.retain(|key, place| {
            let kept = keep(key);
            if !kept {
                self.values.remove(place);
            }
            kept
        });
    }

    /// Takes everything out.
    pub(super) fn take(&mut self) -> Vec<V> {
        std::mem::take(self).values.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_order_in_which_they_were_added() {
        let mut held = Ordered::default();
        for (key, value) in [("a", 1), ("b", 2), ("c", 3), ("a", 4), ("d", 5)] {
            held.push(key, value);
        }
        held.remove(&"c");
        held.remove(&"c");
        assert!(held.contains(&"a") && !held.contains(&"c"));
        held.retain(|key| *key != "d");
        assert_eq!(held.take(), [2, 4]);
        assert!(held.take().is_empty());
    }
}
