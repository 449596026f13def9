//! What is sent to an agent.

use crate::{InterruptId, Json, Message, Metadata, ProtocolVersion, RunId, ThreadId};

object! {
    /// The request for one run: the whole history, the state, and what the application offers.
    RunAgentInput {
        required {
            /// The conversation.
            thread_id "threadId": ThreadId,
            /// The run that is asked for.
            run_id "runId": RunId,
            /// The complete history, in order (P-77).
            messages "messages": Vec<Message>,
        }
        optional {
            /// The version the sender speaks; always sent, except to peers known to predate it
            /// (C-80).
            protocol_version "protocolVersion": ProtocolVersion,
            /// The run that spawned this one as a separate run.
            parent_run_id "parentRunId": RunId,
            /// The shared state: any JSON value but `null`. Absent: `{}`.
            state "state": Json,
            /// The front end's tools. Absent: none (P-75).
            tools "tools": Vec<Tool>,
            /// What the application tells the model. Absent: nothing (P-75).
            context "context": Vec<Context>,
            /// Whatever the application passes through, untouched on the way (P-78): any JSON value
            /// but `null`.
            forwarded_props "forwardedProps": Json,
            /// The answers to the interrupts of the run that is continued.
            resume "resume": Vec<ResumeEntry>,
        }
    }
}

object! {
    /// A tool the model may call.
    Tool {
        required {
            /// The name it is called by.
            name "name": String,
            /// What it does, for the model.
            description "description": String,
        }
        optional {
            /// A JSON Schema of the arguments, carried opaquely: any JSON value but `null`. Absent:
            /// no arguments.
            parameters "parameters": Json,
            /// Extra information attached to the tool.
            metadata "metadata": Metadata,
        }
    }
}

object! {
    /// One thing the application tells the model.
    Context {
        required {
            /// What the value is.
            description "description": String,
            /// The value.
            value "value": String,
        }
        optional {}
    }
}

object! {
    /// The answer to one interrupt.
    ResumeEntry {
        required {
            /// The interrupt that is answered.
            interrupt_id "interruptId": InterruptId,
            /// Whether it was answered or given up.
            status "status": ResumeStatus,
        }
        optional {
            /// The answer: any JSON value but `null`. `false`, `0` and `""` are answers.
            payload "payload": Json,
            /// Envelope information, such as signatures.
            metadata "metadata": Metadata,
        }
    }
}

closed_set! {
    /// Whether an interrupt was answered or given up.
    ResumeStatus, expected "\"resolved\" or \"cancelled\"" {
        /// Answered.
        Resolved = "resolved",
        /// Given up.
        Cancelled = "cancelled",
    }
}
