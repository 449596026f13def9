//! Why a text cannot become JSON.

use agui_types::json::MAX_DEPTH;

use super::PartialJson;

/// A text that comes in pieces cannot become JSON, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct PartialError {
    kind: PartialErrorKind,
    offset: usize,
}

impl PartialError {
    pub(super) fn new(kind: PartialErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> PartialErrorKind {
        self.kind
    }

    /// The first byte, counted over all pieces, that makes the text invalid: what stands before it
    /// could still have become JSON.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// What is wrong with a text that cannot become JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialErrorKind {
    /// Something else stands where this was expected.
    Expected(&'static str),
    /// Objects and arrays nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// A number has more than [`PartialJson::MAX_NUMBER`] bytes.
    NumberTooLong,
}

impl std::fmt::Display for PartialErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
            Self::NumberTooLong => {
                write!(f, "a number of more than {} bytes", PartialJson::MAX_NUMBER)
            }
        }
    }
}
