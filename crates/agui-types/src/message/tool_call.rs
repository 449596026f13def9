//! Tool calls as an assistant message holds them.

use crate::{Metadata, ToolCallId};

object! {
    /// A call that an assistant message made. Has no attribution of its own: it belongs to whom its
    /// message belongs to.
    ToolCall {
        tags { "type" = "function" }
        required {
            /// The call's id.
            id "id": ToolCallId,
            /// What is called, and with what.
            function "function": FunctionCall,
        }
        optional {
            /// A provider's opaque artefact, stored and returned unmodified (C-59).
            encrypted_value "encryptedValue": String,
            /// The producer's name for the kind of artefact (protocol 1.1).
            encrypted_value_type "encryptedValueType": String,
            /// Extra information attached to the call.
            metadata "metadata": Metadata,
        }
    }
}

object! {
    /// What a tool call calls.
    FunctionCall {
        required {
            /// The tool's name.
            name "name": String,
            /// The arguments as text, exactly as generated: valid JSON or not (C-51).
            arguments "arguments": String,
        }
        optional {}
    }
}
