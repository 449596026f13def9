//! Where in an event one is: the way there as a JSON Pointer, whatever the form.

use std::fmt;

/// One step into an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A member, by the name that it has in the protobuf messages: `message_id` is `messageId`.
    Member(&'static str),
    /// An element of a list.
    Index(usize),
}

/// The steps so far. Prints as a JSON Pointer; no name needs an escape.
#[derive(Debug, Default)]
pub(super) struct Path(Vec<Step>);

impl Path {
    pub(super) fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    /// How many steps; each goes one level further in.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "/{index}"),
            Self::Member(name) => {
                let mut words = name.split('_');
                write!(f, "/{}", words.next().unwrap_or_default())?;
                words.try_for_each(|word| {
                    let (first, rest) = word.split_at(word.len().min(1));
                    write!(f, "{}{rest}", first.to_ascii_uppercase())
                })
            }
        }
    }
}
