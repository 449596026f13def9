//! A run that says something, on a thread of nobody in particular.

use agui_journal::{Journal, Lease, NewRun, ReadLimit, SqliteJournal, Tenant, ThreadKey};
use agui_types::RunAgentInput;
use agui_types::event::{Event, RunFinished, RunStarted, TextMessageEnd, TextMessageStart};

/// Everything that there is.
pub(crate) const ALL: ReadLimit = ReadLimit { events: usize::MAX, bytes: usize::MAX };

pub(crate) fn key(thread: &str) -> ThreadKey {
    ThreadKey::new(Tenant::default(), thread)
}

/// Begins a run, and the message `m`.
pub(crate) async fn begin(journal: &SqliteJournal, thread: &str) -> Lease {
    let input = RunAgentInput::new(thread, "r", Vec::new());
    let begun = journal.begin(NewRun::new(Tenant::default(), "default", input)).await.unwrap();
    let start: Vec<Event> =
        vec![RunStarted::new(thread, "r").into(), TextMessageStart::new("m").into()];
    journal.append(&begun.lease, start).await.unwrap();
    begun.lease
}

/// The end of that message, and of its run.
pub(crate) fn end(thread: &str) -> Vec<Event> {
    vec![TextMessageEnd::new("m").into(), RunFinished::new(thread, "r").into()]
}
