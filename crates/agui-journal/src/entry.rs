//! What a log holds, and how it is read.

use std::fmt;

use agui_types::{Event, RunId, ToJson};
use bytes::Bytes;

/// One event of a thread's log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its number in the thread: greater than that of every event before it, never used again, not
    /// even by a later thread with the same id. The first is at least 1.
    pub position: u64,
    /// What it is to its run.
    pub kind: EntryKind,
    /// The run it belongs to.
    pub run: RunId,
    /// The event as JSON text, written once and handed on as it is.
    pub json: Bytes,
}

impl Entry {
    /// An entry, for a journal that reads one from where it is kept.
    #[must_use]
    pub fn new(position: u64, kind: EntryKind, run: RunId, json: Bytes) -> Self {
        Self { position, kind, run, json }
    }

    /// The event as JSON text; empty for bytes that are no text, which no journal hands out.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.json).unwrap_or_default()
    }
}

/// What an event is to its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// `RUN_STARTED`: a run's first.
    Started,
    /// Anything in between.
    Event,
    /// `RUN_FINISHED`: a run's last.
    Finished,
    /// `RUN_ERROR`: a run's last.
    Failed,
}

impl EntryKind {
    /// What an event is.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        match event {
            Event::RunStarted(_) => Self::Started,
            Event::RunFinished(_) => Self::Finished,
            Event::RunError(_) => Self::Failed,
            _ => Self::Event,
        }
    }

    /// Whether it ends its run.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed)
    }
}

/// An event that was accepted and written as JSON, before it has its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// What it is to its run.
    pub kind: EntryKind,
    /// Its JSON text.
    pub json: Bytes,
}

impl From<&Event> for Encoded {
    fn from(event: &Event) -> Self {
        let mut json = Vec::with_capacity(128);
        event.write_json(&mut json);
        Self { kind: EntryKind::of(event), json: json.into() }
    }
}

/// Where to read on: behind which event.
///
/// A cursor that a [`Page`] gives also knows which form of the log it was read from, and is good
/// until the thread is compacted again. One that is made from a bare position, as a viewer brings
/// it, points into the log as it was written: into a run that was compacted since it points nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    position: u64,
    generation: Option<u64>,
}

impl Cursor {
    /// Before the first event.
    pub const START: Self = Self { position: 0, generation: None };

    /// Behind the event with this position; 0 is before the first.
    #[must_use]
    pub const fn after(position: u64) -> Self {
        Self { position, generation: None }
    }

    /// Behind an event that was read when the log's compaction had this generation: for journals.
    #[must_use]
    pub const fn within(position: u64, generation: u64) -> Self {
        Self { position, generation: Some(generation) }
    }

    /// The position.
    #[must_use]
    pub const fn position(self) -> u64 {
        self.position
    }

    /// The generation, where the cursor knows it.
    #[must_use]
    pub const fn generation(self) -> Option<u64> {
        self.generation
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.position.fmt(f)
    }
}

/// How much one read gives at most. At least one event is given where there is one, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// How many events.
    pub events: usize,
    /// How many bytes of JSON text.
    pub bytes: usize,
}

/// 512 events, 256 KiB.
impl Default for ReadLimit {
    fn default() -> Self {
        Self { events: 512, bytes: 256 * 1024 }
    }
}

/// What is left of a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    left: ReadLimit,
    is_empty: bool,
}

impl Room {
    pub(crate) fn new(limit: ReadLimit) -> Self {
        Self { left: limit, is_empty: true }
    }

    /// Whether the page has room for an event of so many bytes of JSON text; then it has that much
    /// less.
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
        let Self { left, is_empty } = self;
        if !std::mem::replace(is_empty, false) && (left.events == 0 || bytes > left.bytes) {
            return false;
        }
        left.events = left.events.saturating_sub(1);
        left.bytes = left.bytes.saturating_sub(bytes);
        true
    }
}

/// What one read gave.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The events, in order. Empty where there is nothing behind the cursor yet.
    pub entries: Vec<Entry>,
    /// Where to read on.
    pub next: Cursor,
    /// The position of the last event of the log when it was read.
    pub head: u64,
    /// The run that was going on then.
    pub running: Option<RunId>,
}

impl Page {
    /// A page, for journals.
    #[must_use]
    pub fn new(entries: Vec<Entry>, next: Cursor, head: u64, running: Option<RunId>) -> Self {
        Self { entries, next, head, running }
    }

    /// Whether it reaches the end of the log.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.next.position() >= self.head
    }
}
