//! Streamed tool calls and their results.

use crate::{MessageContent, MessageId, ToolCallId};

object! {
    /// `TOOL_CALL_START`: opens a tool call, or reopens one (C-41).
    attributed event ToolCallStart = "TOOL_CALL_START" {
        tags {}
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId,
            /// Which tool is called.
            tool_call_name "toolCallName": String,
        }
        optional {
            /// The assistant message that holds the call.
            parent_message_id "parentMessageId": MessageId,
        }
    }
}

object! {
    /// `TOOL_CALL_ARGS`: appends to the argument text of an open call.
    attributed event ToolCallArgs = "TOOL_CALL_ARGS" {
        tags {}
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId,
            /// A fragment of the arguments' text; may be empty. A fragment is no JSON document.
            delta "delta": String,
        }
        optional {}
    }
}

object! {
    /// `TOOL_CALL_END`: the arguments are complete, though not necessarily valid (C-51).
    attributed event ToolCallEnd = "TOOL_CALL_END" {
        tags {}
        required {
            /// The call.
            tool_call_id "toolCallId": ToolCallId,
        }
        optional {}
    }
}

object! {
    /// `TOOL_CALL_CHUNK`: shorthand for start, arguments and end.
    attributed event ToolCallChunk = "TOOL_CALL_CHUNK" {
        tags {}
        required {}
        optional {
            /// The call; required on the chunk that opens it (P-22).
            tool_call_id "toolCallId": ToolCallId,
            /// Which tool is called; required on the chunk that opens the call.
            tool_call_name "toolCallName": String,
            /// The assistant message that holds the call.
            parent_message_id "parentMessageId": MessageId,
            /// A fragment of the arguments' text; may be empty.
            delta "delta": String,
        }
    }
}

object! {
    /// `TOOL_CALL_RESULT`: what a tool returned. Creates a tool message (C-52).
    attributed event ToolCallResult = "TOOL_CALL_RESULT" {
        tags {}
        required {
            /// The tool message this becomes.
            message_id "messageId": MessageId,
            /// The call that is answered.
            tool_call_id "toolCallId": ToolCallId,
            /// What the tool returned; structured data is serialised to text (P-33).
            content "content": MessageContent,
        }
        optional {
            /// Always `tool`; may be left out.
            role "role": ToolRole,
        }
    }
}

literal! {
    /// The role of a tool message: `tool`.
    ToolRole = "tool"
}
