//! Reading a stream as a client would.

use agui_types::event::Event;
use agui_types::json::Value;
use agui_types::{Message, ToJson};

use crate::fold::Applied;
use crate::{ChunkExpander, Conversation, Fault, Verifier};

/// Expands and verifies a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    verifier: Verifier,
    expander: ChunkExpander,
    /// There was a chunk, so that from now on everything may end one.
    chunks: bool,
    expanded: Vec<Event>,
}

impl Replay {
    /// Takes the next event, and hands on what it stands for.
    pub(super) fn push(
        &mut self,
        event: &Event,
        mut deliver: impl FnMut(&Event),
    ) -> Result<(), Fault> {
        self.chunks = self.chunks || is_chunk(event);
        if !self.chunks {
            self.verifier.push(event)?;
            deliver(event);
            return Ok(());
        }
        self.expander.push(event.clone(), &mut self.expanded)?;
        for event in self.expanded.drain(..) {
            self.verifier.push(&event)?;
            deliver(&event);
        }
        Ok(())
    }
}

/// What a stream comes to.
#[derive(Debug, PartialEq)]
pub(super) struct Outcome {
    messages: Vec<Message>,
    state: Value,
    /// The ends of what is open, sorted; none where there were chunks, since an item of theirs may
    /// be open or not.
    open: Vec<String>,
}

/// Folds a stream.
///
/// Fails where it breaks a rule.
pub(super) fn fold(mut conversation: Conversation, events: &[Event]) -> Result<Outcome, Fault> {
    let mut applied = Applied::default();
    let mut replay = Replay::default();
    for event in events {
        replay.push(event, |event| conversation.apply(event, &mut applied))?;
    }
    let mut open = Vec::new();
    if !replay.chunks {
        let ends = replay.verifier.closing_events();
        open.extend(ends.iter().map(ToJson::to_json));
        open.sort_unstable();
    }
    Ok(Outcome {
        messages: conversation.messages().to_vec(),
        state: conversation.state().clone(),
        open,
    })
}

pub(super) fn is_chunk(event: &Event) -> bool {
    matches!(
        event,
        Event::TextMessageChunk(_) | Event::ToolCallChunk(_) | Event::ReasoningMessageChunk(_)
    )
}
