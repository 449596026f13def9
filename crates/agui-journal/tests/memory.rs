//! The journal in memory: the contract, and its own bounds.

use std::sync::Arc;

use agui_journal::{
    Clock, Journal, JournalError, MemoryJournal, MemoryLimits, NewRun, Overflow, Tenant, ThreadKey,
};
use agui_types::RunAgentInput;
use agui_types::event::{RunError, TextMessageStart};

agui_journal::journal_suite!(MemoryJournal, journal);

async fn journal(clock: Clock) -> (Arc<dyn Journal>, ()) {
    (Arc::new(MemoryJournal::with(MemoryLimits::default(), clock)), ())
}

fn run(thread: &str) -> NewRun {
    NewRun::new(Tenant::default(), "default", RunAgentInput::new(thread, "r", Vec::new()))
}

fn key(thread: &str) -> ThreadKey {
    ThreadKey::new(Tenant::default(), thread)
}

async fn fail(journal: &MemoryJournal, thread: &str) {
    let begun = journal.begin(run(thread)).await.unwrap();
    journal.finish(&begun.lease, vec![RunError::new("over").into()]).await.unwrap();
}

/// Where there are too many threads the one idle for longest goes; one that runs stays.
#[tokio::test]
async fn idle_threads_make_room() {
    let clock = agui_journal::suite::ManualClock::new();
    let limits = MemoryLimits::new().threads(2);
    let journal = MemoryJournal::with(limits, clock.clock());
    let running = journal.begin(run("running")).await.unwrap();
    clock.advance(std::time::Duration::from_millis(1));
    fail(&journal, "idle").await;
    journal.begin(run("next")).await.unwrap();
    assert!(matches!(journal.thread(&key("idle")).await, Err(JournalError::ThreadNotFound)));
    let full = journal.begin(run("one too many")).await.unwrap_err();
    assert!(matches!(full, JournalError::Full { .. }), "{full}");
    journal.finish(&running.lease, vec![RunError::new("over").into()]).await.unwrap();
    journal.begin(run("one too many")).await.unwrap();
}

/// Where nothing may be removed the journal refuses, at the last byte.
#[tokio::test]
async fn bytes_are_bounded() {
    let limits = MemoryLimits::new().overflow(Overflow::Refuse).bytes(2_000);
    let journal = MemoryJournal::with(limits, Clock::system());
    fail(&journal, "a").await;
    let used = journal.thread(&key("a")).await.unwrap().bytes;
    let begun = journal.begin(run("b")).await.unwrap();
    let started = agui_types::event::RunStarted::new("b", "r");
    journal.append(&begun.lease, vec![started.into()]).await.unwrap();
    let used = used + journal.thread(&key("b")).await.unwrap().bytes;
    let base = r#"{"type":"TEXT_MESSAGE_START","messageId":""}"#.len() as u64;
    let fitting = "m".repeat((2_000 - used - base) as usize);
    let too_large = vec![TextMessageStart::new(format!("{fitting}m")).into()];
    let full = journal.append(&begun.lease, too_large).await.unwrap_err();
    assert!(matches!(full, JournalError::Full { .. }), "{full}");
    let fits = vec![TextMessageStart::new(fitting).into()];
    journal.append(&begun.lease, fits).await.unwrap();
    let refused = journal.finish(&begun.lease, vec![RunError::new("no room").into()]).await;
    assert!(matches!(refused, Err(JournalError::Full { .. })));
    journal.delete(&key("a")).await.unwrap();
    journal.finish(&begun.lease, vec![RunError::new("room").into()]).await.unwrap();
}
