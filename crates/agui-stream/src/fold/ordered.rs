//! What is held by a key, in the order it came.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by their keys, in the order the keys came. Adding and removing one costs the same however
/// many there are, but for a factor that grows with their number's logarithm.
#[derive(Clone, Debug)]
pub(super) struct Ordered<K, V> {
    held: BTreeMap<u64, (K, V)>,
    places: HashMap<K, u64>,
    next: u64,
}

impl<K, V> Default for Ordered<K, V> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), places: HashMap::new(), next: 0 }
    }
}

impl<K: Clone + Eq + Hash, V> Ordered<K, V> {
    /// Puts a value in the place of the one with its key, or at the end.
    pub(super) fn set(&mut self, key: &K, value: V) {
        let place = *self.places.entry(key.clone()).or_insert(self.next);
        if place == self.next {
            self.next += 1;
        }
        self.held.insert(place, (key.clone(), value));
    }

    pub(super) fn remove(&mut self, key: &K) -> bool {
        let place = self.places.remove(key);
        place.is_some_and(|place| self.held.remove(&place).is_some())
    }

    /// The place of the next one that comes.
    pub(super) fn end(&self) -> u64 {
        self.next
    }

    /// Removes those from a place on.
    pub(super) fn truncate(&mut self, place: u64) {
        for (key, _) in self.held.split_off(&place).values() {
            self.places.remove(key);
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.held.retain(|_, (key, _)| keep(key));
        self.places.retain(|key, _| keep(key));
    }

    /// Those from a place on.
    pub(super) fn iter_from(&self, place: u64) -> impl Iterator<Item = (&K, &V)> {
        self.held.range(place..).map(|(_, (key, value))| (key, value))
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.held.values().map(|(key, value)| (key, value))
    }
}
