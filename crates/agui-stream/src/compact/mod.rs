//! Compaction: a finished run in the fewest events that fold to the same conversation.

mod gather;
mod item;
mod merge;
mod replay;
mod state;

use agui_types::Event;
use agui_types::json::Value;

use crate::Conversation;
use gather::gather;
use merge::Merger;
use replay::Replay;

/// Compacts a stream of one or more runs that holds a thread from its beginning: [`Compactor`] says
/// how.
///
/// ```
/// use agui_stream::compact;
/// use agui_types::Event;
/// use agui_types::event::{TextMessageContent, TextMessageEnd, TextMessageStart};
///
/// let deltas = ["Hel", "lo, ", "Ada"].map(|delta| TextMessageContent::new("m1", delta).into());
/// let mut events: Vec<Event> = vec![TextMessageStart::new("m1").into()];
/// events.extend(deltas);
/// events.push(TextMessageEnd::new("m1").into());
///
/// let events = compact(events);
/// assert_eq!(events.len(), 3);
/// assert_eq!(events[1], TextMessageContent::new("m1", "Hello, Ada").into());
/// ```
#[must_use]
pub fn compact(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut compactor = Compactor::new();
    events.into_iter().for_each(|event| compactor.push(event));
    compactor.finish()
}

/// Compacts a stream event by event. Time and memory are linear in the stream; what is held is what
/// comes out.
///
/// - The deltas of a text message, or of a tool call's arguments, become one, between its start and
///   its end. Their metadata is merged (C-76). What belongs to a single delta is not kept: its
///   timestamp, its raw event, and its attribution, which may be left out (C-77).
/// - The state events of a run become one snapshot at the run's end, their metadata merged. Where a
///   run only patches its state, the patches stay as they are, at its end.
/// - What comes between the start and the end of such an item moves behind it, so that the three
///   stand together, if the stream as a whole then still keeps every rule and folds to the same
///   messages and state. If it would not, nothing moves.
/// - What is open at the end of a run or of the stream stays open, and comes before the event that
///   ends the run (C-9).
///
/// Everything else comes out as it came in. That goes for reasoning, unless it is to be
/// [merged](Self::merge_reasoning) too, and for chunks: [expand](crate::ChunkExpander) them first.
///
/// A stream that keeps the rules of order keeps them afterwards. One that breaks them loses nothing
/// either, but may fold to something else, and so may one that gives two messages the same id (P-28).
/// To compact twice changes nothing.
#[derive(Clone, Debug)]
pub struct Compactor {
    before: Conversation,
    replay: Replay,
    /// The stream has broken a rule.
    broken: bool,
    merger: Merger,
    merged: Vec<Event>,
}

impl Compactor {
    /// A compactor for a stream that holds a thread from its beginning.
    #[must_use]
    pub fn new() -> Self {
        Self::after(Conversation::new(Vec::new(), Value::Object(Default::default())))
    }

    /// A compactor for a stream that continues this conversation. It matters where an item is
    /// interrupted: what may move depends on what is there already.
    #[must_use]
    pub fn after(before: Conversation) -> Self {
        Self {
            before,
            replay: Replay::default(),
            broken: false,
            merger: Merger::default(),
            merged: Vec::new(),
        }
    }

    /// Also makes one of the deltas of a reasoning message. The reference leaves them as they are, and
    /// so does [`compact`]. Where something between two of them has moved away, compacting a second
    /// time may find more to merge.
    #[must_use]
    pub fn merge_reasoning(mut self) -> Self {
        self.merger.merge_reasoning();
        self
    }

    /// Takes the next event.
    pub fn push(&mut self, event: Event) {
        self.broken = self.broken || self.replay.push(&event, |_| ()).is_err();
        self.merger.push(event, &mut self.merged);
    }

    /// The compacted stream.
    #[must_use]
    pub fn finish(mut self) -> Vec<Event> {
        self.merger.finish(&mut self.merged);
        let gathered = gather(&self.merged);
        if self.broken || self.merged == gathered {
            return gathered;
        }
        // What may move past what is a matter of the whole stream: a snapshot of messages further
        // on can undo a difference, or bring one to light. So both are folded.
        let fold = |events| replay::fold(self.before.clone(), events);
        match (fold(&self.merged), fold(&gathered)) {
            (Ok(in_place), Ok(moved)) if in_place == moved => gathered,
            _ => self.merged,
        }
    }
}

impl Default for Compactor {
    fn default() -> Self {
        Self::new()
    }
}
