//! What cannot be written.

use std::fmt;

use crate::sse::FieldError;

/// An event that cannot be written in the form asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    path: String,
    kind: EncodeErrorKind,
}

impl EncodeError {
    #[cold]
    pub(crate) fn at(path: String, kind: EncodeErrorKind) -> Self {
        Self { path, kind }
    }

    /// What is wrong, to match on.
    #[must_use]
    pub fn kind(&self) -> &EncodeErrorKind {
        &self.kind
    }

    /// Where in the event: a JSON Pointer, `""` for the whole.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Why an event cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// Protobuf has no form for an event of this type.
    UnknownEvent(Box<str>),
    /// Protobuf has no form for a patch operation of this name; without it, the patch would be
    /// another one.
    UnknownOperation(Box<str>),
    /// Protobuf writes numbers as doubles, and this one is too large for one.
    Number(Box<str>),
    /// The message has this many bytes, which a frame's header cannot say.
    TooLarge(usize),
    /// The position cannot be written as an SSE `id`.
    Position(FieldError),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.kind {
            EncodeErrorKind::UnknownEvent(name) => {
                write!(f, "an event of the unknown type {name:?} has no binary form")
            }
            EncodeErrorKind::UnknownOperation(name) => {
                write!(f, "the unknown patch operation {name:?} has no binary form")
            }
            EncodeErrorKind::Number(text) => {
                let text = crate::quote::shortened(text, 0, 40);
                write!(f, "the number {text} is too large for a double")
            }
            EncodeErrorKind::TooLarge(bytes) => {
                write!(f, "an event of {bytes} bytes is too large for a frame")
            }
            EncodeErrorKind::Position(_) => f.write_str("the position cannot be an SSE id"),
        }
    }
}

impl std::error::Error for EncodeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            EncodeErrorKind::Position(error) => Some(error),
            _ => None,
        }
    }
}

/// Something of an event that the form has no room for, and that its meaning does not hang on: it
/// was left out, and the rest written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omission {
    /// Where: a JSON Pointer into the event.
    pub path: String,
    /// What.
    pub what: Box<str>,
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} has no binary form and was left out", self.path, self.what)
    }
}
