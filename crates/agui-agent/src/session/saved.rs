//! A conversation at rest.

use agui_stream::Conversation;
use agui_types::json::Value;
use agui_types::{Interrupt, Json, JsonError, Message, ThreadId, TokenUsage, ToolCallId};
use serde::{Deserialize, Serialize};

/// All that a session holds of its conversation, to be kept and taken up again. What the program
/// gives a session (its agent, tools, observers, context) is not part of it.
///
/// Serialises with serde. Encrypted values are in it, as the agent wants them back (C-59): it is as
/// confidential as the conversation (C-95).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SavedSession {
    /// The thread.
    pub thread_id: ThreadId,
    /// The history.
    pub messages: Vec<Message>,
    /// The state.
    pub state: Json,
    /// The interrupts nobody has answered.
    #[serde(default)]
    pub open_interrupts: Vec<Interrupt>,
    /// The calls that wait for an answer from here.
    #[serde(default)]
    pub pending_tool_calls: Vec<ToolCallId>,
    /// What its runs have used.
    #[serde(default)]
    pub usage: Vec<TokenUsage>,
}

impl SavedSession {
    pub(super) fn of(thread_id: &ThreadId, conversation: &Conversation) -> Self {
        Self {
            thread_id: thread_id.clone(),
            messages: conversation.messages().to_vec(),
            state: conversation.state().to_json(),
            open_interrupts: conversation.open_interrupts().to_vec(),
            pending_tool_calls: conversation.pending_tool_calls().cloned().collect(),
            usage: conversation.usage().to_vec(),
        }
    }

    /// Fails where the state nests deeper than a state may.
    pub(super) fn conversation(self) -> Result<Conversation, JsonError> {
        let state = Value::try_from(&self.state)?;
        Ok(Conversation::new(self.messages, state)
            .with_open_interrupts(self.open_interrupts)
            .with_pending_tool_calls(self.pending_tool_calls)
            .with_usage(self.usage))
    }
}
