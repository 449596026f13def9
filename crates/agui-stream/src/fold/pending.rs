//! The calls that wait for the application to answer them.

use agui_types::ToolCallId;

use super::ordered::Ordered;

/// Calls without an answer, in the order made.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    calls: Ordered<ToolCallId, ()>,
    /// The first place of the run at hand.
    run: u64,
}

impl Pending {
    /// Adds a call at the end, unless it is there.
    pub(super) fn insert(&mut self, call: &ToolCallId) {
        self.calls.set(call, ());
    }

    pub(super) fn remove(&mut self, call: &ToolCallId) {
        self.calls.remove(call);
    }

    /// What is there now is from earlier runs.
    pub(super) fn begin_run(&mut self) {
        self.run = self.calls.end();
    }

    /// Removes the calls of the run at hand.
    pub(super) fn forget_run(&mut self) {
        self.calls.truncate(self.run);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&ToolCallId) -> bool) {
        self.calls.retain(keep);
    }

    /// The calls of the run at hand.
    pub(super) fn of_run(&self) -> impl Iterator<Item = &ToolCallId> {
        self.calls.iter_from(self.run).map(|(call, ())| call)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &ToolCallId> {
        self.calls.iter().map(|(call, ())| call)
    }
}
