//! Spelling chunks out.

use agui_stream::ChunkExpander;
use agui_types::{Event, Reading, RunAgentInput};

use super::events::{Stage, through};
use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// Spells chunks out as the starts, contents and ends that they stand for (C-43 to C-48), for the
/// middleware around it.
///
/// A stream whose chunks cannot be expanded breaks off with [`AgentError::Rule`] (C-35).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpandChunks;

impl Middleware for ExpandChunks {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        through(next.run(input, context), Expand::default())
    }
}

#[derive(Default)]
struct Expand {
    expander: ChunkExpander,
    expanded: Vec<Event>,
}

impl Stage for Expand {
    fn push(
        &mut self,
        event: Reading<Event>,
        out: &mut Vec<Reading<Event>>,
    ) -> Result<(), AgentError> {
        let Reading { value, findings } = event;
        let first = out.len();
        self.expander.push(value, &mut self.expanded)?;
        out.extend(self.expanded.drain(..).map(Reading::from));
        // What was not recognised is still to be judged, and belongs to what is said last: before
        // that come the ends of other items.
        if let Some(last) = out[first..].last_mut() {
            last.findings = findings;
        }
        Ok(())
    }
}
