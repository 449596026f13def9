//! What an event changed.

use agui_types::{JsonPointer, MessageId, RunId, ThreadId, ToolCallId};

use crate::{Ending, Warning};

/// What one event changed in a conversation, in order. A caller keeps one and hands it in again
/// with every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// What changed. Empty for events that change nothing here, such as `CUSTOM`.
    pub changes: Vec<Change>,
    /// What could not be applied.
    pub warnings: Vec<Warning>,
}

impl Applied {
    /// Empties it, and keeps its room.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.warnings.clear();
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    #[cold]
    pub(super) fn warn(&mut self, rule: &'static str, path: &str, message: String) {
        self.warnings.push(Warning::new(rule, path, message));
    }
}

/// One change of a conversation. What it names can be read from the conversation right after.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A message is there that was not there before.
    MessageCreated {
        /// The message.
        message: MessageId,
        /// Its place among the messages, counted from 0; those behind it moved down.
        position: usize,
    },
    /// A message's text grew at its end.
    TextAppended {
        /// The message.
        message: MessageId,
        /// By how many bytes of UTF-8.
        bytes: usize,
    },
    /// A message's text is complete, until it is opened again.
    TextEnded {
        /// The message.
        message: MessageId,
    },
    /// Something else about a message changed: its metadata, its encrypted value.
    MessageChanged {
        /// The message.
        message: MessageId,
    },
    /// A message was replaced where it stands.
    MessageReplaced {
        /// The message.
        message: MessageId,
    },
    /// All messages were replaced by others, as an observer may do: they are to be read anew.
    MessagesReplaced,
    /// A message is gone.
    MessageRemoved {
        /// The message.
        message: MessageId,
    },
    /// A message holds a tool call that it did not hold before.
    ToolCallStarted {
        /// The assistant message.
        message: MessageId,
        /// The call.
        tool_call: ToolCallId,
    },
    /// The text of a call's arguments grew at its end.
    ArgumentsAppended {
        /// The assistant message.
        message: MessageId,
        /// The call.
        tool_call: ToolCallId,
        /// By how many bytes of UTF-8.
        bytes: usize,
    },
    /// A call's arguments are complete, though not necessarily valid: now they can be acted on
    /// (C-50, C-51).
    ToolCallEnded {
        /// The assistant message.
        message: MessageId,
        /// The call.
        tool_call: ToolCallId,
    },
    /// Something else about a call changed: its metadata, its encrypted value.
    ToolCallChanged {
        /// The assistant message.
        message: MessageId,
        /// The call.
        tool_call: ToolCallId,
    },
    /// An activity's content was patched.
    ActivityPatched {
        /// The activity message.
        message: MessageId,
        /// Where in its content, in the order of the patch.
        paths: Vec<JsonPointer>,
    },
    /// The state was replaced.
    StateReplaced,
    /// The state was patched.
    StatePatched {
        /// Where, in the order of the patch.
        paths: Vec<JsonPointer>,
    },
    /// Interrupts were opened or closed.
    InterruptsChanged,
    /// Token usage was reported.
    UsageChanged,
    /// A run started.
    RunStarted {
        /// The conversation it belongs to.
        thread: ThreadId,
        /// The run.
        run: RunId,
    },
    /// A run ended; it can still fail (C-4).
    RunEnded {
        /// How.
        ending: Ending,
    },
}
