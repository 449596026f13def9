//! Subagent invocations. Here `subagent_run_id` identifies; on other events it attributes.

use crate::{Json, MessageId, SubagentFinishedOutcome, SubagentRunId, ToolCallId};

object! {
    /// `SUBAGENT_STARTED`: announces an invocation.
    event SubagentStarted = "SUBAGENT_STARTED" {
        tags {}
        required {
            /// The invocation.
            subagent_run_id "subagentRunId": SubagentRunId,
            /// The subagent's name, reusable over invocations.
            name "name": String,
        }
        optional {
            /// What the subagent is for, to display.
            description "description": String,
            /// The invocation that spawned this one (P-64). Absent: the parent agent.
            parent_subagent_run_id "parentSubagentRunId": SubagentRunId,
            /// The tool call that spawned it.
            parent_tool_call_id "parentToolCallId": ToolCallId,
            /// The message that held that call.
            parent_message_id "parentMessageId": MessageId,
        }
    }
}

object! {
    /// `SUBAGENT_FINISHED`: ends an invocation's part of this run.
    event SubagentFinished = "SUBAGENT_FINISHED" {
        tags {}
        required {
            /// The invocation.
            subagent_run_id "subagentRunId": SubagentRunId,
        }
        optional {
            /// Its return value: any JSON value but `null`.
            result "result": Json,
            /// Why it ended. Absent: success.
            outcome "outcome": SubagentFinishedOutcome,
        }
    }
}

object! {
    /// `SUBAGENT_ERROR`: an invocation failed. The run may go on.
    event SubagentError = "SUBAGENT_ERROR" {
        tags {}
        required {
            /// The invocation.
            subagent_run_id "subagentRunId": SubagentRunId,
            /// What went wrong, for a person.
            message "message": String,
        }
        optional {
            /// What went wrong, for a program: an open string.
            code "code": String,
        }
    }
}
