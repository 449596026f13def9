//! What is open on a stream, and what closes it.

use std::fmt;

use agui_types::event::{
    Event, ReasoningEnd, ReasoningMessageEnd, StepFinished, SubagentFinished, TextMessageEnd,
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

    /// The event that closes it, attributed as its opener was.
    ///
    /// To close everything, [`Verifier::closing_events`](crate::Verifier::closing_events) has them
    /// in order.
    #[must_use]
    pub fn closing_event(&self) -> Event {
        fn attributed<T: Into<Event>>(
            event: T,
            owner: &Option<SubagentRunId>,
            set: impl FnOnce(T, SubagentRunId) -> T,
        ) -> Event {
            match owner {
                Some(owner) => set(event, owner.clone()).into(),
                None => event.into(),
            }
        }
        match self {
            Self::Text { message_id, owner } => {
                attributed(TextMessageEnd::new(message_id), owner, TextMessageEnd::subagent_run_id)
            }
            Self::ToolCall { tool_call_id, owner } => {
                attributed(ToolCallEnd::new(tool_call_id), owner, ToolCallEnd::subagent_run_id)
            }
            Self::ReasoningMessage { message_id, owner } => attributed(
                ReasoningMessageEnd::new(message_id),
                owner,
                ReasoningMessageEnd::subagent_run_id,
            ),
            Self::ReasoningSpan { message_id, owner } => {
                attributed(ReasoningEnd::new(message_id), owner, ReasoningEnd::subagent_run_id)
            }
            Self::Step { name, owner } => {
                attributed(StepFinished::new(name.as_str()), owner, StepFinished::subagent_run_id)
            }
            Self::Subagent { subagent_run_id, .. } => SubagentFinished::new(subagent_run_id).into(),
        }
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
