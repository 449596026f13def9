//! What a command that cannot go on tells the person who called it.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::terminal;

/// The exit code of a command that was used wrongly, as `clap` has it too.
pub(crate) const USAGE: u8 = 2;

/// A command cannot go on: one sentence, what caused it, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    cause: Option<Box<dyn Error>>,
    hint: Option<String>,
    /// What else is wrong.
    others: Vec<Failure>,
}

impl Failure {
    /// The program could not do its work.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into(), cause: None, hint: None, others: Vec::new() }
    }

    /// The program was called wrongly, and nothing was done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, ..Self::new(message) }
    }

    /// The system does not let the program know when it is to stop.
    pub(crate) fn no_signals(error: io::Error) -> Self {
        Self::new("signals cannot be received").because(error)
    }

    /// The failure with what caused it.
    pub(crate) fn because(mut self, cause: impl Into<Box<dyn Error>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The failure with what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure with others that are to be told as well.
    pub(crate) fn beside(mut self, others: Vec<Self>) -> Self {
        self.others = others;
        self
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// What is to be told as well.
    #[cfg(test)]
    pub(crate) fn others(&self) -> &[Self] {
        &self.others
    }

    /// Tells it on standard error and gives the code to exit with.
    pub(crate) fn report(&self) -> ExitCode {
        self.tell();
        self.others.iter().for_each(Self::tell);
        self.code.into()
    }

    fn tell(&self) {
        // Where standard error is gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "error: {}", terminal::line(&self.to_string()));
        if let Some(hint) = &self.hint {
            let _ = writeln!(io::stderr(), "hint: {}", terminal::line(hint));
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        match &self.cause {
            Some(cause) => write!(f, ": {}", chain(&**cause)),
            None => Ok(()),
        }
    }
}

/// An error and its sources as one text, each said once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}
