//! The calls that wait for the application to answer them.

use std::collections::{BTreeMap, HashMap};

use agui_types::ToolCallId;

/// Calls without an answer, in the order made. Adding and removing one costs the same however many
/// there are, but for a factor that grows with their number's logarithm.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    calls: BTreeMap<u64, ToolCallId>,
    places: HashMap<ToolCallId, u64>,
    next: u64,
    /// The first place of the run at hand.
    run: u64,
}

impl Pending {
    /// Adds a call at the end, unless it is there.
    pub(super) fn insert(&mut self, call: &ToolCallId) {
        if !self.places.contains_key(call) {
            self.places.insert(call.clone(), self.next);
            self.calls.insert(self.next, call.clone());
            self.next += 1;
        }
    }

    pub(super) fn remove(&mut self, call: &ToolCallId) {
        if let Some(place) = self.places.remove(call) {
            self.calls.remove(&place);
        }
    }

    /// What is there now is from earlier runs.
    pub(super) fn begin_run(&mut self) {
        self.run = self.next;
    }

    /// Removes the calls of the run at hand.
    pub(super) fn forget_run(&mut self) {
        for call in self.calls.split_off(&self.run).values() {
            self.places.remove(call);
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ToolCallId) -> bool) {
        self.calls.retain(|_, call| keep(call));
        self.places.retain(|call, _| keep(call));
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ToolCallId> {
        self.calls.values()
    }
}
