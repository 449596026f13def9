//! How a run ended.

use std::fmt;

use agui_types::RunFinishedOutcome;
use agui_types::event::RunFinished;

/// The five ways in which a run ends, for the one who reads its stream.
///
/// A stream that is rejected has none of them: it broke a rule, which is a [`Fault`](crate::Fault)
/// and not something the run said (C-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// `RUN_FINISHED` with success, or without an outcome (C-16).
    Completed,
    /// `RUN_FINISHED` with an interrupt: the run stopped to ask, and the next one answers.
    Interrupted,
    /// `RUN_FINISHED` as cancelled: stopped on purpose, neither success nor failure (C-13).
    Cancelled,
    /// `RUN_ERROR`, also after a `RUN_FINISHED` (C-4, C-11).
    Failed,
    /// The stream stopped before the run said how it ended: no outcome, and no success (C-15).
    Truncated,
}

impl Ending {
    /// The ending in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Truncated => "truncated",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&RunFinished> for Ending {
    /// An absent outcome means success; so does an unknown one, which enforcement strips (C-16).
    fn from(finished: &RunFinished) -> Self {
        match finished.outcome {
            Some(RunFinishedOutcome::Interrupt(_)) => Self::Interrupted,
            Some(RunFinishedOutcome::Cancelled(_)) => Self::Cancelled,
            _ => Self::Completed,
        }
    }
}
