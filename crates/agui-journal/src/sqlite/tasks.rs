//! What the one who writes is asked for.

use agui_stream::Ending;
use agui_types::{RunId, ToJson};
use rusqlite::{OptionalExtension, params};

use super::chunk::Chunk;
use super::fault::{Failure, Kind};
use super::rows::{self, ActiveRow, ThreadRow, signed, unsigned};
use super::writer::{Effect, LeaseTimes, Running, Writer};
use crate::Cursor;
use crate::entry::{Encoded, Entry, ReadLimit};
use crate::error::JournalError;
use crate::implement::{Abandoned, ActiveRun, Batch, Fold, place};
use crate::journal::Result;
use crate::retention::Compacted;
use crate::run::{Begun, BusyPolicy, EndedRun, Lease, NewRun, RunInfo, StopOutcome};
use crate::thread::{Tenant, ThreadInfo, ThreadKey};

/// How much a run has at most that stands in no chunk. Of each run that goes on this is in memory.
const UNPACKED: ReadLimit = ReadLimit { events: 256, bytes: 32 * 1024 };

impl Writer {
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
        self.last_run += 1;
        let number = self.last_run;
        let is_new = row.is_none();
        let (mut thread, mut fold) = match row {
            Some(thread) => {
                let (fold, _) = rows::fold(&self.connection, &thread)?;
                self.change(
                    "UPDATE threads SET runs = runs + 1, updated_at = ?2, last_run = ?3 \
                     WHERE id = ?1",
                    params![thread.id, signed(now), signed(number)],
                )?;
                (thread, fold)
            }
            None => (self.new_thread(&key, owner.as_deref(), now, number)?, Fold::new()),
        };
        let run = ActiveRun::begin(input, &mut fold);
        let kept = run.input().map(ToJson::to_json);
        let first = thread.next_position();
        let id = run.run().clone();
        self.change(
            "INSERT INTO runs (number, thread, run, agent, began_at, first, input) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                signed(number),
                thread.id,
                id.as_str(),
                agent,
                signed(now),
                signed(first),
                kept
            ],
        )?;
        thread.active = Some(ActiveRow { number, run: id.clone(), first });

        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.leases.insert(number, LeaseTimes { ttl, expires_at: now.saturating_add(ttl) });
        self.live.lease(number);
        let (head, generation) = (thread.head, thread.generation);
        let lease = Lease::new(key.clone(), id.clone(), number);
        let begun = Effect::Begun { key: key.clone(), run: id.clone(), number, head, generation };
        self.effects.push(begun);
        let info = if is_new {
            let mut info = ThreadInfo::new(key.thread.clone(), owner, RunInfo::new(id, agent, now));
            info.runs = 1;
            info
        } else {
            rows::info(&self.connection, &key, None)?
        };
        self.remember(number, Running { thread, key, fold, run, chunk: Chunk::default() });
        Ok(Begun::new(lease, Cursor::after(head), info, ended))
    }

    /// A thread that begins with this run.
    fn new_thread(
        &mut self,
        key: &ThreadKey,
        owner: Option<&str>,
        now: u64,
        run: u64,
    ) -> Result<ThreadRow> {
        let sql = "SELECT position FROM floor";
        let floor = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        self.change(
            "INSERT INTO threads (tenant, thread, owner, created_at, updated_at, runs, last_run, \
             floor) VALUES (?1, ?2, ?3, ?4, ?4, 1, ?5, ?6)",
            params![
                key.tenant.as_str(),
                key.thread.as_str(),
                owner,
                signed(now),
                signed(run),
                floor
            ],
        )?;
        Ok(ThreadRow::new(self.connection.last_insert_rowid(), unsigned(floor)))
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

    /// Puts what was accepted into the log, and ends the run.
    ///
    /// As long as it is little it goes into the row of the group, with what other runs have. Once it
    /// is enough, or the run has ended, all of it is packed.
    fn record(
        &mut self,
        running: &mut Running,
        events: Vec<Encoded>,
        ending: Option<Ending>,
    ) -> Result<()> {
        let Running { thread, key, chunk, .. } = running;
        let Some(active) = thread.active.clone() else { return Ok(()) };
        let (number, ended) = (active.number, ending.is_some());
        if events.is_empty() && !ended {
            return Ok(());
        }
        let bytes: usize = events.iter().map(|event| event.json.len()).sum();
        let packed = ended
            || chunk.events() + events.len() > UNPACKED.events
            || chunk.blob().len() + bytes > UNPACKED.bytes;
        let (first, start) = (thread.next_position(), chunk.blob().len());
        let mut entries = Vec::with_capacity(events.len());
        for (position, Encoded { kind, json }) in (first..).zip(events) {
            if packed && !chunk.takes(position, json.len()) {
                chunk.insert(self.changing()?, thread.id, number)?;
            }
            chunk.push(position, kind, &json);
            thread.head = position;
            thread.bytes += json.len() as u64;
            entries.push(Entry::new(position, kind, active.run.clone(), json));
        }
        if packed {
            chunk.insert(self.changing()?, thread.id, number)?;
        } else {
            self.recent.add(number, first, &chunk.blob()[start..]);
        }
        let key = key.clone();
        match ending {
            Some(ending) => self.record_end(running, number, ending)?,
            None if packed => {
                rows::set_head(self.changing()?, thread.id, thread.head, thread.bytes)?;
            }
            None => {}
        }
        self.effects.push(Effect::Written { key, run: number, entries, packed, ended });
        if ended {
            self.effects.push(Effect::Lost { number });
        }
        Ok(())
    }

    fn record_end(&mut self, running: &Running, number: u64, ending: Ending) -> Result<()> {
        let now = self.clock.now();
        let (thread, fold) = (&running.thread, &running.fold);
        let head = signed(thread.head);
        self.change(
            "UPDATE runs SET ended_at = ?2, ending = ?3, last = ?4, input = NULL WHERE number = ?1",
            params![signed(number), signed(now), ending.as_str(), head],
        )?;

        let facts = fold.facts();
        let unwritable = |error| Failure::new(Kind::Storage, format!("cannot be written: {error}"));
        let messages: Vec<_> = fold.conversation().messages().iter().collect();
        let messages = serde_json::to_string(&messages).map_err(unwritable)?;
        let interrupts = serde_json::to_string(&facts.open_interrupts).map_err(unwritable)?;
        let calls = serde_json::to_string(&facts.pending_tool_calls).map_err(unwritable)?;
        let state = fold.state();
        self.change(
            "INSERT INTO folded (thread, messages, state, interrupts, calls) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (thread) DO UPDATE SET \
             messages = ?2, state = ?3, interrupts = ?4, calls = ?5",
            params![thread.id, messages, state.as_str(), interrupts, calls],
        )?;

        let (open, pending) = (facts.open_interrupts.len(), facts.pending_tool_calls.len());
        self.change(
            "UPDATE threads SET head = ?2, bytes = ?3, finished_runs = finished_runs + 1, \
             updated_at = ?4, open_interrupts = ?5, pending_calls = ?6 WHERE id = ?1",
            params![thread.id, head, signed(thread.bytes), signed(now), open, pending],
        )?;
        Ok(())
    }

    /// Removes rows of `recent` that nobody needs, and packs what holds that up.
    pub(super) fn tidy(&mut self) -> Result<()> {
        let Some(round) = self.recent.round() else { return Ok(()) };
        let late = self.recent.late(round);
        if late.is_empty() {
            self.change("DELETE FROM recent WHERE number <= ?1", [round])?;
            self.recent.end_round();
        }
        for number in late {
            if !self.pack(number)? {
                // It ends with this group, and so needs nothing once that is committed.
                self.effects.push(Effect::Lost { number });
            }
        }
        Ok(())
    }

    /// Packs what a run has in the rows of groups, so that those are not needed for it any more;
    /// whether it is going on.
    fn pack(&mut self, number: u64) -> Result<bool> {
        let Some(key) = self.key_of(number)? else { return Ok(false) };
        let Some(mut running) = self.running(&key, number)? else { return Ok(false) };
        let Running { thread, chunk, .. } = &mut running;
        chunk.insert(self.changing()?, thread.id, number)?;
        rows::set_head(self.changing()?, thread.id, thread.head, thread.bytes)?;
        let (entries, packed, ended) = (Vec::new(), true, false);
        self.effects.push(Effect::Written { key, run: number, entries, packed, ended });
        self.remember(number, running);
        Ok(true)
    }

    /// Ends a run on behalf of whoever ran it.
    pub(super) fn abandon(
        &mut self,
        key: &ThreadKey,
        number: u64,
        why: Abandoned,
    ) -> Result<EndedRun> {
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
        let Some(mut thread) = self.row(key)? else { return Ok(None) };
        if thread.active.as_ref().is_none_or(|active| active.number != number) {
            return Ok(None);
        }
        let (fold, run) = rows::fold(&self.connection, &thread)?;
        let mut chunk = Chunk::default();
        for entry in std::mem::take(&mut thread.unpacked) {
            chunk.push(entry.position, entry.kind, &entry.json);
        }
        Ok(run.map(|run| Running { thread, key: key.clone(), fold, run, chunk }))
    }

    /// A thread's row, with everything that the tasks before this one have written.
    fn row(&self, key: &ThreadKey) -> Result<Option<ThreadRow>> {
        let Some(mut row) = rows::thread_row(&self.connection, key)? else { return Ok(None) };
        if row.active.is_some() {
            if let Some((run, entries)) = self.live.unpacked(key) {
                row.add(run, entries);
            }
            for effect in &self.effects {
                if let Effect::Written { key: written, run, entries, .. } = effect
                    && written == key
                {
                    row.add(*run, entries.iter().cloned());
                }
            }
        }
        Ok(Some(row))
    }

    fn remember(&mut self, number: u64, running: Running) {
        self.touched.push(number);
        self.runs.insert(number, running);
    }

    /// Whether a run that is going on has nobody who may write it: one that another process has left
    /// and that could not be ended has no lease at all.
    fn has_lapsed(&self, number: u64, now: u64) -> bool {
        self.leases.get(&number).is_none_or(|lease| lease.expires_at <= now)
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
        let number = active.number;
        let asks = |effect: &Effect| matches!(effect, Effect::Stop { number: it } if *it == number);
        if self.live.is_asked_to_stop(number) || self.effects.iter().any(asks) {
            return Ok(StopOutcome::AlreadyRequested);
        }
        self.effects.push(Effect::Stop { number });
        Ok(StopOutcome::Requested)
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
        let named = self.effects.iter().any(|effect| matches!(effect, Effect::Named));
        let mut ended = if named { Vec::new() } else { self.ended_before.clone() };
        for key in lapsed {
            let row = rows::thread_row(&self.connection, &key)?;
            let active = row.and_then(|row| row.active);
            if let Some(active) = active.filter(|active| self.has_lapsed(active.number, now)) {
                ended.push(self.abandon(&key, active.number, Abandoned::LeaseLapsed)?);
            }
        }
        self.effects.push(Effect::Named);
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
        Ok(statement.query_row([signed(number)], rows::key).optional()?)
    }

    pub(super) fn rename(&mut self, key: &ThreadKey, name: Option<&str>) -> Result<ThreadInfo> {
        self.change(
            "UPDATE threads SET name = ?3 WHERE tenant = ?1 AND thread = ?2",
            params![key.tenant.as_str(), key.thread.as_str(), name],
        )?;
        self.info(key)
    }

    pub(super) fn archive(&mut self, key: &ThreadKey, archived: bool) -> Result<ThreadInfo> {
        self.change(
            "UPDATE threads SET archived = ?3 WHERE tenant = ?1 AND thread = ?2",
            params![key.tenant.as_str(), key.thread.as_str(), archived],
        )?;
        self.info(key)
    }

    fn info(&self, key: &ThreadKey) -> Result<ThreadInfo> {
        let mut info = rows::info(&self.connection, key, None)?;
        if let Some(row) = self.row(key)? {
            (info.head, info.bytes) = (row.head, row.bytes);
        }
        Ok(info)
    }

    pub(super) fn delete(&mut self, key: &ThreadKey) -> Result<()> {
        let row = self.row(key)?.ok_or(JournalError::ThreadNotFound)?;
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
            "DELETE FROM chunks WHERE thread = ?1",
            "DELETE FROM runs WHERE thread = ?1",
            "DELETE FROM folded WHERE thread = ?1",
            "DELETE FROM threads WHERE id = ?1",
        ] {
            self.change(sql, [row.id])?;
        }
        let sql = "UPDATE floor SET position = max(position, ?1)";
        self.change(sql, [signed(row.head)])?;
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
        self.change(sql, params![signed(number), shorter])?;
        let Some(events) = events else { return Ok(done) };

        let (mut count, mut before) = (0, 0);
        rows::chunks(&self.connection, thread, first, last, |chunk| {
            for framed in chunk.events() {
                count += 1;
                before += framed?.json.len() as u64;
            }
            Ok(true)
        })?;
        // No chunk has events of two runs.
        let sql = "DELETE FROM chunks WHERE thread = ?1 AND last BETWEEN ?2 AND ?3";
        self.change(sql, params![thread, signed(first), signed(last)])?;
        let entries = place(events, &run, first, last);
        let (mut chunk, mut after) = (Chunk::default(), 0);
        for Entry { position, kind, json, .. } in &entries {
            if !chunk.takes(*position, json.len()) {
                chunk.insert(self.changing()?, thread, number)?;
            }
            chunk.push(*position, *kind, json);
            after += json.len() as u64;
        }
        chunk.insert(self.changing()?, thread, number)?;
        let sql = "UPDATE threads SET bytes = bytes + ?2 - ?3, generation = generation + 1 \
                   WHERE id = ?1";
        self.change(sql, params![thread, signed(after), signed(before)])?;
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
