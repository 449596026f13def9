//! What is going on now: the last events of running threads, and who waits for the next ones.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agui_types::RunId;
use tokio::sync::watch;

use crate::entry::{Cursor, Entry, Page, ReadLimit, Room};
use crate::run::Stop;
use crate::thread::ThreadKey;

/// Viewers at the end of a log read from here instead of the database. Everything here has been
/// committed.
#[derive(Debug, Default)]
pub(super) struct Live {
    threads: Mutex<Threads>,
    stops: Mutex<HashMap<u64, watch::Sender<Option<Stop>>>>,
}

#[derive(Debug, Default)]
struct Threads {
    of: HashMap<ThreadKey, Thread>,
    /// At how many threads those that nobody needs are looked for next.
    sweep_at: usize,
    /// Nothing is going on any more: the file may be another process's.
    closed: bool,
}

#[derive(Debug)]
struct Thread {
    tail: VecDeque<Entry>,
    /// The position behind which the tail begins.
    behind: u64,
    /// Bytes of JSON text in the tail.
    bytes: usize,
    /// The last position that stands in a chunk. What comes behind it is in the tail, all of it.
    packed: u64,
    /// Bytes of JSON text behind that.
    unpacked_bytes: u64,
    /// The number of the run that is going on.
    number: u64,
    /// What the cursors that are read from here say.
    generation: u64,
    running: Option<RunId>,
    head: watch::Sender<u64>,
}

/// How much of the end of a running thread's log is kept.
const TAIL: ReadLimit = ReadLimit { events: 256, bytes: 64 * 1024 };

/// What is committed of a running thread and stands in no chunk yet: how much it is.
///
/// To be asked for before the database is read: what was packed meanwhile, all of it at least, then
/// is met there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The number of the run that is going on.
    pub(super) run: u64,
    /// The last position in a chunk.
    pub(super) packed: u64,
    /// The last position.
    pub(super) head: u64,
    /// Bytes of JSON text between the two.
    pub(super) bytes: u64,
}

impl Ahead {
    /// What is to be added to the bytes and to the head of a thread whose row in the database has
    /// this run going on, and its log packed up to `packed`.
    pub(super) fn beyond(&self, run: u64, packed: u64) -> (u64, u64) {
        // Whatever was packed meanwhile goes further than this.
        if (run, packed) == (self.run, self.packed) {
            (self.bytes, self.head - self.packed)
        } else {
            (0, 0)
        }
    }
}

impl Live {
    /// A run begins behind `head`: from now on the end of the log is kept.
    pub(super) fn begun(
        &self,
        key: &ThreadKey,
        (number, run): (u64, RunId),
        head: u64,
        generation: u64,
    ) {
        let mut threads = self.threads();
        let thread = threads.get(key);
        thread.running = Some(run);
        thread.number = number;
        thread.packed = head;
        thread.unpacked_bytes = 0;
        thread.generation = generation;
        thread.tail.clear();
        thread.behind = head;
        thread.bytes = 0;
        // Nobody has to wake up for it.
        thread.head.send_if_modified(|known| {
            *known = (*known).max(head);
            false
        });
    }

    /// Events are in the log; `packed` says whether all of its events stand in chunks now.
    pub(super) fn written(&self, key: &ThreadKey, entries: Vec<Entry>, packed: bool, ended: bool) {
        let mut threads = self.threads();
        let Some(thread) = threads.of.get_mut(key) else { return };
        let head = entries.last().map(|entry| entry.position);
        for entry in entries {
            thread.bytes += entry.json.len();
            thread.unpacked_bytes += entry.json.len() as u64;
            thread.tail.push_back(entry);
        }
        if packed {
            thread.packed = thread.last();
            thread.unpacked_bytes = 0;
        }
        while thread.tail.len() > TAIL.events || thread.bytes > TAIL.bytes {
            if thread.tail.front().is_none_or(|oldest| oldest.position > thread.packed) {
                break;
            }
            let Some(oldest) = thread.tail.pop_front() else { break };
            thread.behind = oldest.position;
            thread.bytes -= oldest.json.len();
        }
        if ended {
            thread.running = None;
            // Who reads from now on reads what may be compacted.
            thread.tail.clear();
            thread.bytes = 0;
        }
        if let Some(head) = head {
            thread.head.send_replace(head);
        }
        if ended && thread.head.receiver_count() == 0 {
            threads.of.remove(key);
        }
    }

    /// A thread is gone: whoever waits for it is told.
    pub(super) fn gone(&self, key: &ThreadKey) {
        self.threads().of.remove(key);
    }

    /// A page from the end of a running thread's log; `None` where it has to come from the database.
    pub(super) fn page(&self, key: &ThreadKey, from: Cursor, limit: ReadLimit) -> Option<Page> {
        let threads = self.threads();
        let thread = threads.of.get(key)?;
        let running = thread.running.clone()?;
        let last = thread.last();
        // A cursor before the tail may be in another run, and one behind it in no place at all.
        if !(thread.behind..=last).contains(&from.position()) {
            return None;
        }
        let start = thread.tail.partition_point(|entry| entry.position <= from.position());
        // Nor is there a place before the first event of a thread, which need not have position 1.
        if start == 0 && from.position() != thread.behind {
            return None;
        }
        let mut room = Room::new(limit);
        let entries = thread.tail.range(start..).take_while(|entry| room.takes(entry.json.len()));
        let entries: Vec<Entry> = entries.cloned().collect();
        let position = entries.last().map_or(from.position(), |entry| entry.position);
        let next = Cursor::within(position, thread.generation);
        Some(Page::new(entries, next, last, Some(running)))
    }

    /// The run that is going on, and what is committed of it and stands in no chunk yet. To be asked
    /// for before the database is read, as [`Ahead`] says.
    pub(super) fn unpacked(&self, key: &ThreadKey) -> Option<(u64, Vec<Entry>)> {
        let threads = self.threads();
        let thread = threads.of.get(key).filter(|thread| thread.running.is_some())?;
        Some((thread.number, thread.unpacked().cloned().collect()))
    }

    /// How much of a thread is in no chunk yet.
    pub(super) fn ahead(&self, key: &ThreadKey) -> Option<Ahead> {
        self.threads().of.get(key).and_then(Thread::ahead)
    }

    /// How much of each running thread is in no chunk yet.
    pub(super) fn all_ahead(&self) -> HashMap<ThreadKey, Ahead> {
        let threads = self.threads();
        let ahead = |(key, thread): (&ThreadKey, &Thread)| Some((key.clone(), thread.ahead()?));
        threads.of.iter().filter_map(ahead).collect()
    }

    /// To wait for a thread's next event, and whether a run is going on: only then what is seen there
    /// is the end of the log from the beginning. `None` where there will be none, as all is closed.
    pub(super) fn watch(&self, key: &ThreadKey) -> Option<(watch::Receiver<u64>, bool)> {
        let mut threads = self.threads();
        if threads.closed {
            return None;
        }
        let thread = threads.get(key);
        Some((thread.head.subscribe(), thread.running.is_some()))
    }

    /// The one who writes has ended: nobody waits for anything any more.
    pub(super) fn close(&self) {
        let mut threads = self.threads();
        threads.closed = true;
        threads.of.clear();
        self.stops().clear();
    }

    /// Whether that is so.
    pub(super) fn is_closed(&self) -> bool {
        self.threads().closed
    }

    /// A lease is given.
    pub(super) fn lease(&self, number: u64) {
        self.stops().insert(number, watch::Sender::new(None));
    }

    /// A lease is lost.
    pub(super) fn lost(&self, number: u64) {
        if let Some(stop) = self.stops().remove(&number) {
            stop.send_replace(Some(Stop::LeaseLost));
        }
    }

    /// Asks the run to stop.
    pub(super) fn stop(&self, number: u64) {
        if let Some(stop) = self.stops().get(&number) {
            stop.send_replace(Some(Stop::Requested));
        }
    }

    /// Whether the run was asked to stop.
    pub(super) fn is_asked_to_stop(&self, number: u64) -> bool {
        self.stops().get(&number).is_some_and(|stop| stop.borrow().is_some())
    }

    /// To wait for a run's stop; `None` where the lease is lost.
    pub(super) fn stopped(&self, number: u64) -> Option<watch::Receiver<Option<Stop>>> {
        self.stops().get(&number).map(watch::Sender::subscribe)
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> MutexGuard<'_, HashMap<u64, watch::Sender<Option<Stop>>>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Thread {
    fn last(&self) -> u64 {
        self.tail.back().map_or(self.behind, |entry| entry.position)
    }

    fn unpacked(&self) -> impl Iterator<Item = &Entry> {
        let start = self.tail.partition_point(|entry| entry.position <= self.packed);
        self.tail.range(start..)
    }

    fn ahead(&self) -> Option<Ahead> {
        self.running.as_ref()?;
        let (run, packed, bytes) = (self.number, self.packed, self.unpacked_bytes);
        Some(Ahead { run, packed, head: self.last(), bytes })
    }
}

impl Threads {
    fn get(&mut self, key: &ThreadKey) -> &mut Thread {
        if self.of.len() >= self.sweep_at.max(64) {
            self.of
                .retain(|_, thread| thread.running.is_some() || thread.head.receiver_count() > 0);
            self.sweep_at = self.of.len() * 2;
        }
        self.of.entry(key.clone()).or_insert_with(|| Thread {
            tail: VecDeque::new(),
            behind: 0,
            bytes: 0,
            packed: 0,
            unpacked_bytes: 0,
            number: 0,
            generation: 0,
            running: None,
            head: watch::Sender::new(0),
        })
    }
}
