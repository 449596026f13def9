//! Reasoning: spans, streamed reasoning messages, and encrypted artefacts.

use crate::{EntityId, MessageId};

object! {
    /// `REASONING_START`: opens a span of reasoning.
    attributed event ReasoningStart = "REASONING_START" {
        tags {}
        required {
            /// The span; a namespace apart from messages (C-58).
            message_id "messageId": MessageId,
        }
        optional {}
    }
}

object! {
    /// `REASONING_MESSAGE_START`: opens a reasoning message. Its `role` is always `reasoning` and
    /// always written (P-41).
    attributed event ReasoningMessageStart = "REASONING_MESSAGE_START" {
        tags { "role" = "reasoning" }
        required {
            /// The reasoning message.
            message_id "messageId": MessageId,
        }
        optional {}
    }
}

object! {
    /// `REASONING_MESSAGE_CONTENT`: appends to an open reasoning message.
    attributed event ReasoningMessageContent = "REASONING_MESSAGE_CONTENT" {
        tags {}
        required {
            /// The reasoning message.
            message_id "messageId": MessageId,
            /// What to append; may be empty.
            delta "delta": String,
        }
        optional {}
    }
}

object! {
    /// `REASONING_MESSAGE_END`: closes an open reasoning message.
    attributed event ReasoningMessageEnd = "REASONING_MESSAGE_END" {
        tags {}
        required {
            /// The reasoning message.
            message_id "messageId": MessageId,
        }
        optional {}
    }
}

object! {
    /// `REASONING_MESSAGE_CHUNK`: shorthand for start, content and end.
    attributed event ReasoningMessageChunk = "REASONING_MESSAGE_CHUNK" {
        tags {}
        required {}
        optional {
            /// The reasoning message; required on the chunk that opens it (P-22).
            message_id "messageId": MessageId,
            /// What to append; may be empty.
            delta "delta": String,
        }
    }
}

object! {
    /// `REASONING_END`: closes a span of reasoning.
    attributed event ReasoningEnd = "REASONING_END" {
        tags {}
        required {
            /// The span.
            message_id "messageId": MessageId,
        }
        optional {}
    }
}

object! {
    /// `REASONING_ENCRYPTED_VALUE`: a provider's opaque artefact, to be stored with its target and
    /// returned unmodified in later input (C-59).
    attributed event ReasoningEncryptedValue = "REASONING_ENCRYPTED_VALUE" {
        tags {}
        required {
            /// What `entity_id` names.
            subtype "subtype": EncryptedValueSubtype,
            /// The message or tool call the value belongs to.
            entity_id "entityId": EntityId,
            /// The opaque artefact.
            encrypted_value "encryptedValue": String,
        }
        optional {
            /// The producer's name for the kind of artefact (protocol 1.1).
            encrypted_value_type "encryptedValueType": String,
        }
    }
}

closed_set! {
    /// What a `REASONING_ENCRYPTED_VALUE` belongs to.
    EncryptedValueSubtype, expected "\"message\" or \"tool-call\"" {
        /// A message.
        Message = "message",
        /// A tool call.
        ToolCall = "tool-call",
    }
}
