//! How much one tenant, or one thread, may have of something at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts what each key has, and refuses more than its share.
#[derive(Debug)]
pub(crate) struct Quota<K>(Arc<Mutex<HashMap<K, usize>>>);

/// One piece of a share, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share<K: Eq + Hash> {
    of: Quota<K>,
    key: K,
}

impl<K: Eq + Hash + Clone> Quota<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// One more for this key; `None` where it has `most` already.
    pub(crate) fn take(&self, key: &K, most: usize) -> Option<Share<K>> {
        let mut counts = self.counts();
        let count = counts.get(key).copied().unwrap_or_default();
        if count >= most {
            return None;
        }
        counts.insert(key.clone(), count + 1);
        drop(counts);
        Some(Share { of: Self(Arc::clone(&self.0)), key: key.clone() })
    }
}

impl<K> Quota<K> {
    fn counts(&self) -> MutexGuard<'_, HashMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut counts = self.of.counts();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_share_and_gives_it_back() {
        let quota = Quota::new();
        let first = quota.take(&"a", 2).unwrap();
        let _second = quota.take(&"a", 2).unwrap();
        assert!(quota.take(&"a", 2).is_none());
        let other = quota.take(&"b", 1).unwrap();
        drop(first);
        assert!(quota.take(&"a", 2).is_some());
        drop(other);
        assert!(!quota.counts().contains_key("b"), "nothing is kept of who has nothing");
        assert!(quota.take(&"c", 0).is_none());
    }
}
