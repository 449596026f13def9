//! What opens and closes things in a run.

use agui_stream::OpenItem;
use agui_types::{Event, SubagentRunId};

/// Something that is open, by its kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Opened {
    Text(Box<str>),
    Call(Box<str>),
    Reasoning(Box<str>),
    Span(Box<str>),
    Step(Option<SubagentRunId>, Box<str>),
    Subagent(Box<str>),
}

/// Which end of it an event is.
pub(crate) enum Edge {
    Opens,
    Closes,
}

impl Opened {
    /// What an event opens or closes; nothing, where it does neither.
    pub(crate) fn of(event: &Event) -> Option<(Edge, Self)> {
        use Edge::{Closes, Opens};
        Some(match event {
            Event::TextMessageStart(event) => (Opens, Self::Text(event.message_id.as_str().into())),
            Event::TextMessageEnd(event) => (Closes, Self::Text(event.message_id.as_str().into())),
            Event::ToolCallStart(event) => (Opens, Self::Call(event.tool_call_id.as_str().into())),
            Event::ToolCallEnd(event) => (Closes, Self::Call(event.tool_call_id.as_str().into())),
            Event::ReasoningMessageStart(event) => {
                (Opens, Self::Reasoning(event.message_id.as_str().into()))
            }
            Event::ReasoningMessageEnd(event) => {
                (Closes, Self::Reasoning(event.message_id.as_str().into()))
            }
            Event::ReasoningStart(event) => (Opens, Self::Span(event.message_id.as_str().into())),
            Event::ReasoningEnd(event) => (Closes, Self::Span(event.message_id.as_str().into())),
            Event::StepStarted(event) => {
                (Opens, Self::Step(event.subagent_run_id.clone(), event.step_name.as_str().into()))
            }
            Event::StepFinished(event) => {
                (Closes, Self::Step(event.subagent_run_id.clone(), event.step_name.as_str().into()))
            }
            Event::SubagentStarted(event) => {
                (Opens, Self::Subagent(event.subagent_run_id.as_str().into()))
            }
            Event::SubagentFinished(event) => {
                (Closes, Self::Subagent(event.subagent_run_id.as_str().into()))
            }
            Event::SubagentError(event) => {
                (Closes, Self::Subagent(event.subagent_run_id.as_str().into()))
            }
            _ => return None,
        })
    }

    /// What the verifier has open.
    pub(crate) fn item(item: &OpenItem) -> Self {
        match item {
            OpenItem::Text { message_id, .. } => Self::Text(message_id.as_str().into()),
            OpenItem::ToolCall { tool_call_id, .. } => Self::Call(tool_call_id.as_str().into()),
            OpenItem::ReasoningMessage { message_id, .. } => {
                Self::Reasoning(message_id.as_str().into())
            }
            OpenItem::ReasoningSpan { message_id, .. } => Self::Span(message_id.as_str().into()),
            OpenItem::Step { name, owner } => Self::Step(owner.clone(), name.as_str().into()),
            OpenItem::Subagent { subagent_run_id, .. } => {
                Self::Subagent(subagent_run_id.as_str().into())
            }
        }
    }
}
