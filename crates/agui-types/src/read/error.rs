//! What makes a text unreadable.

use std::borrow::Cow;
use std::fmt;

/// What kind of fault a [`ReadError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text is not JSON.
    Syntax,
    /// The text nests deeper than [`MAX_DEPTH`](crate::json::MAX_DEPTH).
    TooDeep,
    /// An event that is no JSON object, or has no non-empty string `type` (T-22).
    NotAnEvent,
    /// A required member is missing.
    Missing,
    /// A member holds a value of another type (C-28, C-29).
    WrongType,
    /// A member holds the right type but a value it must not have: out of range, another literal, a
    /// malformed pointer, an empty list where one entry is the least.
    InvalidValue,
    /// `null` in the place of an optional member. Exact reading only.
    Null,
    /// A member the protocol does not describe. Exact reading only.
    UnknownMember,
    /// A union member or closed-set value the protocol does not describe. Exact reading only.
    UnknownVariant,
}

/// A text could not be read as the protocol value it was taken for.
#[derive(Clone, PartialEq, Eq)]
pub struct ReadError(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    kind: ReadErrorKind,
    path: String,
    offset: usize,
    expected: Cow<'static, str>,
    found: String,
}

impl ReadError {
    /// An error at a byte offset; [`ReadError::inside`] says where in the value that is.
    pub fn new(
        kind: ReadErrorKind,
        offset: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<String>,
    ) -> Self {
        let (expected, found) = (expected.into(), found.into());
        Self(Box::new(Fault { kind, path: String::new(), offset, expected, found }))
    }

    /// The error as seen from further out: `segment`, which is the way there as a JSON Pointer, is
    /// put before its path.
    #[cold]
    #[must_use]
    pub fn inside(mut self, segment: impl fmt::Display) -> Self {
        self.0.path = format!("{}{}", segment, self.0.path);
        self
    }

    /// The same fault under another kind; `found` fills in what was found where nothing was said.
    #[cold]
    pub(crate) fn into_kind(mut self, kind: ReadErrorKind, found: &str) -> Self {
        self.0.kind = kind;
        if self.0.found.is_empty() {
            self.0.found = found.into();
        }
        self
    }

    /// The kind, to match on.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.0.kind
    }

    /// Where: a JSON Pointer (RFC 6901) into the text, `""` for the whole.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Where: the byte offset in the text.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset
    }

    /// What should stand there.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.0.expected
    }

    /// What stands there, shortened; empty for a missing member.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.0.found
    }
}

impl fmt::Debug for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { kind, path, offset, expected, found } = &*self.0;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        match kind {
            ReadErrorKind::Syntax => write!(f, "not JSON: {expected} at byte {offset}"),
            ReadErrorKind::TooDeep => write!(f, "{expected} at byte {offset}"),
            ReadErrorKind::Missing => write!(f, "missing: expected {expected}"),
            _ => write!(f, "expected {expected}, found {found}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// A piece of text for a message: at most 60 characters, control characters escaped.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).flat_map(shown).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

fn shown(c: char) -> impl Iterator<Item = char> {
    let escaped = c.is_control().then(|| c.escape_default());
    let plain = (!c.is_control()).then_some(c);
    escaped.into_iter().flatten().chain(plain)
}
