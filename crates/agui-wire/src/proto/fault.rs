//! What can be wrong with a frame of protobuf.

use std::fmt;

use agui_types::ReadError;

/// Why reading a frame stops, on its way out to [`decode`](super::decode).
pub(super) enum Fault {
    /// The bytes are malformed at this address, which becomes an offset at the frame.
    Malformed { problem: Problem, address: usize },
    /// The bytes are fine, the event they spell is not.
    Read(ReadError),
    /// More list elements than [`Limits::list_items`](crate::Limits::list_items).
    TooManyItems,
    /// A content part that has to be left out: nothing in it is known. Caught by the list it is in.
    EmptyPart,
}

impl Fault {
    #[cold]
    pub(super) fn malformed(problem: Problem, at: &[u8]) -> Self {
        let address = at.as_ptr() as usize;
        Self::Malformed { problem, address }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// A frame that does not decode, which is fatal to the stream (T-31).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset} of the message")]
#[non_exhaustive]
pub struct ProtoError {
    /// What is wrong.
    pub problem: Problem,
    /// Where: bytes of the message, which begins behind the frame's four-byte header, before the
    /// first byte that makes no sense.
    pub offset: usize,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// A number does not end within the bytes it may have.
    Varint,
    /// A field number is 0, or beyond 29 bits.
    FieldNumber,
    /// A wire type that protobuf does not have.
    WireType,
    /// A length runs past the end.
    Length,
    /// A group ends that was not opened.
    GroupEnd,
    /// A group is not ended.
    GroupOpen,
    /// Groups nest deeper than 100 levels.
    GroupDepth,
    /// A string is not UTF-8.
    Utf8,
    /// The envelope names no event, not even one of a later version.
    NoEvent,
    /// The envelope's field of an event holds no message.
    NotAMessage,
    /// The envelope holds two different events.
    TwoEvents,
    /// There is no `base_event`.
    NoBase,
    /// The `type` in `base_event` is not that of the envelope.
    Type,
    /// A part of a message's content, or the source of one, is two kinds at once.
    TwoKinds,
    /// A message's content is given in two ways, or in one that its role does not have.
    Content,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Varint => "a number that does not end",
            Self::FieldNumber => "a field number that cannot be",
            Self::WireType => "an unknown wire type",
            Self::Length => "a length past the end",
            Self::GroupEnd => "the end of a group that was not opened",
            Self::GroupOpen => "a group without an end",
            Self::GroupDepth => "groups nested deeper than 100 levels",
            Self::Utf8 => "a string that is not UTF-8",
            Self::NoEvent => "no event in the envelope",
            Self::NotAMessage => "an event that is no message",
            Self::TwoEvents => "two events in one envelope",
            Self::NoBase => "an event without base_event",
            Self::Type => "a type in base_event that is not the envelope's",
            Self::TwoKinds => "a content part or source of two kinds",
            Self::Content => "content given twice, or in a way its role does not have",
        })
    }
}
