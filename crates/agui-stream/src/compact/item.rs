//! Items: what is opened, written to by deltas, and closed.

use agui_types::event::{Event, ReasoningMessageContent, TextMessageContent, ToolCallArgs};
use agui_types::{MessageId, Metadata, ToolCallId};

/// What an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Text(MessageId),
    Call(ToolCallId),
    Reasoning(MessageId),
}

/// Which part of its item an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Start,
    Delta,
    End,
}

impl Item {
    /// The item of an event, where it has one.
    pub(super) fn of(event: &Event) -> Option<(Self, Part)> {
        let text = |id: &MessageId| Self::Text(id.clone());
        let call = |id: &ToolCallId| Self::Call(id.clone());
        let reasoning = |id: &MessageId| Self::Reasoning(id.clone());
        Some(match event {
            Event::TextMessageStart(event) => (text(&event.message_id), Part::Start),
            Event::TextMessageContent(event) => (text(&event.message_id), Part::Delta),
            Event::TextMessageEnd(event) => (text(&event.message_id), Part::End),
            Event::ToolCallStart(event) => (call(&event.tool_call_id), Part::Start),
            Event::ToolCallArgs(event) => (call(&event.tool_call_id), Part::Delta),
            Event::ToolCallEnd(event) => (call(&event.tool_call_id), Part::End),
            Event::ReasoningMessageStart(event) => (reasoning(&event.message_id), Part::Start),
            Event::ReasoningMessageContent(event) => (reasoning(&event.message_id), Part::Delta),
            Event::ReasoningMessageEnd(event) => (reasoning(&event.message_id), Part::End),
            _ => return None,
        })
    }

    /// The other item that could write to the same message.
    pub(super) fn rival(&self) -> Option<Self> {
        match self {
            Self::Text(id) => Some(Self::Reasoning(id.clone())),
            Self::Reasoning(id) => Some(Self::Text(id.clone())),
            Self::Call(_) => None,
        }
    }
}

/// Deltas of one item, which come to one.
#[derive(Clone, Debug)]
pub(super) struct Deltas {
    pub(super) item: Item,
    text: String,
    metadata: Vec<Metadata>,
}

impl Deltas {
    pub(super) fn new(item: Item) -> Self {
        Self { item, text: String::new(), metadata: Vec::new() }
    }

    /// Takes one more.
    pub(super) fn push(&mut self, event: Event) {
        let (text, base) = match event {
            Event::TextMessageContent(event) => (event.delta, event.base),
            Event::ToolCallArgs(event) => (event.delta, event.base),
            Event::ReasoningMessageContent(event) => (event.delta, event.base),
            _ => return,
        };
        if self.text.is_empty() {
            self.text = text;
        } else {
            self.text.push_str(&text);
        }
        self.metadata.extend(base.metadata().cloned());
    }

    pub(super) fn into_event(self) -> Event {
        let text = self.text;
        let mut event = match self.item {
            Item::Text(id) => TextMessageContent::new(id, text).into(),
            Item::Call(id) => ToolCallArgs::new(id, text).into(),
            Item::Reasoning(id) => ReasoningMessageContent::new(id, text).into(),
        };
        if let Some(base) = Event::base_mut(&mut event) {
            base.set_metadata(merged(self.metadata));
        }
        event
    }
}

/// One of many, in order, per key, the last write winning (C-76). Two by two, so that no part is
/// copied more often than there are rounds.
pub(super) fn merged(mut all: Vec<Metadata>) -> Option<Metadata> {
    while all.len() > 1 {
        let mut pairs = all.into_iter();
        let mut next = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(mut one) = pairs.next() {
            pairs.next().iter().for_each(|newer| one.merge(newer));
            next.push(one);
        }
        all = next;
    }
    all.pop()
}
