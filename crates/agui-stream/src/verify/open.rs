//! What is open on a stream, and what closes it.

use std::fmt;

use agui_types::event::{
    Event, ReasoningEnd, ReasoningMessageEnd, StepFinished, SubagentError, TextMessageEnd,
    ToolCallEnd,
};
use agui_types::{MessageId, SubagentRunId, ToolCallId};

use crate::report::quoted;

/// Something that was opened on a stream and is not closed yet. `owner` is the subagent invocation
/// it belongs to, `None` for the parent agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenItem {
    /// A text message.
    Text {
        /// Its id.
        message_id: MessageId,
        /// Whose it is.
        owner: Option<SubagentRunId>,
    },
    /// A tool call.
    ToolCall {
        /// Its id.
        tool_call_id: ToolCallId,
        /// Whose it is.
        owner: Option<SubagentRunId>,
    },
    /// A reasoning message.
    ReasoningMessage {
        /// Its id.
        message_id: MessageId,
        /// Whose it is.
        owner: Option<SubagentRunId>,
    },
    /// A span of reasoning.
    ReasoningSpan {
        /// Its id.
        message_id: MessageId,
        /// Whose it is.
        owner: Option<SubagentRunId>,
    },
    /// A step.
    Step {
        /// Its name.
        name: String,
        /// Whose it is.
        owner: Option<SubagentRunId>,
    },
    /// A subagent invocation.
    Subagent {
        /// Its id.
        subagent_run_id: SubagentRunId,
        /// The invocation that spawned it.
        owner: Option<SubagentRunId>,
    },
}

impl OpenItem {
    /// Whose it is; `None` for the parent agent.
    #[must_use]
    pub fn owner(&self) -> Option<&SubagentRunId> {
        match self {
            Self::Text { owner, .. }
            | Self::ToolCall { owner, .. }
            | Self::ReasoningMessage { owner, .. }
            | Self::ReasoningSpan { owner, .. }
            | Self::Step { owner, .. }
            | Self::Subagent { owner, .. } => owner.as_ref(),
        }
    }

    /// The code of the `SUBAGENT_ERROR` for a subagent that never said how it ended.
    pub const SUBAGENT_DROPPED: &str = "SUBAGENT_DROPPED";

    /// The event that closes it, attributed as its opener was. For a subagent that is a
    /// `SUBAGENT_ERROR`: it did not say that it finished, and a success is never invented.
    ///
    /// To close everything, [`Verifier::closing_events`](crate::Verifier::closing_events) has them
    /// in order.
    #[must_use]
    pub fn closing_event(&self) -> Event {
        let mut event: Event = match self {
            Self::Text { message_id, .. } => TextMessageEnd::new(message_id).into(),
            Self::ToolCall { tool_call_id, .. } => ToolCallEnd::new(tool_call_id).into(),
            Self::ReasoningMessage { message_id, .. } => {
                ReasoningMessageEnd::new(message_id).into()
            }
            Self::ReasoningSpan { message_id, .. } => ReasoningEnd::new(message_id).into(),
            Self::Step { name, .. } => StepFinished::new(name.as_str()).into(),
            Self::Subagent { subagent_run_id, .. } => {
                let message = "the subagent stopped before it said how it ended";
                SubagentError::new(subagent_run_id, message).code(Self::SUBAGENT_DROPPED).into()
            }
        };
        if let Some(owner) = self.owner() {
            event.attribute(owner);
        }
        event
    }

    pub(super) fn plural(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text messages",
            Self::ToolCall { .. } => "tool calls",
            Self::ReasoningMessage { .. } => "reasoning messages",
            Self::ReasoningSpan { .. } => "reasoning spans",
            Self::Step { .. } => "steps",
            Self::Subagent { .. } => "subagents",
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Text { message_id, .. }
            | Self::ReasoningMessage { message_id, .. }
            | Self::ReasoningSpan { message_id, .. } => message_id.as_str(),
            Self::ToolCall { tool_call_id, .. } => tool_call_id.as_str(),
            Self::Step { name, .. } => name,
            Self::Subagent { subagent_run_id, .. } => subagent_run_id.as_str(),
        }
    }
}

/// The kind and the name.
impl fmt::Display for OpenItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.plural().trim_end_matches('s');
        write!(f, "{kind} {}", quoted(self.name()))
    }
}
