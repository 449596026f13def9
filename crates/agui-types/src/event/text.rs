//! Streamed text messages.

use crate::MessageId;

object! {
    /// `TEXT_MESSAGE_START`: opens a text message, or reopens one (C-41).
    attributed event TextMessageStart = "TEXT_MESSAGE_START" {
        tags {}
        required {
            /// The message.
            message_id "messageId": MessageId,
        }
        optional {
            /// Who the message is from. Absent: the assistant (C-49).
            role "role": TextRole,
            /// A display name for the author.
            name "name": String,
        }
    }
}

object! {
    /// `TEXT_MESSAGE_CONTENT`: appends to an open text message.
    attributed event TextMessageContent = "TEXT_MESSAGE_CONTENT" {
        tags {}
        required {
            /// The message.
            message_id "messageId": MessageId,
            /// What to append; may be empty (C-40).
            delta "delta": String,
        }
        optional {}
    }
}

object! {
    /// `TEXT_MESSAGE_END`: closes an open text message.
    attributed event TextMessageEnd = "TEXT_MESSAGE_END" {
        tags {}
        required {
            /// The message.
            message_id "messageId": MessageId,
        }
        optional {}
    }
}

object! {
    /// `TEXT_MESSAGE_CHUNK`: shorthand for start, content and end.
    attributed event TextMessageChunk = "TEXT_MESSAGE_CHUNK" {
        tags {}
        required {}
        optional {
            /// The message; required on the chunk that opens it (P-22).
            message_id "messageId": MessageId,
            /// Who the message is from, on the chunk that opens it.
            role "role": TextRole,
            /// What to append; may be empty.
            delta "delta": String,
            /// A display name for the author.
            name "name": String,
        }
    }
}

closed_set! {
    /// Who a streamed text message is from.
    TextRole, expected "\"developer\", \"system\", \"assistant\" or \"user\"" {
        /// The application's developer.
        Developer = "developer",
        /// The system.
        System = "system",
        /// The agent.
        Assistant = "assistant",
        /// The person using the application.
        User = "user",
    }
}
