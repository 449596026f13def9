//! What cannot be read.

use std::fmt;

use agui_types::ReadError;

use crate::limits::LimitExceeded;
use crate::proto::ProtoError;

/// Why a body cannot be read on. It ends the stream (T-22, T-31); every event before it has been
/// handed out.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Fault>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    kind: DecodeErrorKind,
    frame: u64,
    offset: u64,
    quote: String,
    source: Option<Source>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Read(ReadError),
    Limit(LimitExceeded),
    Proto(ProtoError),
    Cut(Cut),
}

/// How far a frame of protobuf got. `whole` is not known inside the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{have} bytes of {}", whole.map_or("its header alone".into(), |whole| whole.to_string()))]
pub(crate) struct Cut {
    pub(crate) have: usize,
    pub(crate) whole: Option<usize>,
}

/// What kind of fault a [`DecodeError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// A frame's data is not JSON (T-22).
    NotJson,
    /// A frame is JSON, but no object with a non-empty string `type` (T-22).
    NotAnEvent,
    /// A frame is an event with a malformed member (C-28), in either form.
    Malformed,
    /// The body goes past one of the [`Limits`](crate::Limits), or JSON nests too deep.
    Limit,
    /// A frame is not one message of protobuf that holds one event (T-31).
    Proto,
    /// The body ended inside a frame (T-29).
    TruncatedFrame,
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(
        kind: DecodeErrorKind,
        frame: u64,
        offset: u64,
        quote: String,
        source: Option<Source>,
    ) -> Self {
        Self(Box::new(Fault { kind, frame, offset, quote, source }))
    }

    /// The same fault of a frame that the end of the body has cut.
    pub(crate) fn into_truncated(mut self) -> Self {
        self.0.kind = DecodeErrorKind::TruncatedFrame;
        self
    }

    /// The kind, to match on.
    #[must_use]
    pub fn kind(&self) -> DecodeErrorKind {
        self.0.kind
    }

    /// Which frame, counted from 0.
    #[must_use]
    pub fn frame(&self) -> u64 {
        self.0.frame
    }

    /// Where: bytes of the body before the frame's data, or before whatever is too long. A
    /// [`read_error`](Self::read_error) has the offset in that data.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// The place in the frame, shortened: text, or for protobuf the first bytes in hexadecimal.
    /// Empty when a limit was passed.
    #[must_use]
    pub fn quote(&self) -> &str {
        &self.0.quote
    }

    /// What is wrong with the JSON or with a member of the event.
    #[must_use]
    pub fn read_error(&self) -> Option<&ReadError> {
        match &self.0.source {
            Some(Source::Read(error)) => Some(error),
            _ => None,
        }
    }

    /// Which limit was passed. `None` also where JSON nests too deep: that is a
    /// [`read_error`](Self::read_error).
    #[must_use]
    pub fn limit(&self) -> Option<&LimitExceeded> {
        match &self.0.source {
            Some(Source::Limit(error)) => Some(error),
            _ => None,
        }
    }

    /// What is wrong with the message of protobuf.
    #[must_use]
    pub fn proto_error(&self) -> Option<&ProtoError> {
        match &self.0.source {
            Some(Source::Proto(error)) => Some(error),
            _ => None,
        }
    }

    /// The JSON Pointer of the member at fault; `""` where none is.
    #[must_use]
    pub fn path(&self) -> &str {
        self.read_error().map_or("", ReadError::path)
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { kind, frame, offset, quote, .. } = &*self.0;
        let what = match kind {
            DecodeErrorKind::NotJson => "is not JSON",
            DecodeErrorKind::NotAnEvent => "is not an event",
            DecodeErrorKind::Malformed => "has a malformed member",
            DecodeErrorKind::Limit => "passes a limit",
            DecodeErrorKind::Proto => "does not decode",
            DecodeErrorKind::TruncatedFrame => "is cut off by the end of the body",
        };
        write!(f, "frame {frame}, at byte {offset} of the body, {what}")?;
        if !quote.is_empty() {
            write!(f, ": {quote}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DecodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.0.source.as_ref()? {
            Source::Read(error) => Some(error),
            Source::Limit(error) => Some(error),
            Source::Proto(error) => Some(error),
            Source::Cut(error) => Some(error),
        }
    }
}
