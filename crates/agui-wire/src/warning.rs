//! What was amiss in a body and could be got over.

use std::fmt;

/// Something in a body that is not as it should be, and is no reason to stop reading.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// `[DONE]` behind the end of a run: another protocol's end of stream. The frame was dropped.
    /// Before the end of a run it is an error (T-22).
    DoneMarker,
    /// Bytes of the frame were not UTF-8 and became U+FFFD.
    InvalidUtf8,
    /// A frame of protobuf held only events of a later version and was dropped (T-30).
    UnknownEvent {
        /// The first one's field in the envelope.
        number: u32,
    },
    /// A part of a message's content, or the source of one, was of a kind of a later version. The
    /// part was dropped.
    UnknownPart {
        /// Where: a JSON Pointer into the event, as if the part were still there.
        path: String,
    },
    /// A number in a JSON value was infinite or not a number and became `null`.
    NoNumber {
        /// Where: a JSON Pointer to the member that holds the value.
        path: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoneMarker => f.write_str("[DONE] behind the end of the run is not an event"),
            Self::InvalidUtf8 => f.write_str("bytes that are not UTF-8 were replaced"),
            Self::UnknownEvent { number } => {
                write!(f, "an event of a later version was dropped: field {number} of the envelope")
            }
            Self::UnknownPart { path } => {
                write!(f, "a content part of a later version was dropped at {path}")
            }
            Self::NoNumber { path } => {
                write!(f, "a number at {path} is not finite and became null")
            }
        }
    }
}
