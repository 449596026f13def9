//! What is wrong with a configuration.

use super::tree::Origin;
use crate::failure::Failure;

/// A value that cannot be used: where, which, why, and what to do.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    at: Origin,
    /// The dotted path of the key; empty for the file as such.
    key: String,
    what: String,
    fix: String,
}

impl Problem {
    pub(super) fn new(
        at: Origin,
        key: impl Into<String>,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { at, key: key.into(), what: what.into(), fix: fix.into() }
    }

    /// The file as such, or its syntax.
    pub(super) fn of_file(at: Origin, what: String, fix: String) -> Self {
        Self::new(at, "", what, fix)
    }

    /// All of them, as one command that was called wrongly; `None` where there is none.
    pub(super) fn failure(problems: Vec<Self>) -> Option<Failure> {
        let mut failures = problems.into_iter().map(Self::tell);
        let first = failures.next()?;
        Some(first.beside(failures.collect()))
    }

    /// One of them as such a command.
    pub(super) fn tell(self) -> Failure {
        let Self { at, key, what, fix } = self;
        let key = if key.is_empty() { key } else { format!("{key}: ") };
        Failure::usage(format!("{at}: {key}{what}")).hint(fix)
    }
}
