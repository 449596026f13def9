//! An event on its way through the stages.

use agui_types::Event;
use agui_types::read::{Finding, Reading};

/// An event as it passes from the [`Boundary`](crate::Boundary) to the [`Checks`](crate::Checks):
/// with its number, and what its reader did not recognise and no translation took care of.
///
/// Middleware sits between the two (C-32): it may change the event, leave it out, or add one of its
/// own with `Frame::from(event)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The event.
    pub event: Event,
    pub(crate) findings: Vec<Finding>,
    /// How many findings the reader only counted.
    pub(crate) omitted: usize,
    pub(crate) index: Option<u64>,
}

impl Frame {
    pub(crate) fn new(reading: Reading<Event>, index: Option<u64>) -> Self {
        let omitted = reading.findings.omitted();
        let findings = if reading.findings.is_empty() {
            Vec::new()
        } else {
            reading.findings.into_iter().collect()
        };
        Self { event: reading.value, findings, omitted, index }
    }

    /// Which event of the stream it is, counted from 0 as they arrived; `None` for one that did not
    /// come from the stream.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        self.index
    }

    /// What is not recognised about the event: enforcement strips it with a warning, or refuses the
    /// event.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(crate) fn remove_findings(&mut self, mut remove: impl FnMut(&Self, &Finding) -> bool) {
        if self.findings.is_empty() {
            return;
        }
        let findings = std::mem::take(&mut self.findings);
        let kept = findings.into_iter().filter(|finding| !remove(self, finding)).collect();
        self.findings = kept;
    }
}

/// An event made in this process: nothing about it is unknown to a reader.
impl From<Event> for Frame {
    fn from(event: Event) -> Self {
        Self { event, findings: Vec::new(), omitted: 0, index: None }
    }
}
