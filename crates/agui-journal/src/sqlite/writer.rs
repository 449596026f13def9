//! The one who writes: a thread with the only connection that does, and everything that has to be
//! decided in order.

use std::collections::HashMap;
use std::sync::Arc;

use agui_stream::Ending;
use agui_types::{RunId, ToJson};
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot};

use super::fault::{Failure, Kind};
use super::live::Live;
use super::rows::{self, ActiveRow, ThreadRow, signed, unsigned};
use crate::clock::Clock;
use crate::entry::{Encoded, Entry};
use crate::error::JournalError;
use crate::implement::{Abandoned, ActiveRun, Batch, Fold, place};
use crate::journal::Result;
use crate::retention::Compacted;
use crate::run::{Begun, BusyPolicy, EndedRun, Lease, NewRun, StopOutcome};
use crate::thread::{Tenant, ThreadInfo, ThreadKey};

/// A piece of work for the writer. It gets the writer, or the reason why there is none, and gives
/// back how its caller is answered once everything is committed, or was not.
pub(super) type Task = Box<dyn FnOnce(std::result::Result<&mut Writer, Failure>) -> Reply + Send>;

/// Answers the caller; with the reason where nothing was committed.
pub(super) struct Reply {
    /// The storage failed in the middle of the task: what it has done is to be taken back.
    undo: Option<Failure>,
    answer: Box<dyn FnOnce(Option<Failure>) + Send>,
}

/// Wraps work whose answer is awaited.
pub(super) fn task<T: Send + 'static>(
    work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
) -> (Task, oneshot::Receiver<Result<T>>) {
    let (sender, receiver) = oneshot::channel();
    let task: Task = Box::new(move |writer| {
        let done = match writer {
            Ok(writer) => work(writer),
            Err(failure) => Err(failure.into()),
        };
        let undo = done.as_ref().err().and_then(Failure::of);
        let answer = Box::new(move |failed: Option<Failure>| {
            // Nobody may be waiting any more; what was done is done all the same.
            let _ = sender.send(match (done, failed) {
                (_, Some(failure)) => Err(failure.into()),
                (done, None) => done,
            });
        });
        Reply { undo, answer }
    });
    (task, receiver)
}

/// How many tasks are committed together at most.
const GROUP: usize = 256;

pub(super) struct Writer {
    connection: Connection,
    clock: Clock,
    live: Arc<Live>,
    /// The leases that were given and not lost, by the number of the run.
    leases: HashMap<u64, LeaseTimes>,
    /// The runs that are going on, as the log leaves them. What is missing is read again.
    runs: HashMap<u64, Running>,
    /// What others are told once it is committed.
    effects: Vec<Effect>,
    /// The runs that the task at hand has touched.
    touched: Vec<u64>,
    /// Runs that were ended when the file was opened and that nobody was told about.
    ended_before: Vec<EndedRun>,
    /// Nobody may ask for anything any more.
    closing: bool,
}

struct LeaseTimes {
    ttl: u64,
    expires_at: u64,
}

struct Running {
    thread: ThreadRow,
    key: ThreadKey,
    fold: Fold,
    run: ActiveRun,
}

enum Effect {
    Begun { key: ThreadKey, run: RunId, number: u64, head: u64, generation: u64 },
    Written { key: ThreadKey, entries: Vec<Entry>, ended: bool },
    Lost { number: u64 },
    Gone { key: ThreadKey },
}

impl Writer {
    pub(super) fn new(connection: Connection, clock: Clock, live: Arc<Live>) -> Self {
        Self {
            connection,
            clock,
            live,
            leases: HashMap::new(),
            runs: HashMap::new(),
            effects: Vec::new(),
            touched: Vec::new(),
            ended_before: Vec::new(),
            closing: false,
        }
    }

    /// Works until nobody can ask for anything any more.
    pub(super) fn work(mut self, mut tasks: mpsc::Receiver<Task>) {
        let mut group = Vec::with_capacity(GROUP);
        while let Some(first) = tasks.blocking_recv() {
            group.push(first);
            while group.len() < GROUP
                && let Ok(next) = tasks.try_recv()
            {
                group.push(next);
            }
            self.commit(group.drain(..));
            if self.closing {
                // What was asked for before is still done.
                tasks.close();
            }
        }
        // Readers may keep their connections: without this, what came last would stay in the file
        // beside it.
        let tidied = "PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE)";
        if let Err(error) = self.connection.execute_batch(tidied) {
            tracing::warn!(%error, "the journal was closed without being written into one file");
        }
    }

    /// Does the work of a group in one transaction, then answers everybody.
    fn commit(&mut self, group: impl Iterator<Item = Task>) {
        if let Err(failure) = self.control("BEGIN IMMEDIATE") {
            for task in group {
                (task(Err(failure.clone())).answer)(None);
            }
            return;
        }
        let mut replies = Vec::new();
        let mut failed = None;
        for task in group {
            if let Some(failure) = &failed {
                let failure: &Failure = failure;
                replies.push(task(Err(failure.clone())));
                continue;
            }
            match self.attempt(task) {
                Ok(reply) => replies.push(reply),
                Err((reply, failure)) => {
                    replies.push(reply);
                    failed = Some(failure);
                }
            }
        }
        if failed.is_none() {
            failed = self.control("COMMIT").err();
        }
        match &failed {
            None => {
                for effect in std::mem::take(&mut self.effects) {
                    self.tell(effect);
                }
            }
            Some(failure) => {
                tracing::error!(%failure, "the journal could not be written");
                if !self.connection.is_autocommit() {
                    let _ = self.control("ROLLBACK");
                }
                self.take_back(0);
                // What is remembered of any run may be ahead of the log.
                self.runs.clear();
            }
        }
        for reply in replies {
            (reply.answer)(failed.clone());
        }
    }

    /// Does the work of one task, and takes it back where the storage failed in the middle. Fails
    /// where that took the whole transaction with it.
    fn attempt(&mut self, task: Task) -> std::result::Result<Reply, (Reply, Failure)> {
        let told = self.effects.len();
        self.touched.clear();
        if let Err(failure) = self.control("SAVEPOINT task") {
            return Err((task(Err(failure.clone())), failure));
        }
        let reply = task(Ok(self));
        if let Some(failure) = &reply.undo {
            if self.connection.is_autocommit() {
                // It took everything before it along.
                let failure = failure.clone();
                return Err((reply, failure));
            }
            self.take_back(told);
            for number in std::mem::take(&mut self.touched) {
                self.runs.remove(&number);
            }
            if let Err(failure) = self.control("ROLLBACK TO task") {
                return Err((reply, failure));
            }
        }
        match self.control("RELEASE task") {
            Ok(()) => Ok(reply),
            Err(failure) => Err((reply, failure)),
        }
    }

    /// A step of a transaction, of those that come with every task: prepared once.
    fn control(&self, sql: &'static str) -> std::result::Result<(), Failure> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Forgets what was to be told, and the leases that were given meanwhile.
    fn take_back(&mut self, from: usize) {
        for effect in self.effects.split_off(from) {
            if let Effect::Begun { number, .. } = effect {
                self.leases.remove(&number);
                self.live.lost(number);
            }
        }
    }

    fn tell(&mut self, effect: Effect) {
        match effect {
            Effect::Begun { key, run, head, generation, .. } => {
                self.live.begun(&key, run, head, generation);
            }
            Effect::Written { key, entries, ended } => self.live.written(&key, entries, ended),
            Effect::Lost { number } => {
                self.leases.remove(&number);
                self.live.lost(number);
            }
            Effect::Gone { key } => self.live.gone(&key),
        }
    }

    /// Does what was asked for, and then nothing more.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// The time now.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Ends the runs that an earlier process has left: their leases died with it.
    pub(super) fn end_abandoned(&mut self) -> std::result::Result<(), Failure> {
        self.control("BEGIN IMMEDIATE")?;
        let mut keys = Vec::new();
        {
            let mut statement = self.connection.prepare_cached(
                "SELECT t.tenant, t.thread FROM runs r JOIN threads t ON t.id = r.thread \
                 WHERE r.ended_at IS NULL ORDER BY t.tenant, t.thread",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                keys.push(ThreadKey::new(
                    Tenant::new(row.get::<_, String>(0)?),
                    row.get::<_, String>(1)?,
                ));
            }
        }
        let mut ended = Vec::new();
        for key in keys {
            let row = rows::thread_row(&self.connection, &key)?;
            if let Some(active) = row.and_then(|row| row.active) {
                let abandoned = self.abandon(&key, active.number, Abandoned::LeaseLapsed);
                ended.push(abandoned.map_err(|error| Failure::new(Kind::Storage, error))?);
            }
        }
        self.control("COMMIT")?;
        self.effects.clear();
        self.ended_before = ended;
        Ok(())
    }

    pub(super) fn begin(&mut self, run: NewRun) -> Result<Begun> {
        let (now, key) = (self.clock.now(), run.thread());
        let mut ended = None;
        let mut row = rows::thread_row(&self.connection, &key)?;
        if let Some(ActiveRow { number, run: active, .. }) =
            row.as_ref().and_then(|row| row.active.clone())
        {
            let why = match run.busy {
                _ if self.has_lapsed(number, now) => Abandoned::LeaseLapsed,
                BusyPolicy::Supersede => Abandoned::Superseded,
                BusyPolicy::Refuse => return Err(JournalError::ThreadBusy { run: active }),
            };
            ended = Some(self.abandon(&key, number, why)?);
            row = rows::thread_row(&self.connection, &key)?;
        }
        let NewRun { agent, owner, input, lease: ttl, .. } = run;
        let mut thread = match row {
            Some(row) => row,
            None => self.new_thread(&key, owner.as_deref(), now)?,
        };
        let (mut fold, _) = rows::fold(&self.connection, &thread)?;
        let run = ActiveRun::begin(input, &mut fold);
        let kept = run.input().map(ToJson::to_json);
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO runs (thread, run, agent, began_at, first, input) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let first = thread.next_position();
        let id = run.run().clone();
        statement.execute(params![
            thread.id,
            id.as_str(),
            agent,
            signed(now),
            signed(first),
            kept
        ])?;
        drop(statement);
        let number = unsigned(self.connection.last_insert_rowid());
        let mut statement = self.connection.prepare_cached(
            "UPDATE threads SET runs = runs + 1, updated_at = ?2, last_run = ?3 WHERE id = ?1",
        )?;
        statement.execute(params![thread.id, signed(now), signed(number)])?;
        drop(statement);
        thread.active = Some(ActiveRow { number, run: id.clone(), first });

        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.leases.insert(number, LeaseTimes { ttl, expires_at: now.saturating_add(ttl) });
        self.live.lease(number);
        let (head, generation) = (thread.head, thread.generation);
        let lease = Lease::new(key.clone(), id.clone(), number);
        self.effects.push(Effect::Begun { key: key.clone(), run: id, number, head, generation });
        let info = rows::info(&self.connection, &key)?;
        self.remember(number, Running { thread, key, fold, run });
        Ok(Begun::new(lease, crate::Cursor::after(head), info, ended))
    }

    fn new_thread(&mut self, key: &ThreadKey, owner: Option<&str>, now: u64) -> Result<ThreadRow> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO threads (tenant, thread, owner, created_at, updated_at, floor) \
             SELECT ?1, ?2, ?3, ?4, ?4, position FROM floor",
        )?;
        let (tenant, thread) = (key.tenant.as_str(), key.thread.as_str());
        statement.execute(params![tenant, thread, owner, signed(now)])?;
        rows::thread_row(&self.connection, key)?.ok_or(JournalError::ThreadNotFound)
    }

    /// Appends to a run; ends it where `ends` says so.
    pub(super) fn write(&mut self, lease: &Lease, batch: Batch, ends: bool) -> Result<u64> {
        let now = self.clock.now();
        let number = lease.number();
        let mut running = self.running(lease.thread(), number)?.ok_or_else(|| lost(lease))?;
        if let Some(times) = self.leases.get_mut(&number) {
            times.expires_at = now.saturating_add(times.ttl);
        }
        let mut out = Vec::with_capacity(batch.len() + 2);
        let accepted = if ends {
            running.run.finish(batch, &mut running.fold, &mut out).map(Some)
        } else {
            running.run.append(batch, &mut running.fold, &mut out).map(|()| None)
        };
        let ending = accepted.as_ref().ok().copied().flatten();
        let written = self.record(&mut running, out, ending);
        let head = running.thread.head;
        if written.is_ok() && ending.is_none() {
            self.remember(number, running);
        }
        written?;
        accepted.map(|_| head)
    }

    /// Puts what was accepted into the tables, and ends the run.
    fn record(
        &mut self,
        running: &mut Running,
        events: Vec<Encoded>,
        ending: Option<Ending>,
    ) -> Result<()> {
        let thread = &mut running.thread;
        let Some(active) = thread.active.clone() else { return Ok(()) };
        let mut entries = Vec::with_capacity(events.len());
        if !events.is_empty() {
            let mut statement = self.connection.prepare_cached(
                "INSERT INTO events (thread, position, run, kind, json) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (position, Encoded { kind, json }) in (thread.next_position()..).zip(events) {
                let number = signed(active.number);
                let kind_number = rows::write_kind(kind);
                statement.execute(params![
                    thread.id,
                    signed(position),
                    number,
                    kind_number,
                    &*json
                ])?;
                thread.head = position;
                thread.bytes += json.len() as u64;
                entries.push(Entry::new(position, kind, active.run.clone(), json));
            }
            let mut statement = self
                .connection
                .prepare_cached("UPDATE threads SET head = ?2, bytes = ?3 WHERE id = ?1")?;
            statement.execute(params![thread.id, signed(thread.head), signed(thread.bytes)])?;
        }
        if let Some(ending) = ending {
            self.record_end(running, active.number, ending)?;
        }
        let ended = ending.is_some();
        if ended || !entries.is_empty() {
            let key = running.key.clone();
            self.effects.push(Effect::Written { key, entries, ended });
        }
        Ok(())
    }

    fn record_end(&mut self, running: &Running, number: u64, ending: Ending) -> Result<()> {
        let now = self.clock.now();
        let (thread, fold) = (&running.thread, &running.fold);
        let mut statement = self.connection.prepare_cached(
            "UPDATE runs SET ended_at = ?2, ending = ?3, last = ?4, input = NULL WHERE number = ?1",
        )?;
        let (number_column, head) = (signed(number), signed(thread.head));
        statement.execute(params![number_column, signed(now), ending.as_str(), head])?;
        drop(statement);

        let facts = fold.facts();
        let unwritable = |error| Failure::new(Kind::Storage, format!("cannot be written: {error}"));
        let messages: Vec<_> = fold.conversation().messages().iter().collect();
        let messages = serde_json::to_string(&messages).map_err(unwritable)?;
        let interrupts = serde_json::to_string(&facts.open_interrupts).map_err(unwritable)?;
        let calls = serde_json::to_string(&facts.pending_tool_calls).map_err(unwritable)?;
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO folded (thread, messages, state, interrupts, calls) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (thread) DO UPDATE SET \
             messages = ?2, state = ?3, interrupts = ?4, calls = ?5",
        )?;
        let state = fold.state();
        statement.execute(params![thread.id, messages, state.as_str(), interrupts, calls])?;
        drop(statement);

        let mut statement = self.connection.prepare_cached(
            "UPDATE threads SET finished_runs = finished_runs + 1, updated_at = ?2, \
             open_interrupts = ?3, pending_calls = ?4 WHERE id = ?1",
        )?;
        let (open, pending) = (facts.open_interrupts.len(), facts.pending_tool_calls.len());
        statement.execute(params![thread.id, signed(now), open, pending])?;
        drop(statement);
        self.effects.push(Effect::Lost { number });
        Ok(())
    }

    /// Ends a run on behalf of whoever ran it.
    fn abandon(&mut self, key: &ThreadKey, number: u64, why: Abandoned) -> Result<EndedRun> {
        let running = self.running(key, number)?.ok_or(JournalError::ThreadNotFound);
        let mut running = running?;
        let mut out = Vec::new();
        let ending = running.run.end(why, &mut running.fold, &mut out);
        self.record(&mut running, out, Some(ending))?;
        let run = running.run.run().clone();
        Ok(EndedRun::new(key.clone(), run, ending, running.thread.head))
    }

    /// Takes the run that is going on out of what is remembered, or reads it. `None` where another
    /// one is going on, or none.
    fn running(&mut self, key: &ThreadKey, number: u64) -> Result<Option<Running>> {
        self.touched.push(number);
        if let Some(running) = self.runs.remove(&number) {
            return Ok(Some(running));
        }
        let Some(thread) = rows::thread_row(&self.connection, key)? else { return Ok(None) };
        if thread.active.as_ref().is_none_or(|active| active.number != number) {
            return Ok(None);
        }
        let (fold, run) = rows::fold(&self.connection, &thread)?;
        Ok(run.map(|run| Running { thread, key: key.clone(), fold, run }))
    }

    fn remember(&mut self, number: u64, running: Running) {
        self.touched.push(number);
        self.runs.insert(number, running);
    }

    fn has_lapsed(&self, number: u64, now: u64) -> bool {
        self.leases.get(&number).is_some_and(|lease| lease.expires_at <= now)
    }

    pub(super) fn renew(&mut self, lease: &Lease) -> Result<()> {
        let now = self.clock.now();
        let times = self.times(lease)?;
        times.expires_at = now.saturating_add(times.ttl);
        Ok(())
    }

    pub(super) fn release(&mut self, lease: &Lease) -> Result<()> {
        self.times(lease)?.expires_at = 0;
        Ok(())
    }

    /// How long a lease is good that is not lost.
    fn times(&mut self, lease: &Lease) -> Result<&mut LeaseTimes> {
        let row = rows::thread_row(&self.connection, lease.thread())?;
        let active = row.and_then(|row| row.active).map(|active| active.number);
        let times = self.leases.get_mut(&lease.number());
        times.filter(|_| active == Some(lease.number())).ok_or_else(|| lost(lease))
    }

    pub(super) fn request_stop(
        &mut self,
        key: &ThreadKey,
        run: Option<&RunId>,
    ) -> Result<StopOutcome> {
        let row = rows::thread_row(&self.connection, key)?;
        let Some(active) = row.and_then(|row| row.active) else {
            return Ok(StopOutcome::NotRunning);
        };
        if run.is_some_and(|run| *run != active.run) {
            return Ok(StopOutcome::NotRunning);
        }
        if self.has_lapsed(active.number, self.clock.now()) {
            self.abandon(key, active.number, Abandoned::LeaseLapsed)?;
            return Ok(StopOutcome::NotRunning);
        }
        let newly = self.live.stop(active.number);
        Ok(if newly { StopOutcome::Requested } else { StopOutcome::AlreadyRequested })
    }

    pub(super) fn recover(&mut self) -> Result<Vec<EndedRun>> {
        let now = self.clock.now();
        let mut lapsed: Vec<ThreadKey> = Vec::new();
        for (number, lease) in &self.leases {
            if lease.expires_at <= now
                && let Some(key) = self.key_of(*number)?
            {
                lapsed.push(key);
            }
        }
        lapsed.sort();
        let mut ended = std::mem::take(&mut self.ended_before);
        for key in lapsed {
            let row = rows::thread_row(&self.connection, &key)?;
            let active = row.and_then(|row| row.active);
            if let Some(active) = active.filter(|active| self.has_lapsed(active.number, now)) {
                ended.push(self.abandon(&key, active.number, Abandoned::LeaseLapsed)?);
            }
        }
        Ok(ended)
    }

    /// The thread of a run.
    fn key_of(&self, number: u64) -> Result<Option<ThreadKey>> {
        if let Some(running) = self.runs.get(&number) {
            return Ok(Some(running.key.clone()));
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT t.tenant, t.thread FROM runs r JOIN threads t ON t.id = r.thread \
             WHERE r.number = ?1",
        )?;
        let mut rows = statement.query([signed(number)])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let tenant = Tenant::new(row.get::<_, String>(0)?);
        Ok(Some(ThreadKey::new(tenant, row.get::<_, String>(1)?)))
    }

    pub(super) fn rename(&mut self, key: &ThreadKey, name: Option<&str>) -> Result<ThreadInfo> {
        let mut statement = self
            .connection
            .prepare_cached("UPDATE threads SET name = ?3 WHERE tenant = ?1 AND thread = ?2")?;
        statement.execute(params![key.tenant.as_str(), key.thread.as_str(), name])?;
        rows::info(&self.connection, key)
    }

    pub(super) fn archive(&mut self, key: &ThreadKey, archived: bool) -> Result<ThreadInfo> {
        let mut statement = self
            .connection
            .prepare_cached("UPDATE threads SET archived = ?3 WHERE tenant = ?1 AND thread = ?2")?;
        statement.execute(params![key.tenant.as_str(), key.thread.as_str(), archived])?;
        rows::info(&self.connection, key)
    }

    pub(super) fn delete(&mut self, key: &ThreadKey) -> Result<()> {
        let row = rows::thread_row(&self.connection, key)?.ok_or(JournalError::ThreadNotFound)?;
        self.remove(key, &row)
    }

    pub(super) fn clear(&mut self, tenant: &Tenant, owner: Option<&str>) -> Result<u64> {
        let mut keys = Vec::new();
        {
            let mut statement = self.connection.prepare_cached(
                "SELECT thread FROM threads WHERE tenant = ?1 AND (?2 IS NULL OR owner = ?2)",
            )?;
            let mut rows = statement.query(params![tenant.as_str(), owner])?;
            while let Some(row) = rows.next()? {
                keys.push(ThreadKey::new(tenant.clone(), row.get::<_, String>(0)?));
            }
        }
        for key in &keys {
            self.delete(key)?;
        }
        Ok(keys.len() as u64)
    }

    /// Removes those of the threads that have no run going on; gives them back.
    pub(super) fn retain(&mut self, keys: Vec<ThreadKey>) -> Result<Vec<ThreadKey>> {
        let mut removed = Vec::new();
        for key in keys {
            let row = rows::thread_row(&self.connection, &key)?;
            if let Some(row) = row.filter(|row| row.active.is_none()) {
                self.remove(&key, &row)?;
                removed.push(key);
            }
        }
        Ok(removed)
    }

    fn remove(&mut self, key: &ThreadKey, row: &ThreadRow) -> Result<()> {
        for sql in [
            "DELETE FROM events WHERE thread = ?1",
            "DELETE FROM runs WHERE thread = ?1",
            "DELETE FROM folded WHERE thread = ?1",
            "DELETE FROM threads WHERE id = ?1",
        ] {
            self.connection.prepare_cached(sql)?.execute([row.id])?;
        }
        let sql = "UPDATE floor SET position = max(position, ?1)";
        self.connection.prepare_cached(sql)?.execute([signed(row.head)])?;
        if let Some(active) = &row.active {
            self.touched.push(active.number);
            self.runs.remove(&active.number);
            self.effects.push(Effect::Lost { number: active.number });
        }
        self.effects.push(Effect::Gone { key: key.clone() });
        Ok(())
    }

    /// Puts a compacted run in the place of what it was made from; `None` where there was nothing to
    /// gain.
    pub(super) fn compacted(
        &mut self,
        number: u64,
        events: Option<Vec<Encoded>>,
    ) -> Result<Compacted> {
        let mut done = Compacted::default();
        let found = {
            let mut statement = self.connection.prepare_cached(
                "SELECT thread, run, first, last FROM runs WHERE number = ?1 AND compacted = 0 \
                 AND last IS NOT NULL",
            )?;
            let mut rows = statement.query([signed(number)])?;
            match rows.next()? {
                None => None,
                Some(row) => {
                    let run = RunId::from(row.get::<_, String>(1)?);
                    let (first, last) = (rows::number_at(row, 2)?, rows::number_at(row, 3)?);
                    Some((row.get::<_, i64>(0)?, run, first, last))
                }
            }
        };
        let Some((thread, run, first, last)) = found else { return Ok(done) };
        done.runs = 1;
        let sql = "UPDATE runs SET compacted = 1, shorter = ?2 WHERE number = ?1";
        let shorter = events.is_some();
        self.connection.prepare_cached(sql)?.execute(params![signed(number), shorter])?;
        let Some(events) = events else { return Ok(done) };

        let range = params![thread, signed(first), signed(last)];
        let (count, before) = {
            let mut statement = self.connection.prepare_cached(
                "SELECT count(*), coalesce(sum(length(json)), 0) FROM events \
                 WHERE thread = ?1 AND position BETWEEN ?2 AND ?3",
            )?;
            statement
                .query_row(range, |row| Ok((rows::number_at(row, 0)?, rows::number_at(row, 1)?)))?
        };
        let sql = "DELETE FROM events WHERE thread = ?1 AND position BETWEEN ?2 AND ?3";
        self.connection.prepare_cached(sql)?.execute(range)?;
        let entries = place(events, &run, first, last);
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO events (thread, position, run, kind, json) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let mut after = 0;
        for entry in &entries {
            let kind = rows::write_kind(entry.kind);
            let position = signed(entry.position);
            statement.execute(params![thread, position, signed(number), kind, &*entry.json])?;
            after += entry.json.len() as u64;
        }
        drop(statement);
        let sql = "UPDATE threads SET bytes = bytes + ?2 - ?3, generation = generation + 1 \
                   WHERE id = ?1";
        let sizes = params![thread, signed(after), signed(before)];
        self.connection.prepare_cached(sql)?.execute(sizes)?;
        // What is remembered of a run of this thread has another size and generation now.
        let stale: Vec<u64> = self
            .runs
            .iter()
            .filter(|(_, running)| running.thread.id == thread)
            .map(|(number, _)| *number)
            .collect();
        for number in stale {
            self.touched.push(number);
            self.runs.remove(&number);
        }
        done.events = count - entries.len() as u64;
        done.bytes = before.saturating_sub(after);
        Ok(done)
    }
}

fn lost(lease: &Lease) -> JournalError {
    JournalError::LeaseLost { run: lease.run().clone() }
}
