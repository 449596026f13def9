//! The one who writes: a thread with the only connection that does, and everything that has to be
//! decided in order.

use std::collections::HashMap;
use std::sync::Arc;

use agui_types::RunId;
use rusqlite::{Connection, Params};
use tokio::sync::{mpsc, oneshot};

use super::chunk::Chunk;
use super::fault::Failure;
use super::live::Live;
use super::recent::{self, Recent};
use super::rows::{self, ThreadRow};
use crate::clock::Clock;
use crate::entry::Entry;
use crate::implement::{Abandoned, ActiveRun, Fold};
use crate::journal::Result;
use crate::run::EndedRun;
use crate::thread::ThreadKey;

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
    /// To read from. What is changed goes through [`Writer::changing`].
    pub(super) connection: Connection,
    pub(super) clock: Clock,
    pub(super) live: Arc<Live>,
    /// The greatest number of a run so far: none is used twice, so that a lease cannot be taken for
    /// another.
    pub(super) last_run: u64,
    /// The leases that were given and not lost, by the number of the run.
    pub(super) leases: HashMap<u64, LeaseTimes>,
    /// The runs that are going on, as the log leaves them. What is missing is read again.
    pub(super) runs: HashMap<u64, Running>,
    /// What others are told once it is committed.
    pub(super) effects: Vec<Effect>,
    /// What the group at hand adds to runs that go on.
    pub(super) recent: Recent,
    /// The runs that the tasks of the group at hand have touched.
    pub(super) touched: Vec<u64>,
    /// Whether the task at hand has changed anything in the database.
    changed: bool,
    /// Whether a task of the group at hand has.
    group_changed: bool,
    /// Runs that were ended when the file was opened and that nobody was told about.
    pub(super) ended_before: Vec<EndedRun>,
    /// Nobody may ask for anything any more.
    closing: bool,
}

/// How much there is before a task.
#[derive(Clone, Copy)]
struct Mark {
    effects: usize,
    recent: usize,
    touched: usize,
}

pub(super) struct LeaseTimes {
    pub(super) ttl: u64,
    pub(super) expires_at: u64,
}

pub(super) struct Running {
    pub(super) thread: ThreadRow,
    pub(super) key: ThreadKey,
    pub(super) fold: Fold,
    pub(super) run: ActiveRun,
    /// Its last events, which stand in no chunk yet.
    pub(super) chunk: Chunk,
}

pub(super) enum Effect {
    Begun {
        key: ThreadKey,
        run: RunId,
        number: u64,
        head: u64,
        generation: u64,
    },
    /// `packed`: all that there is of the run stands in chunks now.
    Written {
        key: ThreadKey,
        run: u64,
        entries: Vec<Entry>,
        packed: bool,
        ended: bool,
    },
    Lost {
        number: u64,
    },
    Gone {
        key: ThreadKey,
    },
    Stop {
        number: u64,
    },
    /// Somebody was told of the runs that were ended when the file was opened.
    Named,
}

impl Writer {
    pub(super) fn new(connection: Connection, clock: Clock, live: Arc<Live>) -> Self {
        Self {
            connection,
            clock,
            live,
            last_run: 0,
            leases: HashMap::new(),
            runs: HashMap::new(),
            effects: Vec::new(),
            recent: Recent::default(),
            touched: Vec::new(),
            changed: false,
            group_changed: false,
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
        self.live.close();
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
        self.group_changed = false;
        let mut replies = Vec::new();
        let mut failed = None;
        for task in group {
            if let Some(failure) = &failed {
                let failure: &Failure = failure;
                replies.push(task(Err(failure.clone())));
                continue;
            }
            match self.attempt(task) {
                Ok(reply) => replies.extend(reply),
                Err((reply, failure)) => {
                    replies.push(reply);
                    failed = Some(failure);
                }
            }
        }
        if failed.is_none() {
            failed = self.complete().err();
        }
        match &failed {
            None => {
                for effect in std::mem::take(&mut self.effects) {
                    self.tell(effect);
                }
                self.touched.clear();
            }
            Some(failure) => {
                tracing::error!(%failure, "the journal could not be written");
                if !self.connection.is_autocommit() {
                    let _ = self.control("ROLLBACK");
                }
                self.take_back(0);
                self.recent.failed();
                self.forget_touched(0);
            }
        }
        for reply in replies {
            (reply.answer)(failed.clone());
        }
    }

    /// Does the work of one task, and takes it back where the storage failed in the middle. Fails
    /// where that took the whole transaction with it.
    ///
    /// One that has written nothing, and met nothing that is not committed, is answered at once: it
    /// should not fail with others.
    fn attempt(&mut self, task: Task) -> std::result::Result<Option<Reply>, (Reply, Failure)> {
        let mark = self.mark();
        let reply = task(Ok(self));
        let writes =
            self.changed || self.recent.mark() != mark.recent || self.touched.len() != mark.touched;
        if !writes && !self.group_changed && reply.undo.is_none() {
            for effect in self.effects.split_off(mark.effects) {
                self.tell(effect);
            }
            (reply.answer)(None);
            return Ok(None);
        }
        self.group_changed |= self.changed;
        match self.settle(mark, reply.undo.as_ref()) {
            Ok(()) => Ok(Some(reply)),
            Err(failure) => Err((reply, failure)),
        }
    }

    /// Where a task begins.
    fn mark(&mut self) -> Mark {
        self.changed = false;
        Mark {
            effects: self.effects.len(),
            recent: self.recent.mark(),
            touched: self.touched.len(),
        }
    }

    /// Takes back what was done since where that has failed. Fails where the whole transaction did.
    fn settle(
        &mut self,
        Mark { effects, recent, touched }: Mark,
        undo: Option<&Failure>,
    ) -> std::result::Result<(), Failure> {
        let changed = std::mem::take(&mut self.changed);
        if let Some(failure) = undo {
            if self.connection.is_autocommit() {
                // It took everything before it along.
                return Err(failure.clone());
            }
            self.take_back(effects);
            self.recent.take_back(recent);
            self.forget_touched(touched);
            if changed {
                self.control("ROLLBACK TO task")?;
            }
        }
        if changed { self.control("RELEASE task") } else { Ok(()) }
    }

    /// The connection, to change something: where the task at hand fails it is taken back.
    pub(super) fn changing(&mut self) -> std::result::Result<&Connection, Failure> {
        // Most tasks change nothing: what they add goes into the row of their group.
        if !self.changed {
            self.control("SAVEPOINT task")?;
            self.changed = true;
        }
        Ok(&self.connection)
    }

    /// Changes something.
    pub(super) fn change(
        &mut self,
        sql: &'static str,
        params: impl Params,
    ) -> std::result::Result<(), Failure> {
        self.changing()?.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    /// Writes what the tasks of a group have added, and commits.
    fn complete(&mut self) -> std::result::Result<(), Failure> {
        self.recent.write(&self.connection)?;
        let mark = self.mark();
        let undo = self.tidy().err().map(Failure::from);
        if let Some(failure) = &undo {
            tracing::warn!(%failure, "the journal could not tidy up");
            self.recent.put_off();
        }
        self.settle(mark, undo.as_ref())?;
        self.control("COMMIT")
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

    /// Forgets what is remembered of runs that were touched: it may be ahead of the log.
    fn forget_touched(&mut self, from: usize) {
        for number in self.touched.split_off(from) {
            self.runs.remove(&number);
        }
    }

    fn tell(&mut self, effect: Effect) {
        match effect {
            Effect::Begun { key, run, number, head, generation } => {
                self.live.begun(&key, (number, run), head, generation);
            }
            Effect::Written { key, run, entries, packed, ended } => {
                self.live.written(&key, entries, packed, ended);
                if packed {
                    self.recent.forget(run);
                } else {
                    self.recent.need(run);
                }
            }
            Effect::Lost { number } => {
                self.recent.forget(number);
                self.leases.remove(&number);
                self.live.lost(number);
            }
            Effect::Gone { key } => self.live.gone(&key),
            Effect::Stop { number } => self.live.stop(number),
            Effect::Named => self.ended_before.clear(),
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

    /// Ends the runs that an earlier process has left: their leases died with it. One that cannot be
    /// read stays as it is, and holds up no other.
    pub(super) fn end_abandoned(&mut self) -> std::result::Result<(), Failure> {
        self.control("BEGIN IMMEDIATE")?;
        let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'runs'";
        self.last_run = self.connection.query_row(sql, [], |row| rows::number_at(row, 0))?;
        recent::pack_all(&self.connection)?;
        let keys: Vec<ThreadKey> = {
            let mut statement = self.connection.prepare_cached(
                "SELECT t.tenant, t.thread FROM runs r JOIN threads t ON t.id = r.thread \
                 WHERE r.ended_at IS NULL ORDER BY t.tenant, t.thread",
            )?;
            let keys = statement.query_map([], rows::key)?;
            keys.collect::<rusqlite::Result<_>>()?
        };
        let mut ended = Vec::new();
        for key in keys {
            let row = rows::thread_row(&self.connection, &key)?;
            if let Some(active) = row.and_then(|row| row.active) {
                let mark = self.mark();
                let abandoned = self.abandon(&key, active.number, Abandoned::LeaseLapsed);
                let failure = match abandoned {
                    Ok(run) => {
                        ended.push(run);
                        None
                    }
                    Err(error) => Some(Failure::from(error)),
                };
                if let Some(failure) = &failure {
                    if !failure.is_corrupt() {
                        return Err(failure.clone());
                    }
                    tracing::error!(thread = %key.thread, %failure, "a run could not be ended");
                }
                self.settle(mark, failure.as_ref())?;
            }
        }
        self.control("COMMIT")?;
        self.effects.clear();
        self.touched.clear();
        self.ended_before = ended;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use agui_types::RunAgentInput;
    use agui_types::event::{Event, RunStarted, StepStarted};

    use super::*;
    use crate::entry::{Cursor, ReadLimit};
    use crate::error::JournalError;
    use crate::implement::Batch;
    use crate::run::{Lease, NewRun};
    use crate::sqlite::{Durability, schema};
    use crate::thread::Tenant;

    /// A writer of a file that goes with it, and a run that has begun.
    struct Bench {
        writer: Writer,
        lease: Lease,
        folder: std::path::PathBuf,
    }

    impl Bench {
        fn new(name: &str) -> Self {
            let name = format!("agui-journal-writer-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("journal.db");
            let connection = schema::open_writer(&file, Durability::Process, None).unwrap();
            let mut writer = Writer::new(connection, Clock::default(), Arc::default());
            let input = RunAgentInput::new("t", "r", Vec::new());
            let run = NewRun::new(Tenant::default(), "default", input);
            let (begin, mut begun) = task(|writer| writer.begin(run));
            writer.commit([begin].into_iter());
            let lease = begun.try_recv().unwrap().unwrap().lease;
            let mut bench = Self { writer, lease, folder };
            let started = bench.append(RunStarted::new("t", "r").into());
            assert_eq!(bench.together([started]), [Ok(1)]);
            bench
        }

        fn append(&self, event: Event) -> impl FnOnce(&mut Writer) -> Result<u64> + Send + 'static {
            let lease = self.lease.clone();
            move |writer| writer.write(&lease, Batch::new(vec![event]), false)
        }

        /// Does what is asked for as one group; gives the answers.
        fn together<const N: usize>(
            &mut self,
            work: [impl FnOnce(&mut Writer) -> Result<u64> + Send + 'static; N],
        ) -> [std::result::Result<u64, String>; N] {
            let tasks = work.map(task);
            let (mut group, mut answers) = (Vec::new(), Vec::new());
            for (task, answer) in tasks {
                group.push(task);
                answers.push(answer);
            }
            self.writer.commit(group.into_iter());
            let answers = answers
                .into_iter()
                .map(|mut answer| answer.try_recv().unwrap().map_err(|error| error.to_string()));
            answers.collect::<Vec<_>>().try_into().unwrap()
        }

        /// What is shown of the log, and what would be if nothing were remembered.
        fn steps(&self) -> Vec<String> {
            let key = self.lease.thread();
            let limit = ReadLimit::default();
            let live = self.writer.live.page(key, Cursor::after(1), limit).unwrap();
            let row = rows::thread(&self.writer.connection, key, self.writer.live.unpacked(key));
            let read = rows::page(&self.writer.connection, row.unwrap(), Cursor::after(1), limit);
            let read = read.unwrap();
            assert_eq!((&read.entries, read.head), (&live.entries, live.head));
            assert!(read.entries.iter().map(|it| it.position).eq(2..=read.head));
            let name = |text: &str| text.rsplit('"').nth(1).unwrap_or_default().to_owned();
            read.entries.iter().map(|entry| name(entry.text())).collect()
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn step(name: &str) -> Event {
        StepStarted::new(name).into()
    }

    type Work = Box<dyn FnOnce(&mut Writer) -> Result<u64> + Send>;

    /// A task that fails in the middle is taken back, with what it has written; what came before it in
    /// the same group, on the same run, and behind it, stays.
    #[test]
    fn a_task_that_fails_is_taken_back_alone() {
        let mut bench = Bench::new("alone");
        for (changes, names) in [(true, ["a", "b", "c"]), (false, ["d", "e", "f"])] {
            let [a, b, c] = names.map(|name| bench.append(step(name)));
            let fails = move |writer: &mut Writer| {
                if changes {
                    writer.change("UPDATE floor SET position = 99", [])?;
                }
                b(writer)?;
                Err(JournalError::Corrupt { what: "on purpose".into(), source: None })
            };
            let work: [Work; 3] = [Box::new(a), Box::new(fails), Box::new(c)];
            let [a, b, c] = bench.together(work);
            assert_eq!(c.unwrap(), a.unwrap() + 1);
            assert!(b.unwrap_err().contains("on purpose"));
        }
        assert_eq!(bench.steps(), ["a", "c", "d", "f"]);
        let sql = "SELECT position FROM floor";
        let floor = bench.writer.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(floor.unwrap(), 0);
    }

    /// Where a group cannot be written nothing of it is shown, everybody is told, and the run goes on
    /// where it was.
    #[test]
    fn a_group_that_fails_is_told_so() {
        let mut bench = Bench::new("group");
        let a = bench.append(step("a"));
        assert_eq!(bench.together([a]), [Ok(2)]);
        let away = "ALTER TABLE recent RENAME TO away";
        bench.writer.connection.execute_batch(away).unwrap();
        let (b, c) = (bench.append(step("b")), bench.append(step("c")));
        let work: [Work; 2] = [Box::new(b), Box::new(c)];
        let refused = bench.together(work);
        assert!(refused.iter().all(std::result::Result::is_err), "{refused:?}");
        assert_eq!(bench.steps(), ["a"]);
        let back = "ALTER TABLE away RENAME TO recent";
        bench.writer.connection.execute_batch(back).unwrap();
        let d = bench.append(step("d"));
        assert_eq!(bench.together([d]), [Ok(3)]);
        assert_eq!(bench.steps(), ["a", "d"]);
    }
}
