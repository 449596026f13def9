//! Ids that repeat over a stream are allocated once.

use std::sync::Arc;

use super::{ReadError, Reader, Reading};
use crate::Event;

/// Reads one event after another and remembers the ids it met last, so that a message id repeated
/// over a thousand deltas is allocated once. For the rest it is [`FromJson`](crate::FromJson) for
/// [`Event`].
#[derive(Debug, Default)]
pub struct EventReader {
    ids: RecentIds,
}

impl EventReader {
    /// A reader that has met no id yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one event tolerantly.
    pub fn tolerant(&mut self, text: &str) -> Result<Reading<Event>, ReadError> {
        Reader::tolerant(text, Some(&mut self.ids))
    }

    /// Reads one event exactly.
    pub fn exact(&mut self, text: &str) -> Result<Event, ReadError> {
        Reader::exact(text, Some(&mut self.ids))
    }

    /// The id as an allocation that is shared with the ids met last, for a reader of events that
    /// are not JSON.
    pub fn intern(&mut self, id: &str) -> Arc<str> {
        self.ids.intern(id)
    }
}

/// The ids met last, most of them a few times over.
#[derive(Debug, Default)]
pub(crate) struct RecentIds {
    slots: [Option<Arc<str>>; 8],
    next: usize,
}

impl RecentIds {
    /// A longer id is not remembered: eight of them must not hold a noticeable amount of memory.
    const LONGEST: usize = 256;

    pub(crate) fn intern(&mut self, id: &str) -> Arc<str> {
        if let Some(known) = self.slots.iter().flatten().find(|known| &***known == id) {
            return Arc::clone(known);
        }
        let fresh: Arc<str> = Arc::from(id);
        if id.len() <= Self::LONGEST {
            self.slots[self.next] = Some(Arc::clone(&fresh));
            self.next = (self.next + 1) % self.slots.len();
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_id_is_one_allocation() {
        let mut ids = RecentIds::default();
        let first = ids.intern("m1");
        for other in 0..7 {
            ids.intern(&other.to_string());
            assert!(Arc::ptr_eq(&first, &ids.intern("m1")));
        }
        let long = "x".repeat(RecentIds::LONGEST + 1);
        assert!(!Arc::ptr_eq(&ids.intern(&long), &ids.intern(&long)));
    }
}
