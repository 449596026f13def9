//! Shared state and the conversation as a whole.

use crate::{Json, JsonPatch, Message};

object! {
    /// `STATE_SNAPSHOT`: replaces the state, whatever its JSON value (C-66).
    attributed event StateSnapshot = "STATE_SNAPSHOT" {
        tags {}
        required {
            /// The whole new state; `null` is a state.
            snapshot "snapshot": Json,
        }
        optional {}
    }
}

object! {
    /// `STATE_DELTA`: patches the state.
    attributed event StateDelta = "STATE_DELTA" {
        tags {}
        required {
            /// The change, against the current state; an empty patch is a legal no-op.
            delta "delta": JsonPatch,
        }
        optional {}
    }
}

object! {
    /// `MESSAGES_SNAPSHOT`: the complete set of messages the producer owns, in order (P-53). Cannot
    /// be attributed itself; its messages can.
    event MessagesSnapshot = "MESSAGES_SNAPSHOT" {
        tags {}
        required {
            /// The messages.
            messages "messages": Vec<Message>,
        }
        optional {}
    }
}
