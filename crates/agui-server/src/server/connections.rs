//! Which connections there are, and what each of them waits for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ServerLimits;

/// All connections of a server.
pub(super) struct Connections {
    most: usize,
    table: Mutex<Table>,
    none_left: Notify,
}

#[derive(Default)]
struct Table {
    open: usize,
    /// How many of the open ones were told to make room.
    leaving: usize,
    turns: u64,
    /// Those without a request in hand, by how long.
    waiting: BTreeMap<u64, Arc<Connection>>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, table: Mutex::default(), none_left: Notify::new() })
    }

    /// A place for one more, that of the one that has waited longest where there is no other; `None`
    /// where none waits.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Slot> {
        let mut table = lock(&self.table);
        if table.open - table.leaving >= self.most && !table.evict() {
            return None;
        }
        table.open += 1;
        let turn = table.turn();
        let connection = Arc::new(Connection {
            all: Arc::clone(self),
            phase: Mutex::new(Phase::Waiting { turn, since: Instant::now(), begun: false }),
            leaving: AtomicBool::new(false),
            evicted: Notify::new(),
            stalled: AtomicBool::new(false),
        });
        table.waiting.insert(turn, Arc::clone(&connection));
        Some(Slot(connection))
    }

    /// Closes the one that has waited longest; whether there is one.
    pub(super) fn evict(&self) -> bool {
        lock(&self.table).evict()
    }

    pub(super) fn open(&self) -> usize {
        lock(&self.table).open
    }

    /// Waits until no connection is left.
    pub(super) async fn none_left(&self) {
        loop {
            let none_left = self.none_left.notified();
            if self.open() == 0 {
                return;
            }
            none_left.await;
        }
    }
}

impl Table {
    fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn evict(&mut self) -> bool {
        let Some((_, oldest)) = self.waiting.pop_first() else {
            return false;
        };
        oldest.leaving.store(true, Ordering::Relaxed);
        self.leaving += 1;
        oldest.evicted.notify_one();
        true
    }
}

/// One connection, as its task, its socket, its requests and its answers see it: all of them in one
/// task, until the connection is upgraded.
pub(super) struct Connection {
    all: Arc<Connections>,
    phase: Mutex<Phase>,
    /// It was told to make room; written and read under the table's lock.
    leaving: AtomicBool,
    pub(super) evicted: Notify,
    /// The client takes nothing although there is something.
    pub(super) stalled: AtomicBool,
}

enum Phase {
    /// There is no request; or, where one has `begun` to come, no whole head of one.
    Waiting { turn: u64, since: Instant, begun: bool },
    /// A request is being answered.
    Answering,
    /// The answer is whole and may not have been sent to its end.
    Sending,
}

impl Connection {
    /// Something came.
    pub(super) fn heard(&self) {
        if let Phase::Waiting { since, begun: begun @ false, .. } = &mut *lock(&self.phase) {
            (*since, *begun) = (Instant::now(), true);
        }
    }

    /// The head of a request is whole. Whether there is still a place for it.
    pub(super) fn begin(&self) -> bool {
        let turn = match &*lock(&self.phase) {
            Phase::Waiting { turn, .. } => Some(*turn),
            Phase::Answering | Phase::Sending => None,
        };
        let mut table = lock(&self.all.table);
        if turn.is_some_and(|turn| table.waiting.remove(&turn).is_none()) {
            return false;
        }
        drop(table);
        *lock(&self.phase) = Phase::Answering;
        true
    }

    /// The answer is whole.
    pub(super) fn answered(&self) {
        *lock(&self.phase) = Phase::Sending;
    }

    /// Everything was done that could be.
    pub(super) fn rest(self: &Arc<Self>) {
        let mut phase = lock(&self.phase);
        if matches!(*phase, Phase::Sending) && !self.stalled.load(Ordering::Relaxed) {
            let mut table = lock(&self.all.table);
            let turn = table.turn();
            table.waiting.insert(turn, Arc::clone(self));
            *phase = Phase::Waiting { turn, since: Instant::now(), begun: false };
        }
    }

    /// Whether there is no request in hand.
    pub(super) fn waits(&self) -> bool {
        matches!(*lock(&self.phase), Phase::Waiting { .. })
    }

    /// When what it waits for has to be there.
    pub(super) fn deadline(&self, limits: &ServerLimits) -> Option<Instant> {
        match &*lock(&self.phase) {
            Phase::Waiting { since, begun: true, .. } => Some(*since + limits.head_timeout),
            Phase::Waiting { since, begun: false, .. } => Some(*since + limits.idle_timeout),
            Phase::Answering | Phase::Sending => None,
        }
    }
}

/// A connection's place; free again when this is dropped.
pub(super) struct Slot(pub(super) Arc<Connection>);

impl Drop for Slot {
    fn drop(&mut self) {
        let turn = match &*lock(&self.0.phase) {
            Phase::Waiting { turn, .. } => Some(*turn),
            Phase::Answering | Phase::Sending => None,
        };
        let all = &self.0.all;
        let mut table = lock(&all.table);
        if let Some(turn) = turn {
            table.waiting.remove(&turn);
        }
        table.open -= 1;
        if self.0.leaving.load(Ordering::Relaxed) {
            table.leaving -= 1;
        }
        if table.open == 0 {
            all.none_left.notify_waiters();
        }
    }
}

/// Nothing here panics halfway, so that a poisoned lock guards sound values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
