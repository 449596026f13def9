//! A journal that ends with its process.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agui_stream::Ending;
use agui_types::{Event, FromJson, RunId};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::entry::{Cursor, Encoded, Entry, Page, ReadLimit, Room};
use crate::error::JournalError;
use crate::implement::{Abandoned, ActiveRun, Batch, Fold, compact_run, place, told_to_stop};
use crate::journal::{BoxFuture, Journal, Result};
use crate::retention::{Compacted, Removed, Retention};
use crate::run::{Begun, BusyPolicy, EndedRun, Lease, NewRun, RunInfo, Stop, StopOutcome};
use crate::snapshot::{Facts, Snapshot};
use crate::thread::{Tenant, ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// A [`Journal`] in the memory of this process: nothing survives its end.
///
/// Bounded: see [`MemoryLimits`]. Nothing here waits but [`changed`](Journal::changed) and
/// [`stopped`](Journal::stopped); work is done on the thread that polls. Clones are the same journal.
#[derive(Clone, Debug)]
pub struct MemoryJournal {
    shared: Arc<Shared>,
}

/// How much a [`MemoryJournal`] holds, of all tenants together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// Bytes of the JSON text of all events. The folded threads come on top, and are smaller than
    /// what they are folded from. 512 MiB unless set.
    pub bytes: u64,
    /// Threads. 10,000 unless set.
    pub threads: usize,
    /// What happens where a bound would be passed. Unless set: the thread idle for longest goes.
    pub overflow: Overflow,
}

/// What happens where a [`MemoryJournal`] is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The threads without activity for longest are removed, with a warning in the log of the
    /// process; where all have a run going on, [`JournalError::Full`].
    #[default]
    EvictIdle,
    /// [`JournalError::Full`].
    Refuse,
}

impl MemoryLimits {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: 512 * 1024 * 1024, threads: 10_000, overflow: Overflow::EvictIdle }
    }

    /// Sets how many bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets how many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets what happens where a bound would be passed.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryJournal {
    /// An empty journal with the default limits and the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with(MemoryLimits::default(), Clock::default())
    }

    /// An empty journal with these limits and this clock.
    #[must_use]
    pub fn with(limits: MemoryLimits, clock: Clock) -> Self {
        let state = Mutex::new(State::default());
        Self { shared: Arc::new(Shared { clock, limits, state }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock leaves the state halfway when it panics.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.shared.clock.now()
    }

    fn begin_now(&self, run: NewRun) -> Result<Begun> {
        let (now, key) = (self.now(), run.thread());
        let limits = &self.shared.limits;
        let mut state = self.state();
        let state = &mut *state;
        let mut ended = None;
        match state.threads.get_mut(&key) {
            None => state.make_room(limits, 0, 1, Some(&key))?,
            Some(thread) => {
                if let Some(active) = &thread.active {
                    let why = match run.busy {
                        _ if active.expires_at <= now => Abandoned::LeaseLapsed,
                        BusyPolicy::Supersede => Abandoned::Superseded,
                        BusyPolicy::Refuse => {
                            let run = active.run.run().clone();
                            return Err(JournalError::ThreadBusy { run });
                        }
                    };
                    ended = thread.abandon(&key, why, now, &mut state.bytes);
                }
            }
        }
        state.runs += 1;
        let number = state.runs;
        let NewRun { agent, owner, input, lease: ttl, .. } = run;
        let info = RunInfo::new(input.run_id.clone(), agent, now);
        let thread = match state.threads.entry(key.clone()) {
            Slot::Occupied(thread) => thread.into_mut(),
            Slot::Vacant(place) => {
                let info = ThreadInfo::new(key.thread.clone(), owner, info.clone());
                place.insert(Thread::new(info, state.floor))
            }
        };
        thread.info.runs += 1;
        thread.info.updated_at = now;
        thread.info.last_run = info;
        let from = Cursor::after(thread.info.head);
        let run = ActiveRun::begin(input, &mut thread.fold);
        let lease = Lease::new(key, run.run().clone(), number);
        let ttl = millis(ttl);
        let (stop, _) = watch::channel(None);
        let first = thread.next_position();
        thread.active =
            Some(Active { run, number, ttl, expires_at: now.saturating_add(ttl), first, stop });
        Ok(Begun::new(lease, from, thread.info.clone(), ended))
    }

    fn write(&self, lease: &Lease, batch: Batch, ends: bool) -> Result<u64> {
        let now = self.now();
        let mut state = self.state();
        let state = &mut *state;
        let active =
            leased(&mut state.threads, lease)?.active.as_ref().ok_or_else(|| lost(lease))?;
        let bytes = batch.bytes() + active.run.opening_bytes();
        state.make_room(&self.shared.limits, bytes, 0, Some(lease.thread()))?;

        let thread = leased(&mut state.threads, lease)?;
        let active = thread.active.as_mut().ok_or_else(|| lost(lease))?;
        active.expires_at = now.saturating_add(active.ttl);
        let (run, fold) = (&mut active.run, &mut thread.fold);
        let mut out = Vec::with_capacity(batch.len() + 2);
        let accepted = if ends {
            run.finish(batch, fold, &mut out).map(Some)
        } else {
            run.append(batch, fold, &mut out).map(|()| None)
        };
        thread.write(out, &mut state.bytes);
        if let Ok(Some(ending)) = accepted {
            thread.ended(ending, now);
        }
        thread.show();
        accepted.map(|_| thread.info.head)
    }

    fn request_stop_now(&self, key: &ThreadKey, run: Option<&RunId>) -> StopOutcome {
        let now = self.now();
        let mut state = self.state();
        let state = &mut *state;
        let Some(thread) = state.threads.get_mut(key) else { return StopOutcome::NotRunning };
        let Some(active) = &mut thread.active else { return StopOutcome::NotRunning };
        if run.is_some_and(|run| run != active.run.run()) {
            return StopOutcome::NotRunning;
        }
        if active.expires_at <= now {
            thread.abandon(key, Abandoned::LeaseLapsed, now, &mut state.bytes);
            return StopOutcome::NotRunning;
        }
        let newly = active.stop.send_if_modified(|stop| {
            let newly = stop.is_none();
            *stop = Some(Stop::Requested);
            newly
        });
        if newly { StopOutcome::Requested } else { StopOutcome::AlreadyRequested }
    }

    fn recover_now(&self) -> Vec<EndedRun> {
        let now = self.now();
        let mut state = self.state();
        let state = &mut *state;
        let mut ended = Vec::new();
        for (key, thread) in &mut state.threads {
            if thread.active.as_ref().is_some_and(|active| active.expires_at <= now) {
                ended.extend(thread.abandon(key, Abandoned::LeaseLapsed, now, &mut state.bytes));
            }
        }
        ended.sort_by(|a, b| a.thread.cmp(&b.thread));
        ended
    }

    fn with_thread<T>(&self, key: &ThreadKey, read: impl FnOnce(&mut Thread) -> T) -> Result<T> {
        self.state().threads.get_mut(key).map(read).ok_or(JournalError::ThreadNotFound)
    }

    fn threads_now(&self, query: &ThreadQuery) -> Result<ThreadPage> {
        let after = query.after.as_ref();
        let after = after.map(|token| token.read().ok_or(JournalError::PageToken)).transpose()?;
        let state = self.state();
        let of_tenant = state.threads.iter().filter(|(key, _)| key.tenant == query.tenant);
        let mut found: Vec<&ThreadInfo> = of_tenant
            .map(|(_, thread)| &thread.info)
            .filter(|info| query.matches(info))
            .filter(|info| after.is_none_or(|after| order(info) < after))
            .collect();
        found.sort_unstable_by(|a, b| order(b).cmp(&order(a)));
        let limit = query.page_size();
        let page = found.into_iter().take(limit + 1).cloned().collect();
        Ok(ThreadPage::cut(page, limit))
    }

    fn remove_where(&self, mut remove: impl FnMut(&ThreadKey, &Thread) -> bool) -> u64 {
        let mut state = self.state();
        let keys: Vec<ThreadKey> = state
            .threads
            .iter()
            .filter(|(key, thread)| remove(key, thread))
            .map(|(key, _)| key.clone())
            .collect();
        keys.iter().for_each(|key| state.remove(key));
        keys.len() as u64
    }

    fn retain_now(&self, retention: &Retention) -> Removed {
        let now = self.now();
        let mut state = self.state();
        let mut tenants: HashMap<&Tenant, Vec<(&ThreadKey, &Thread)>> = HashMap::new();
        for (key, thread) in &state.threads {
            tenants.entry(&key.tenant).or_default().push((key, thread));
        }
        let mut tenants: Vec<_> = tenants.into_iter().collect();
        tenants.sort_unstable_by_key(|(tenant, _)| *tenant);
        let mut doomed = Vec::new();
        for (_, mut threads) in tenants {
            let mut count = threads.len() as u64;
            let mut bytes: u64 = threads.iter().map(|(_, thread)| thread.info.bytes).sum();
            threads.sort_unstable_by(|(_, a), (_, b)| order(&a.info).cmp(&order(&b.info)));
            for (key, thread) in threads {
                let idle = Duration::from_millis(now.saturating_sub(thread.info.updated_at));
                if thread.active.is_none() && retention.removes(idle, count, bytes) {
                    count -= 1;
                    bytes -= thread.info.bytes;
                    doomed.push(key.clone());
                }
            }
        }
        let removed = Removed::cut(doomed);
        removed.threads.iter().for_each(|key| state.remove(key));
        removed
    }

    fn compact_now(&self, ended_for: Duration) -> Compacted {
        let before = self.now().saturating_sub(millis(ended_for));
        let due = |run: &Run| !run.compacted && run.ended_at <= before;
        let keys: Vec<ThreadKey> = {
            let state = self.state();
            let threads = state.threads.iter();
            let threads = threads.filter(|(_, thread)| thread.runs.iter().any(due));
            threads.map(|(key, _)| key.clone()).collect()
        };
        let mut done = Compacted::default();
        for key in keys {
            // The work is done without the lock: runs that have ended change no more.
            let Ok((runs, entries)) =
                self.with_thread(&key, |thread| (thread.runs.clone(), thread.entries.clone()))
            else {
                continue;
            };
            let mut fold = Fold::new();
            for run in runs {
                let range = range(&entries, run.first, run.last);
                let events = &entries[range];
                if due(&run) {
                    if done.runs == Compacted::MOST as u64 {
                        done.more = true;
                        return done;
                    }
                    let compacted = compact_run(fold.conversation().clone(), events);
                    self.replace(&key, &run, compacted, &mut done);
                }
                for entry in events {
                    if let Ok(event) = Event::from_json_tolerant(entry.text()) {
                        // Every event of a log is sound.
                        let _ = fold.push(&event.value);
                    }
                }
            }
        }
        done
    }

    /// Puts a compacted run in the place of what it was made from.
    fn replace(
        &self,
        key: &ThreadKey,
        run: &Run,
        events: Option<Vec<Encoded>>,
        done: &mut Compacted,
    ) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(thread) = state.threads.get_mut(key) else { return };
        let Some(known) = thread.runs.iter_mut().find(|known| known.number == run.number) else {
            return;
        };
        if known.compacted {
            return;
        }
        known.compacted = true;
        done.runs += 1;
        let Some(events) = events else { return };
        known.shorter = true;
        let entries = place(events, &run.run, run.first, run.last);
        let range = range(&thread.entries, run.first, run.last);
        let (before, after) = (size(&thread.entries[range.clone()]), size(&entries));
        done.events += (range.len() - entries.len()) as u64;
        thread.entries.splice(range, entries);
        thread.generation += 1;
        thread.info.bytes = thread.info.bytes + after - before;
        state.bytes = state.bytes + after - before;
        done.bytes += before.saturating_sub(after);
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal for MemoryJournal {
    fn begin(&self, run: NewRun) -> BoxFuture<'_, Result<Begun>> {
        Box::pin(async move { self.begin_now(run) })
    }

    fn append_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>> {
        let lease = lease.clone();
        Box::pin(async move { self.write(&lease, events, false) })
    }

    fn finish_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>> {
        let lease = lease.clone();
        Box::pin(async move { self.write(&lease, events, true) })
    }

    fn renew(&self, lease: &Lease) -> BoxFuture<'_, Result<()>> {
        let lease = lease.clone();
        Box::pin(async move {
            let now = self.now();
            let mut state = self.state();
            let active =
                leased(&mut state.threads, &lease)?.active.as_mut().ok_or_else(|| lost(&lease))?;
            active.expires_at = now.saturating_add(active.ttl);
            Ok(())
        })
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<()>> {
        let lease = lease.clone();
        Box::pin(async move {
            let mut state = self.state();
            let active =
                leased(&mut state.threads, &lease)?.active.as_mut().ok_or_else(|| lost(&lease))?;
            active.expires_at = 0;
            Ok(())
        })
    }

    fn stopped(&self, lease: &Lease) -> BoxFuture<'static, Stop> {
        let mut state = self.state();
        let active =
            leased(&mut state.threads, lease).ok().and_then(|thread| thread.active.as_ref());
        Box::pin(told_to_stop(active.map(|active| active.stop.subscribe())))
    }

    fn request_stop(
        &self,
        thread: &ThreadKey,
        run: Option<&RunId>,
    ) -> BoxFuture<'_, Result<StopOutcome>> {
        let (thread, run) = (thread.clone(), run.cloned());
        Box::pin(async move { Ok(self.request_stop_now(&thread, run.as_ref())) })
    }

    fn recover(&self) -> BoxFuture<'_, Result<Vec<EndedRun>>> {
        Box::pin(async move { Ok(self.recover_now()) })
    }

    fn read(
        &self,
        thread: &ThreadKey,
        from: Cursor,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<Page>> {
        let thread = thread.clone();
        Box::pin(async move { self.with_thread(&thread, |thread| thread.read(from, limit))? })
    }

    fn changed(&self, thread: &ThreadKey, position: u64) -> BoxFuture<'_, Result<()>> {
        let thread = thread.clone();
        Box::pin(async move {
            let mut head = self.with_thread(&thread, |thread| thread.head.subscribe())?;
            let head = head.wait_for(|head| *head > position).await;
            head.map(|_| ()).map_err(|_| JournalError::ThreadNotFound)
        })
    }

    fn snapshot(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Snapshot>> {
        let thread = thread.clone();
        Box::pin(async move { self.with_thread(&thread, |thread| thread.snapshot()) })
    }

    fn facts(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Facts>> {
        let thread = thread.clone();
        Box::pin(async move { self.with_thread(&thread, |thread| thread.facts.clone()) })
    }

    fn thread(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(async move { self.with_thread(&thread, |thread| thread.info.clone()) })
    }

    fn threads(&self, query: ThreadQuery) -> BoxFuture<'_, Result<ThreadPage>> {
        Box::pin(async move { self.threads_now(&query) })
    }

    fn rename(
        &self,
        thread: &ThreadKey,
        name: Option<String>,
    ) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(async move {
            self.with_thread(&thread, |thread| {
                thread.info.name = name;
                thread.info.clone()
            })
        })
    }

    fn archive(&self, thread: &ThreadKey, archived: bool) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(async move {
            self.with_thread(&thread, |thread| {
                thread.info.archived = archived;
                thread.info.clone()
            })
        })
    }

    fn delete(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<()>> {
        let thread = thread.clone();
        Box::pin(async move {
            let removed = self.remove_where(|key, _| *key == thread);
            if removed == 0 { Err(JournalError::ThreadNotFound) } else { Ok(()) }
        })
    }

    fn clear(&self, tenant: &Tenant, owner: Option<&str>) -> BoxFuture<'_, Result<u64>> {
        let (tenant, owner) = (tenant.clone(), owner.map(str::to_owned));
        Box::pin(async move {
            Ok(self.remove_where(|key, thread| {
                key.tenant == tenant && (owner.is_none() || thread.info.owner == owner)
            }))
        })
    }

    fn compact(&self, ended_for: Duration) -> BoxFuture<'_, Result<Compacted>> {
        Box::pin(async move { Ok(self.compact_now(ended_for)) })
    }

    fn retain(&self, retention: &Retention) -> BoxFuture<'_, Result<Removed>> {
        let retention = retention.clone();
        Box::pin(async move { Ok(self.retain_now(&retention)) })
    }
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    limits: MemoryLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    threads: HashMap<ThreadKey, Thread>,
    /// Bytes of JSON text, of all threads.
    bytes: u64,
    /// How many runs have begun.
    runs: u64,
    /// The greatest position of any thread that was removed: new ones begin behind it, so that no
    /// position comes twice.
    floor: u64,
}

#[derive(Debug)]
struct Thread {
    info: ThreadInfo,
    entries: Vec<Entry>,
    /// Those that have ended, in order.
    runs: Vec<Run>,
    fold: Fold,
    facts: Facts,
    active: Option<Active>,
    /// How often runs of it were compacted.
    generation: u64,
    /// Where its positions begin: behind this.
    floor: u64,
    head: watch::Sender<u64>,
}

/// A run that has ended.
#[derive(Clone, Debug)]
struct Run {
    number: u64,
    run: RunId,
    first: u64,
    last: u64,
    ended_at: u64,
    /// It need not be looked at again.
    compacted: bool,
    /// Its events are others than those that were written.
    shorter: bool,
}

#[derive(Debug)]
struct Active {
    run: ActiveRun,
    number: u64,
    ttl: u64,
    expires_at: u64,
    /// The position of its first event.
    first: u64,
    stop: watch::Sender<Option<Stop>>,
}

impl State {
    /// Sees to it that so much more fits in, without removing `keep`.
    fn make_room(
        &mut self,
        limits: &MemoryLimits,
        bytes: u64,
        threads: usize,
        keep: Option<&ThreadKey>,
    ) -> Result<()> {
        loop {
            let what = if self.threads.len() + threads > limits.threads {
                format!("it may hold {} threads", limits.threads)
            } else if self.bytes.saturating_add(bytes) > limits.bytes {
                format!("it may hold {} bytes", limits.bytes)
            } else {
                return Ok(());
            };
            let full = JournalError::Full { what, source: None };
            if limits.overflow == Overflow::Refuse {
                return Err(full);
            }
            let idle = self.threads.iter().filter(|(_, thread)| thread.active.is_none());
            let idle = idle.filter(|(key, _)| Some(*key) != keep);
            let oldest = idle.min_by(|(_, a), (_, b)| order(&a.info).cmp(&order(&b.info)));
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return Err(full) };
            tracing::warn!(thread = %key.thread, reason = %full, "an idle thread was removed");
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &ThreadKey) {
        if let Some(thread) = self.threads.remove(key) {
            self.bytes -= thread.info.bytes;
            self.floor = self.floor.max(thread.info.head);
        }
    }
}

impl Thread {
    fn new(info: ThreadInfo, floor: u64) -> Self {
        Self {
            info,
            entries: Vec::new(),
            runs: Vec::new(),
            fold: Fold::new(),
            facts: Facts::default(),
            active: None,
            generation: 0,
            floor,
            head: watch::Sender::new(0),
        }
    }

    fn next_position(&self) -> u64 {
        self.info.head.max(self.floor) + 1
    }

    /// Numbers and shows what the active run has accepted.
    fn write(&mut self, events: Vec<Encoded>, total: &mut u64) {
        let Some(active) = &self.active else { return };
        let run = active.run.run().clone();
        let mut bytes = 0;
        for (position, Encoded { kind, json }) in (self.next_position()..).zip(events) {
            bytes += json.len() as u64;
            self.info.head = position;
            self.entries.push(Entry::new(position, kind, run.clone(), json));
        }
        self.info.bytes += bytes;
        *total += bytes;
    }

    /// The active run has ended with the last event.
    fn ended(&mut self, ending: Ending, now: u64) {
        let Some(active) = self.active.take() else { return };
        active.stop.send_replace(Some(Stop::LeaseLost));
        self.facts = self.fold.facts();
        self.info.open_interrupts = self.facts.open_interrupts.len();
        self.info.pending_tool_calls = self.facts.pending_tool_calls.len();
        self.info.finished_runs += 1;
        self.info.updated_at = now;
        self.info.last_run.ended_at = Some(now);
        self.info.last_run.ending = Some(ending);
        self.runs.push(Run {
            number: active.number,
            run: active.run.run().clone(),
            first: active.first,
            last: self.info.head,
            ended_at: now,
            compacted: false,
            shorter: false,
        });
    }

    /// Ends the active run on behalf of whoever ran it.
    fn abandon(
        &mut self,
        key: &ThreadKey,
        why: Abandoned,
        now: u64,
        total: &mut u64,
    ) -> Option<EndedRun> {
        let active = self.active.as_mut()?;
        let run = active.run.run().clone();
        let mut out = Vec::new();
        let ending = active.run.end(why, &mut self.fold, &mut out);
        self.write(out, total);
        self.ended(ending, now);
        self.show();
        Some(EndedRun::new(key.clone(), run, ending, self.info.head))
    }

    /// Tells viewers about what was written.
    fn show(&self) {
        self.head.send_if_modified(|head| {
            let newer = *head != self.info.head;
            *head = self.info.head;
            newer
        });
    }

    fn read(&self, from: Cursor, limit: ReadLimit) -> Result<Page> {
        self.check(from)?;
        let start = self.entries.partition_point(|entry| entry.position <= from.position());
        let mut room = Room::new(limit);
        let entries = self.entries[start..].iter().take_while(|it| room.takes(it.json.len()));
        let entries: Vec<Entry> = entries.cloned().collect();
        let last = entries.last().map_or(from.position(), |entry| entry.position);
        let running = self.active.as_ref().map(|active| active.run.run().clone());
        let next = Cursor::within(last, self.generation);
        Ok(Page::new(entries, next, self.info.head, running))
    }

    /// Whether there is a place behind a cursor.
    fn check(&self, from: Cursor) -> Result<()> {
        let position = from.position();
        let first = self.entries.first().map_or(0, |entry| entry.position);
        let head = self.info.head;
        let at = self.runs.partition_point(|run| run.last < position);
        let inside = self.runs.get(at).filter(|run| run.first <= position && position < run.last);
        let moved = inside.is_some_and(|run| run.shorter)
            && from.generation().is_none_or(|generation| generation != self.generation);
        let outside = position != 0 && (position < first || position > head);
        if moved || outside {
            return Err(JournalError::PositionUnknown { position, first, head });
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let running = self.active.as_ref().map(|active| active.run.run().clone());
        self.fold.snapshot(self.info.head, running)
    }
}

/// The thread of a lease that is still good.
fn leased<'a>(
    threads: &'a mut HashMap<ThreadKey, Thread>,
    lease: &Lease,
) -> Result<&'a mut Thread> {
    let thread = threads.get_mut(lease.thread()).ok_or_else(|| lost(lease))?;
    let number = thread.active.as_ref().map(|active| active.number);
    if number == Some(lease.number()) { Ok(thread) } else { Err(lost(lease)) }
}

/// What threads are listed by, the greatest first.
fn order(info: &ThreadInfo) -> (u64, &str) {
    (info.updated_at, info.thread.as_str())
}

/// Where the events between two positions are, both included.
fn range(entries: &[Entry], first: u64, last: u64) -> std::ops::Range<usize> {
    let start = entries.partition_point(|entry| entry.position < first);
    let end = entries.partition_point(|entry| entry.position <= last);
    start..end
}

fn size(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.json.len() as u64).sum()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn lost(lease: &Lease) -> JournalError {
    JournalError::LeaseLost { run: lease.run().clone() }
}
