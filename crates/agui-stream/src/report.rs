//! What a stage has to say about a stream: faults that end it, warnings that do not. Both are data.

use std::fmt;

/// A rule of the protocol is broken; the stream is rejected from here on.
///
/// What was delivered before stays delivered (C-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The rule, by its id in the protocol reference, such as `C-38`.
    pub rule: &'static str,
    /// The class, to match on.
    pub class: Class,
    /// Which event of the stream, counted from 0 as they arrived; `None` at the stream's end or
    /// before it began.
    pub event: Option<u64>,
    /// A JSON Pointer into that event; empty where the event as a whole is at fault.
    pub path: String,
    /// What the rule expects here.
    pub expected: String,
    /// What came.
    pub found: String,
    /// What a producer has to change.
    pub fix: String,
}

/// What kind of rule a [`Fault`] broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A described member holds a value its schema refuses, or a required one is missing.
    Schema,
    /// The event is fine by itself but not here.
    Sequence,
    /// A chunk cannot be expanded.
    Chunk,
    /// The stream ended without a terminal event.
    Truncated,
    /// The input does not answer the open interrupts.
    Interrupts,
}

impl Class {
    /// The class in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Sequence => "sequence",
            Self::Chunk => "chunk",
            Self::Truncated => "truncated",
            Self::Interrupts => "interrupts",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Fault {
    /// A fault of the event at hand. Whoever counts the events says which one it was.
    pub(crate) fn new(
        rule: &'static str,
        class: Class,
        expected: impl Into<String>,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let (expected, found, fix) = (expected.into(), found.into(), fix.into());
        Self { rule, class, event: None, path: String::new(), expected, found, fix }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(event) = self.event {
            write!(f, "event {event}{}: ", self.path)?;
        }
        write!(f, "expected {}, found {} ({})", self.expected, self.found, self.rule)
    }
}

impl std::error::Error for Fault {}

/// Something was dropped, stripped, translated or could not be applied; the stream goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The rule, by its id in the protocol reference, such as `C-22`.
    pub rule: &'static str,
    /// Which event of the stream, counted from 0 as they arrived.
    pub event: Option<u64>,
    /// A JSON Pointer into that event; empty where the event as a whole is meant.
    pub path: String,
    /// What happened, for a person.
    pub message: String,
}

impl Warning {
    /// A warning about the event at hand. Whoever counts the events says which one it was.
    pub(crate) fn new(
        rule: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { rule, event: None, path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(event) = self.event {
            write!(f, "event {event}{}: ", self.path)?;
        }
        write!(f, "{} ({})", self.message, self.rule)
    }
}
