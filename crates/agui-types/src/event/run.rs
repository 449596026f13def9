//! The life of a run.

use crate::{
    Json, ProtocolVersion, RunAgentInput, RunFinishedOutcome, RunId, ThreadId, TokenUsage,
};

object! {
    /// `RUN_STARTED`: opens a run.
    event RunStarted = "RUN_STARTED" {
        tags {}
        required {
            /// The conversation the run belongs to.
            thread_id "threadId": ThreadId,
            /// The run.
            run_id "runId": RunId,
        }
        optional {
            /// The version this producer speaks, not an echo of the input's (P-80). Absent: a
            /// producer from before versions.
            protocol_version "protocolVersion": ProtocolVersion,
            /// The run that spawned this one as a separate run.
            parent_run_id "parentRunId": RunId,
            /// The request the run was started from, echoed.
            input "input": Box<RunAgentInput>,
        }
    }
}

object! {
    /// `RUN_FINISHED`: closes a run that did not fail.
    event RunFinished = "RUN_FINISHED" {
        tags {}
        required {
            /// The conversation the run belongs to.
            thread_id "threadId": ThreadId,
            /// The run.
            run_id "runId": RunId,
        }
        optional {
            /// The run's return value: any JSON value but `null`.
            result "result": Json,
            /// Why the run ended. Absent: success (C-16).
            outcome "outcome": RunFinishedOutcome,
            /// Token usage, one entry per provider and model.
            usage "usage": Vec<TokenUsage>,
        }
    }
}

object! {
    /// `RUN_ERROR`: ends a run that failed. Carries neither thread nor run id.
    event RunError = "RUN_ERROR" {
        tags {}
        required {
            /// What went wrong, for a person.
            message "message": String,
        }
        optional {
            /// What went wrong, for a program: an open string.
            code "code": String,
            /// Token usage before the failure.
            usage "usage": Vec<TokenUsage>,
        }
    }
}
