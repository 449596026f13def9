//! The events of the runtime protocol from before AG-UI.

use agui_types::event::TextRole;
use agui_types::{Json, MessageId, RunId, ThreadId, ToolCallId};
use serde::Serialize;

/// An event of the runtime protocol from before AG-UI; what it looks like on the wire is what
/// `serde_json` makes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum LegacyEvent {
    /// Opens a text message.
    TextMessageStart {
        /// The message.
        message_id: MessageId,
        /// Who it is from.
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
    },
    /// Appends to a text message.
    TextMessageContent {
        /// The message.
        message_id: MessageId,
        /// What to append.
        content: String,
    },
    /// Closes a text message.
    TextMessageEnd {
        /// The message.
        message_id: MessageId,
    },
    /// Opens a tool call.
    ActionExecutionStart {
        /// The call.
        action_execution_id: ToolCallId,
        /// The tool.
        action_name: String,
        /// The message that holds the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    },
    /// Appends to the arguments of a tool call.
    ActionExecutionArgs {
        /// The call.
        action_execution_id: ToolCallId,
        /// What to append.
        args: String,
    },
    /// Closes a tool call.
    ActionExecutionEnd {
        /// The call.
        action_execution_id: ToolCallId,
    },
    /// What a tool returned.
    ActionExecutionResult {
        /// The call.
        action_execution_id: ToolCallId,
        /// The tool; `unknown` where no such call was started.
        action_name: String,
        /// The text of the result.
        result: String,
    },
    /// The whole state.
    AgentStateMessage {
        /// The thread.
        thread_id: ThreadId,
        /// The agent.
        agent_name: String,
        /// The step that began last; empty before the first.
        node_name: String,
        /// The run.
        run_id: RunId,
        /// Whether the agent has not said `Exit`.
        running: bool,
        /// Always `assistant`.
        role: &'static str,
        /// The state: an object as JSON text.
        state: String,
        /// Whether the step, or the run, goes on.
        active: bool,
    },
    /// An application's own event.
    MetaEvent {
        /// Its name.
        name: String,
        /// Its value.
        value: Json,
    },
    /// The run failed.
    RunError {
        /// What went wrong, for a person.
        message: String,
        /// What went wrong, for a program.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}
