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
    pub path: Box<str>,
    /// What is wrong, for a person.
    pub message: Box<str>,
    /// What the rule expects here.
    pub expected: Box<str>,
    /// What came.
    pub found: Box<str>,
    /// What a producer has to change.
    pub fix: Box<str>,
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
    /// A text is no event at all: not JSON, no object, or without a type.
    Frame,
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
            Self::Frame => "frame",
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
    #[cold]
    pub(crate) fn new(
        rule: &'static str,
        class: Class,
        expected: impl Into<Box<str>>,
        found: impl Into<Box<str>>,
        fix: impl Into<Box<str>>,
    ) -> Self {
        let (expected, found, fix) = (expected.into(), found.into(), fix.into());
        let message = format!("expected {expected}, found {found}").into();
        Self { rule, class, event: None, path: "".into(), message, expected, found, fix }
    }

    /// The same fault with a sentence of its own.
    pub(crate) fn message(mut self, message: impl Into<Box<str>>) -> Self {
        self.message = message.into();
        self
    }

    /// The same fault at a place in the event.
    pub(crate) fn at(mut self, path: impl Into<Box<str>>) -> Self {
        self.path = path.into();
        self
    }

    /// The same fault of the event with this number.
    #[must_use]
    pub fn of_event(mut self, event: u64) -> Self {
        self.event = Some(event);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, self.event, &self.path)?;
        write!(f, "{} ({})", self.message, self.rule)
    }
}

impl std::error::Error for Fault {}

/// Where in a stream, or in an input, something is.
fn write_place(f: &mut fmt::Formatter<'_>, event: Option<u64>, path: &str) -> fmt::Result {
    match (event, path) {
        (Some(event), path) => write!(f, "event {event}{path}: "),
        (None, "") => Ok(()),
        (None, path) => write!(f, "{path}: "),
    }
}

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
        write_place(f, self.event, &self.path)?;
        write!(f, "{} ({})", self.message, self.rule)
    }
}

/// A name from the stream in quotes, shortened, for a message.
pub(crate) fn quoted(name: &str) -> String {
    format!("'{}'", shortened(name))
}

/// At most 120 characters of a name, control characters escaped.
pub(crate) fn shortened(name: &str) -> String {
    const MOST: usize = 120;
    let mut short = String::new();
    for c in name.chars().take(MOST) {
        if c.is_control() {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    if name.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// Names one after another, at most ten of them.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    const MOST: usize = 10;
    let mut list: Vec<String> =
        names.iter().take(MOST).map(|name| shortened(name.as_ref())).collect();
    if names.len() > MOST {
        list.push(format!("and {} more", names.len() - MOST));
    }
    list.join(", ")
}
