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

    /// [`EventReader::intern`] for bytes whose encoding was not checked yet, which takes no check
    /// where the id was met before. `None` where they are not UTF-8.
    #[inline]
    pub fn intern_bytes(&mut self, id: &[u8]) -> Option<Arc<str>> {
        match self.ids.known(id) {
            Some(known) => Some(known),
            None => std::str::from_utf8(id).ok().map(|id| self.ids.remember(id)),
        }
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
        self.known(id.as_bytes()).unwrap_or_else(|| self.remember(id))
    }

    fn known(&self, id: &[u8]) -> Option<Arc<str>> {
        self.slots.iter().flatten().find(|known| known.as_bytes() == id).map(Arc::clone)
    }

    fn remember(&mut self, id: &str) -> Arc<str> {
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
        let mut reader = EventReader { ids };
        assert!(Arc::ptr_eq(&first, &reader.intern_bytes(b"m1").unwrap()));
        assert_eq!(reader.intern_bytes(b"m\xff"), None);
        let mut ids = reader.ids;
        let long = "x".repeat(RecentIds::LONGEST + 1);
        assert!(!Arc::ptr_eq(&ids.intern(&long), &ids.intern(&long)));
    }
}
