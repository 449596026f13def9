//! The end of a run that did not end by itself.

use agui_journal::Lease;
use agui_types::event::{RunError, RunFinished};
use agui_types::{CancelledOutcome, Event};

/// Why a run is ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Somebody asked for it.
    Stopped,
    /// Something failed: a code for programs, a sentence for people.
    Failed { code: &'static str, message: String },
}

/// The one terminal event of a run that is ended on its agent's behalf (P-11). The log begins a run
/// that was not begun, answers its calls, and closes what is open.
pub(crate) fn end(lease: &Lease, why: &Why) -> Event {
    match why {
        Why::Stopped => {
            cancelled(RunFinished::new(lease.thread().thread.clone(), lease.run().clone()))
        }
        Why::Failed { code, message } => RunError::new(message.clone()).code(*code).into(),
    }
}

/// The end of a run that was asked to stop, whatever its agent makes of its own: cancelled (P-11),
/// without a result (P-13), and with what it has used.
pub(crate) fn cancelled(mut finished: RunFinished) -> Event {
    finished.outcome = Some(CancelledOutcome::new().into());
    finished.result = None;
    finished.into()
}
