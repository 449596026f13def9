//! The state events of one run as one.

use agui_types::event::{Event, StateDelta, StateSnapshot};
use agui_types::json::Value;
use agui_types::{Json, Metadata};

use super::item::merged;
use crate::patch::{Document, PatchLimits};

/// The state events since the run began.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    snapshot: Option<Json>,
    /// Since the snapshot; all of them where there is none.
    deltas: Vec<StateDelta>,
    /// Of all of them, where there is a snapshot.
    metadata: Vec<Metadata>,
}

impl State {
    /// Takes an event; gives it back where it is none of the state's.
    pub(super) fn take(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::StateSnapshot(event) => {
                let before = self.deltas.drain(..);
                let before = before.filter_map(|delta| delta.base.metadata().cloned());
                self.metadata.extend(before);
                self.metadata.extend(event.base.metadata().cloned());
                self.snapshot = Some(event.snapshot);
            }
            Event::StateDelta(event) => self.deltas.push(event),
            other => return Some(other),
        }
        None
    }

    /// Writes out what they come to.
    pub(super) fn write(&mut self, out: &mut Vec<Event>) {
        let Self { snapshot, deltas, mut metadata } = std::mem::take(self);
        let Some(snapshot) = snapshot else {
            out.extend(deltas.into_iter().map(Event::from));
            return;
        };
        metadata.extend(deltas.iter().filter_map(|delta| delta.base.metadata().cloned()));
        let mut event = StateSnapshot::new(patched(snapshot, &deltas));
        event.base.set_metadata(merged(metadata));
        out.push(event.into());
    }
}

/// The state behind these deltas. One that does not apply changes nothing (C-67).
fn patched(snapshot: Json, deltas: &[StateDelta]) -> Json {
    if deltas.is_empty() {
        return snapshot;
    }
    let Ok(value) = Value::try_from(&snapshot) else {
        return snapshot;
    };
    let mut document = Document::new(value);
    for event in deltas {
        // What the fold does too: a failed patch is passed over.
        let _ = document.apply(&event.delta, &PatchLimits::default());
    }
    document.value().to_json()
}
