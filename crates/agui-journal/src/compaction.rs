//! A finished run in fewer events.

use agui_stream::{Compactor, Conversation};
use agui_types::{Event, FromJson, RunId};

use crate::entry::{Encoded, Entry};

/// The events of a run that has ended, in fewer events that fold to the same on top of `before`;
/// `None` where there is nothing to gain, or the run cannot be read.
#[must_use]
pub fn compact_run(before: Conversation, entries: &[Entry]) -> Option<Vec<Encoded>> {
    let mut compactor = Compactor::after(before);
    for entry in entries {
        compactor.push(Event::from_json_tolerant(entry.text()).ok()?.value);
    }
    let events = compactor.finish();
    (events.len() < entries.len()).then(|| events.iter().map(Encoded::from).collect())
}

/// Numbers the events of a compacted run: the first as `first`, the last as `last`, and those in
/// between behind the first. There are no more of them than there were before.
#[must_use]
pub fn place(events: Vec<Encoded>, run: &RunId, first: u64, last: u64) -> Vec<Entry> {
    let most = events.len().saturating_sub(1);
    let places = (first..).zip(events).enumerate();
    let entries = places.map(|(at, (position, Encoded { kind, json }))| {
        let position = if at == most { last } else { position };
        Entry::new(position, kind, run.clone(), json)
    });
    entries.collect()
}
