//! What is kept, and for how long.

use std::time::Duration;

use crate::thread::ThreadKey;

/// Which threads to remove. Each bound counts for every tenant by itself; `None` sets none. A thread
/// whose run is going on is never removed; of the others, the one without activity for longest goes
/// first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Those without activity for longer than this.
    pub idle: Option<Duration>,
    /// Those beyond this many.
    pub threads: Option<u64>,
    /// Those beyond this many bytes of JSON text.
    pub bytes: Option<u64>,
}

impl Retention {
    /// How many threads one call removes at most.
    pub const MOST: usize = 500;

    /// Keeps everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes threads without activity for longer than this.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Whether the thread idle for longest goes, of a tenant that has so many threads and bytes.
    #[must_use]
    pub fn removes(&self, idle: Duration, threads: u64, bytes: u64) -> bool {
        self.idle.is_some_and(|most| idle > most)
            || self.threads.is_some_and(|most| threads > most)
            || self.bytes.is_some_and(|most| bytes > most)
    }

    /// Removes threads beyond this many.
    #[must_use]
    pub fn threads(mut self, threads: u64) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Removes threads beyond this many bytes of JSON text.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The threads.
    pub threads: Vec<ThreadKey>,
    /// Whether there is more to remove: call again.
    pub more: bool,
}

impl Removed {
    /// The first [`Retention::MOST`] of these, for journals.
    #[must_use]
    pub fn cut(mut threads: Vec<ThreadKey>) -> Self {
        let more = threads.len() > Retention::MOST;
        threads.truncate(Retention::MOST);
        Self { threads, more }
    }
}

/// What was compacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// How many runs.
    pub runs: u64,
    /// By how many events the log is shorter.
    pub events: u64,
    /// By how many bytes of JSON text.
    pub bytes: u64,
    /// Whether there is more to compact: call again.
    pub more: bool,
}

impl Compacted {
    /// How many runs one call compacts at most.
    pub const MOST: usize = 100;
}
