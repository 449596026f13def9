//! What an observer sees of the conversation.

use std::borrow::Cow;

use agui_types::event::{EncryptedValueSubtype, Event};
use agui_types::{Message, ToolCall};

use crate::{Conversation, PartialJson};

/// The conversation as it is before an event, and what the event is about.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    conversation: &'a Conversation,
    subject: Subject<'a>,
    arguments: Option<&'a PartialJson>,
}

/// What an event is about, by its id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    None,
    Message(&'a str),
    Call(&'a str),
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        conversation: &'a Conversation,
        subject: Subject<'a>,
        arguments: Option<&'a PartialJson>,
    ) -> Self {
        Self { conversation, subject, arguments }
    }

    /// The conversation, with what earlier observers have changed, without the event.
    #[must_use]
    pub fn conversation(&self) -> &'a Conversation {
        self.conversation
    }

    /// The message that the event opens, continues, ends, replaces or patches, or that holds the
    /// tool call it is about, as it is before; `None` where there is none yet.
    #[must_use]
    pub fn message(&self) -> Option<&'a Message> {
        let messages = self.conversation.messages();
        match self.subject {
            Subject::None => None,
            Subject::Message(id) => messages.find(id),
            Subject::Call(id) => messages.find(messages.find_call(id)?.0.id.as_str()),
        }
    }

    /// The text of that message; of a list of parts the text parts (C-56). `None` for an activity,
    /// which has none.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'a, str>> {
        Some(match self.message()? {
            Message::Developer(message) => message.content.as_str().into(),
            Message::System(message) => message.content.as_str().into(),
            Message::Assistant(message) => message.content.as_deref().unwrap_or_default().into(),
            Message::User(message) => message.content.text(),
            Message::Tool(message) => message.content.text(),
            Message::Reasoning(message) => message.content.as_str().into(),
            _ => return None,
        })
    }

    /// The tool call the event is about, as it is before; `None` where there is none yet.
    #[must_use]
    pub fn tool_call(&self) -> Option<&'a ToolCall> {
        match self.subject {
            Subject::Call(id) => Some(self.conversation.messages().find_call(id)?.1),
            _ => None,
        }
    }

    /// The arguments of that call so far, as a value: with `TOOL_CALL_ARGS` without its delta, with
    /// `TOOL_CALL_END` all of them. `None` with other events.
    #[must_use]
    pub fn arguments(&self) -> Option<&'a PartialJson> {
        self.arguments
    }
}

impl<'a> Subject<'a> {
    pub(super) fn of(event: &'a Event) -> Self {
        match event {
            Event::TextMessageStart(event) => Self::Message(event.message_id.as_str()),
            Event::TextMessageContent(event) => Self::Message(event.message_id.as_str()),
            Event::TextMessageEnd(event) => Self::Message(event.message_id.as_str()),
            Event::ReasoningMessageStart(event) => Self::Message(event.message_id.as_str()),
            Event::ReasoningMessageContent(event) => Self::Message(event.message_id.as_str()),
            Event::ReasoningMessageEnd(event) => Self::Message(event.message_id.as_str()),
            Event::ActivitySnapshot(event) => Self::Message(event.message_id.as_str()),
            Event::ActivityDelta(event) => Self::Message(event.message_id.as_str()),
            Event::ToolCallStart(event) => Self::Call(event.tool_call_id.as_str()),
            Event::ToolCallArgs(event) => Self::Call(event.tool_call_id.as_str()),
            Event::ToolCallEnd(event) => Self::Call(event.tool_call_id.as_str()),
            Event::ToolCallResult(event) => Self::Call(event.tool_call_id.as_str()),
            Event::ReasoningEncryptedValue(event) => match event.subtype {
                EncryptedValueSubtype::Message => Self::Message(event.entity_id.as_str()),
                EncryptedValueSubtype::ToolCall => Self::Call(event.entity_id.as_str()),
                _ => Self::None,
            },
            _ => Self::None,
        }
    }
}
