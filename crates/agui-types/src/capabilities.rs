//! What an agent declares about itself.
//!
//! Every group and every field is optional, and omitted means undeclared, never unsupported (C-91).
//!
//! ```
//! use agui_types::ToJson;
//! use agui_types::capabilities::{AgentCapabilities, StateCapabilities, TransportCapabilities};
//!
//! let capabilities = AgentCapabilities::default()
//!     .transport(TransportCapabilities::default().streaming(true))
//!     .state(StateCapabilities::default().snapshots(true).deltas(true));
//! let declared = r#"{"transport":{"streaming":true},"state":{"snapshots":true,"deltas":true}}"#;
//! assert_eq!(capabilities.to_json(), declared);
//! ```

use crate::{Count, JsonObject, Metadata, Tool};

object! {
    /// What an agent declares about itself.
    AgentCapabilities {
        required {}
        optional {
            /// Who it is.
            identity "identity": IdentityCapabilities,
            /// How it can be reached.
            transport "transport": TransportCapabilities,
            /// Its tools.
            tools "tools": ToolsCapabilities,
            /// What it can put out.
            output "output": OutputCapabilities,
            /// How it deals with state.
            state "state": StateCapabilities,
            /// How it works with others.
            multi_agent "multiAgent": MultiAgentCapabilities,
            /// Whether it shows its reasoning.
            reasoning "reasoning": ReasoningCapabilities,
            /// Media in and out.
            multimodal "multimodal": MultimodalCapabilities,
            /// How it executes.
            execution "execution": ExecutionCapabilities,
            /// How people take part.
            human_in_the_loop "humanInTheLoop": HumanInTheLoopCapabilities,
            /// Whatever else; its keys are data.
            custom "custom": JsonObject,
        }
    }
}

object! {
    /// Who the agent is.
    IdentityCapabilities {
        required {}
        optional {
            /// Its name.
            name "name": String,
            /// What kind of agent it is: an open string.
            kind "type": String,
            /// What it is for.
            description "description": String,
            /// Its version.
            version "version": String,
            /// Who provides it.
            provider "provider": String,
            /// Where it is documented.
            documentation_url "documentationUrl": String,
            /// Extra information.
            metadata "metadata": Metadata,
        }
    }
}

object! {
    /// How the agent can be reached. The last two name mechanisms that no standard binding has (C-92).
    TransportCapabilities {
        required {}
        optional {
            /// It streams.
            streaming "streaming": bool,
            /// It can be reached over WebSocket.
            websocket "websocket": bool,
            /// It can answer in the binary form.
            http_binary "httpBinary": bool,
            /// It can push.
            push_notifications "pushNotifications": bool,
            /// A stream can be resumed.
            resumable "resumable": bool,
        }
    }
}

object! {
    /// The agent's tools.
    ToolsCapabilities {
        required {}
        optional {
            /// It calls tools.
            supported "supported": bool,
            /// The agent's own tools; never merged with those of the input.
            items "items": Vec<Tool>,
            /// It makes several calls at a time.
            parallel_calls "parallelCalls": bool,
            /// It calls tools that the application advertises.
            client_provided "clientProvided": bool,
        }
    }
}

object! {
    /// What the agent can put out.
    OutputCapabilities {
        required {}
        optional {
            /// It can put out structured data; promises no event (C-92).
            structured_output "structuredOutput": bool,
            /// The media types it can put out.
            supported_mime_types "supportedMimeTypes": Vec<String>,
        }
    }
}

object! {
    /// How the agent deals with state.
    StateCapabilities {
        required {}
        optional {
            /// It sends snapshots.
            snapshots "snapshots": bool,
            /// It sends deltas.
            deltas "deltas": bool,
            /// It remembers over threads.
            memory "memory": bool,
            /// Its state outlives the process.
            persistent_state "persistentState": bool,
        }
    }
}

object! {
    /// How the agent works with others.
    MultiAgentCapabilities {
        required {}
        optional {
            /// It works with other agents.
            supported "supported": bool,
            /// It delegates.
            delegation "delegation": bool,
            /// It hands over.
            handoffs "handoffs": bool,
            /// The subagents it has.
            subagents "subagents": Vec<SubagentInfo>,
        }
    }
}

object! {
    /// Whether the agent shows its reasoning.
    ReasoningCapabilities {
        required {}
        optional {
            /// It reasons.
            supported "supported": bool,
            /// It streams its reasoning.
            streaming "streaming": bool,
            /// Its reasoning is encrypted.
            encrypted "encrypted": bool,
        }
    }
}

object! {
    /// Which media the agent takes.
    MultimodalInputCapabilities {
        required {}
        optional {
            /// Images.
            image "image": bool,
            /// Audio.
            audio "audio": bool,
            /// Video.
            video "video": bool,
            /// PDF documents.
            pdf "pdf": bool,
            /// Other files.
            file "file": bool,
        }
    }
}

object! {
    /// Which media the agent puts out; promises no event (C-92).
    MultimodalOutputCapabilities {
        required {}
        optional {
            /// Images.
            image "image": bool,
            /// Audio.
            audio "audio": bool,
        }
    }
}

object! {
    /// Media in and out.
    MultimodalCapabilities {
        required {}
        optional {
            /// What it takes.
            input "input": MultimodalInputCapabilities,
            /// What it puts out.
            output "output": MultimodalOutputCapabilities,
        }
    }
}

object! {
    /// How the agent executes.
    ExecutionCapabilities {
        required {}
        optional {
            /// It runs code.
            code_execution "codeExecution": bool,
            /// It runs code in a sandbox.
            sandboxed "sandboxed": bool,
            /// How many iterations it makes at most.
            max_iterations "maxIterations": Count,
            /// How long it runs at most, in milliseconds.
            max_execution_time "maxExecutionTime": Count,
        }
    }
}

object! {
    /// How people take part.
    HumanInTheLoopCapabilities {
        required {}
        optional {
            /// People can take part.
            supported "supported": bool,
            /// It asks for approval.
            approvals "approvals": bool,
            /// It can be corrected while it works.
            interventions "interventions": bool,
            /// It takes feedback.
            feedback "feedback": bool,
            /// It interrupts its runs to ask.
            interrupts "interrupts": bool,
            /// What it asks approval for can be edited.
            approve_with_edits "approveWithEdits": bool,
        }
    }
}

object! {
    /// A subagent the agent has.
    SubagentInfo {
        required {
            /// Its name.
            name "name": String,
        }
        optional {
            /// What it is for.
            description "description": String,
        }
    }
}
