//! What the cases are written with.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use agui_stream::Verifier;
use agui_types::event::{
    RunFinished, RunStarted, TextMessageContent, TextMessageEnd, TextMessageStart,
};
use agui_types::message::UserMessage;
use agui_types::{Event, FromJson, Message, RunAgentInput};

use crate::{Begun, Clock, Cursor, Entry, Journal, NewRun, ReadLimit, Tenant, ThreadKey};

/// A clock that a test moves. Begins at 1,000,000.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that stands.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000)))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// The time it shows.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// For a journal.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let now = Arc::clone(&self.0);
        Clock::new(move || now.load(Ordering::SeqCst))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

pub(super) fn key(thread: &str) -> ThreadKey {
    ThreadKey::new(Tenant::default(), thread)
}

pub(super) fn user(id: &str, text: &str) -> Message {
    UserMessage::new(id, text).into()
}

pub(super) fn input(thread: &str, run: &str, messages: Vec<Message>) -> RunAgentInput {
    RunAgentInput::new(thread, run, messages)
}

pub(super) fn new_run(input: RunAgentInput) -> NewRun {
    NewRun::new(Tenant::default(), "default", input)
}

pub(super) async fn begin(journal: &dyn Journal, thread: &str, run: &str) -> Begun {
    let input = input(thread, run, vec![user(&format!("{run}-user"), "Hello")]);
    journal.begin(new_run(input)).await.expect("the run begins")
}

pub(super) fn started(thread: &str, run: &str) -> Event {
    RunStarted::new(thread, run).into()
}

pub(super) fn finished(thread: &str, run: &str) -> Event {
    RunFinished::new(thread, run).into()
}

pub(super) fn open(message: &str) -> Event {
    TextMessageStart::new(message).into()
}

pub(super) fn text(message: &str, delta: &str) -> Event {
    TextMessageContent::new(message, delta).into()
}

pub(super) fn close(message: &str) -> Event {
    TextMessageEnd::new(message).into()
}

/// A whole run that says something, of 6 events.
pub(super) async fn say(journal: &dyn Journal, thread: &str, run: &str) -> Begun {
    let begun = begin(journal, thread, run).await;
    let message = format!("{run}-answer");
    let events = vec![
        started(thread, run),
        open(&message),
        text(&message, "Hel"),
        text(&message, "lo"),
        close(&message),
    ];
    journal.append(&begun.lease, events).await.expect("the events are appended");
    journal.finish(&begun.lease, vec![finished(thread, run)]).await.expect("the run finishes");
    begun
}

/// The whole log.
pub(super) async fn log(journal: &dyn Journal, thread: &ThreadKey) -> Vec<Entry> {
    let mut cursor = Cursor::START;
    let mut entries = Vec::new();
    loop {
        let limit = ReadLimit { events: 7, bytes: 10_000 };
        let page = journal.read(thread, cursor, limit).await.expect("the log is read");
        entries.extend(page.entries.iter().cloned());
        if page.is_last() {
            return entries;
        }
        cursor = page.next;
    }
}

pub(super) fn event(entry: &Entry) -> Event {
    Event::from_json_exact(entry.text()).expect("a log holds events")
}

pub(super) fn types(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| event(entry).type_name().to_owned()).collect()
}

/// Holds a log, or what a viewer was shown, to the rules of order.
pub(super) fn verify<'a>(events: impl IntoIterator<Item = &'a Event>) {
    let mut verifier = Verifier::new();
    for event in events {
        verifier.push(event).expect("the stream keeps the rules");
    }
    verifier.finish().expect("the stream is whole");
}

pub(super) fn verify_log(entries: &[Entry]) {
    verify(&entries.iter().map(event).collect::<Vec<_>>());
}

/// Polls a future once.
pub(super) fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}
