//! A journal in a file.

mod chunk;
mod fault;
mod file;
mod live;
mod recent;
mod rows;
mod schema;
mod tasks;
mod upkeep;
mod writer;

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use agui_types::RunId;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use self::fault::Failure;
use self::live::Live;
use self::upkeep::{compact, doomed, due};
use self::writer::{Task, Writer, task};
use crate::clock::Clock;
use crate::entry::{Cursor, Page, ReadLimit};
use crate::error::JournalError;
use crate::implement::{Batch, told_to_stop};
use crate::journal::{BoxFuture, Journal, Result};
use crate::retention::{Compacted, Removed, Retention};
use crate::run::{Begun, EndedRun, Lease, NewRun, Stop, StopOutcome};
use crate::snapshot::{Facts, Snapshot};
use crate::thread::{Tenant, ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// A [`Journal`] in a SQLite file, for one process.
///
/// One thread writes, and commits together what comes together; a few beside it read. The file
/// belongs to one process at a time: a second one is refused with
/// [`Contended`](JournalError::Contended). So no lease outlives its process: the runs that a process
/// left behind are ended when the next one opens the file, and their threads are usable at once.
///
/// Clones are the same journal. It is [closed](Self::close) also when the last clone is dropped and
/// what was asked for is written, which nobody waits for.
#[derive(Clone)]
pub struct SqliteJournal {
    shared: Arc<Shared>,
}

/// What a crash may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The process may die at any time (`kill -9`, a panic, out of memory) and nothing that was
    /// acknowledged is lost. When the machine loses power or its kernel fails, the last moments
    /// before may be lost; the file stays sound. SQLite's `synchronous = NORMAL`.
    #[default]
    Process,
    /// Nothing that was acknowledged is lost when the machine loses power either, if the disk does
    /// what it says. Every commit waits for the disk. SQLite's `synchronous = FULL`.
    Power,
}

/// How a [`SqliteJournal`] is opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct SqliteOptions {
    path: PathBuf,
    durability: Durability,
    clock: Clock,
    readers: usize,
    max_pages: Option<u64>,
}

impl SqliteOptions {
    /// The journal in this file, which is made where it is missing; its folder has to be there.
    /// Beside it SQLite puts files that end in `-wal` and `-shm`, and the journal one that ends in
    /// `-lock`. On Unix, files that are made are for their owner alone (mode 0600). A symbolic link is
    /// the file that it leads to. A file with a second name, a hard link, is refused on Unix: the files
    /// beside it go by the name, so that two processes could use it at once and know nothing of each
    /// other.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::default(),
            clock: Clock::default(),
            readers: 2,
            max_pages: None,
        }
    }

    /// Sets what a crash may take. Unless set: nothing when the process dies.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the clock. Unless set: the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets how many threads read, at least one. Unless set: two.
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// Sets how large the file may grow, in SQLite's pages of 4 KiB; beyond it a write is
    /// [`Full`](JournalError::Full). Unless set: as large as the disk.
    pub fn max_pages(mut self, pages: u64) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// Opens the journal and ends the runs that another process has left. What those were is what
    /// the first [`recover`](Journal::recover) gives.
    ///
    /// Fails with [`Contended`](JournalError::Contended) where another process has the file, with
    /// [`Linked`](JournalError::Linked) where it has several names, with
    /// [`Corrupt`](JournalError::Corrupt) where it is no journal or that of a newer version, and
    /// where the storage fails.
    pub async fn open(self) -> Result<SqliteJournal> {
        let (opened, opening) = oneshot::channel();
        let (open, closed) = watch::channel(());
        let (tasks, queue) = mpsc::channel::<Task>(QUEUE);
        let live = Arc::new(Live::default());
        let writer_live = Arc::clone(&live);
        spawn("agui-journal-writer", move || {
            let (lock, readers, writer) = match self.prepare(writer_live) {
                Ok(prepared) => prepared,
                Err(error) => return drop(opened.send(Err(error))),
            };
            if opened.send(Ok(readers)).is_ok() {
                writer.work(queue);
            }
            // Only now may another process have the file.
            drop(lock);
            drop(open);
        })?;
        let connections = opening.await.map_err(|_| JournalError::Closed)??;
        let readers = Readers::start(connections)?;
        Ok(SqliteJournal { shared: Arc::new(Shared { tasks, readers, live, closed }) })
    }

    fn prepare(&self, live: Arc<Live>) -> Result<(File, Vec<Connection>, Writer)> {
        let (path, lock) = file::take(&self.path)?;
        let connection = schema::open_writer(&path, self.durability, self.max_pages)?;
        let mut writer = Writer::new(connection, self.clock.clone(), live);
        writer.end_abandoned()?;
        let readers: std::result::Result<Vec<_>, Failure> =
            (0..self.readers).map(|_| schema::open_reader(&path)).collect();
        Ok((lock, readers?, writer))
    }
}

/// How long is waited for somebody else who has the file locked.
const BUSY: Duration = Duration::from_secs(5);

/// How many tasks wait for the writer, and for the readers, before those who have more have to wait.
const QUEUE: usize = 1_024;

impl SqliteJournal {
    /// Opens the journal in a file, as [`SqliteOptions::new`] says.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self> {
        SqliteOptions::new(path).open().await
    }

    /// Closes the journal, for all clones: what was asked for before is written, what is asked for
    /// later is [`Closed`](JournalError::Closed), also for who waits for the next event of a thread.
    /// Waits until another process may have the file, which then holds everything: the ones beside it
    /// are empty. Runs that are going on are ended by whoever opens it next.
    pub async fn close(&self) {
        // Where it fails it was closed before.
        let _ = self
            .write(|writer| {
                writer.close();
                Ok(())
            })
            .await;
        let mut closed = self.shared.closed.clone();
        while closed.changed().await.is_ok() {}
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (task, answer) = task(work);
        self.shared.tasks.send(task).await.map_err(|_| JournalError::Closed)?;
        answer.await.map_err(|_| JournalError::Closed)?
    }

    async fn query<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        // The file may be another process's.
        if self.shared.live.is_closed() {
            return Err(JournalError::Closed);
        }
        self.shared.readers.ask(work).await
    }

    async fn retain_now(&self, retention: Retention) -> Result<Removed> {
        let now = self.write(|writer| Ok(writer.now())).await?;
        let ahead = self.shared.live.all_ahead();
        let doomed = move |connection: &Connection| doomed(connection, &retention, now, &ahead);
        let doomed = self.query(doomed).await?;
        let Removed { threads, more } = Removed::cut(doomed);
        let threads = self.write(move |writer| writer.retain(threads)).await?;
        Ok(Removed { threads, more })
    }

    async fn compact_now(&self, ended_for: Duration) -> Result<Compacted> {
        let ended_for = u64::try_from(ended_for.as_millis()).unwrap_or(u64::MAX);
        let now = self.write(|writer| Ok(writer.now())).await?;
        let before = now.saturating_sub(ended_for);
        let threads = self.query(move |connection| due(connection, before)).await?;
        let (mut done, mut damaged) = (Compacted::default(), None);
        for thread in threads {
            match self.compact_thread(thread, before, &mut done).await {
                Ok(()) => {}
                // The others are compacted all the same.
                Err(error @ JournalError::Corrupt { .. }) => drop(damaged.get_or_insert(error)),
                Err(error) => return Err(error),
            }
            if done.more {
                break;
            }
        }
        damaged.map_or(Ok(done), Err)
    }

    async fn compact_thread(&self, thread: i64, before: u64, done: &mut Compacted) -> Result<()> {
        let room = Compacted::MOST - usize::try_from(done.runs).unwrap_or(Compacted::MOST);
        let compact = move |connection: &Connection| compact(connection, thread, before, room);
        let (runs, more) = self.query(compact).await?;
        for (number, events) in runs {
            let run = self.write(move |writer| writer.compacted(number, events)).await?;
            done.runs += run.runs;
            done.events += run.events;
            done.bytes += run.bytes;
        }
        done.more |= more;
        Ok(())
    }
}

impl std::fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteJournal").finish_non_exhaustive()
    }
}

impl Journal for SqliteJournal {
    fn begin(&self, run: NewRun) -> BoxFuture<'_, Result<Begun>> {
        Box::pin(self.write(move |writer| writer.begin(run)))
    }

    fn append_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>> {
        let lease = lease.clone();
        Box::pin(self.write(move |writer| writer.write(&lease, events, false)))
    }

    fn finish_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>> {
        let lease = lease.clone();
        Box::pin(self.write(move |writer| writer.write(&lease, events, true)))
    }

    fn renew(&self, lease: &Lease) -> BoxFuture<'_, Result<()>> {
        let lease = lease.clone();
        Box::pin(self.write(move |writer| writer.renew(&lease)))
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<()>> {
        let lease = lease.clone();
        Box::pin(self.write(move |writer| writer.release(&lease)))
    }

    fn stopped(&self, lease: &Lease) -> BoxFuture<'static, Stop> {
        Box::pin(told_to_stop(self.shared.live.stopped(lease.number())))
    }

    fn request_stop(
        &self,
        thread: &ThreadKey,
        run: Option<&RunId>,
    ) -> BoxFuture<'_, Result<StopOutcome>> {
        let (thread, run) = (thread.clone(), run.cloned());
        Box::pin(self.write(move |writer| writer.request_stop(&thread, run.as_ref())))
    }

    fn recover(&self) -> BoxFuture<'_, Result<Vec<EndedRun>>> {
        Box::pin(self.write(Writer::recover))
    }

    fn read(
        &self,
        thread: &ThreadKey,
        from: Cursor,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<Page>> {
        let thread = thread.clone();
        Box::pin(async move {
            if let Some(page) = self.shared.live.page(&thread, from, limit) {
                return Ok(page);
            }
            let unpacked = self.shared.live.unpacked(&thread);
            self.query(move |connection| {
                // One state of the file for everything that is read.
                let transaction = connection.unchecked_transaction()?;
                let thread = rows::thread(&transaction, &thread, unpacked)?;
                rows::page(&transaction, thread, from, limit)
            })
            .await
        })
    }

    fn changed(&self, thread: &ThreadKey, position: u64) -> BoxFuture<'_, Result<()>> {
        let thread = thread.clone();
        Box::pin(async move {
            // In this order: what is written after the look into the file is seen here.
            let live = &self.shared.live;
            let (mut head, running) = live.watch(&thread).ok_or(JournalError::Closed)?;
            if !running {
                let row = move |connection: &Connection| {
                    rows::thread_row(connection, &thread)?.ok_or(JournalError::ThreadNotFound)
                };
                if self.query(row).await?.head > position {
                    return Ok(());
                }
            }
            let head = head.wait_for(|head| *head > position).await;
            match head {
                Ok(_) => Ok(()),
                Err(_) if live.is_closed() => Err(JournalError::Closed),
                Err(_) => Err(JournalError::ThreadNotFound),
            }
        })
    }

    fn snapshot(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Snapshot>> {
        let thread = thread.clone();
        Box::pin(async move {
            let unpacked = self.shared.live.unpacked(&thread);
            self.query(move |connection| {
                let transaction = connection.unchecked_transaction()?;
                let thread = rows::thread(&transaction, &thread, unpacked)?;
                rows::snapshot(&transaction, &thread)
            })
            .await
        })
    }

    fn facts(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Facts>> {
        let thread = thread.clone();
        Box::pin(self.query(move |connection| {
            let transaction = connection.unchecked_transaction()?;
            let row = rows::thread_row(&transaction, &thread)?;
            let row = row.ok_or(JournalError::ThreadNotFound)?;
            Ok(rows::facts(&transaction, row.id)?)
        }))
    }

    fn thread(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(async move {
            let ahead = self.shared.live.ahead(&thread);
            self.query(move |connection| rows::info(connection, &thread, ahead)).await
        })
    }

    fn threads(&self, query: ThreadQuery) -> BoxFuture<'_, Result<ThreadPage>> {
        Box::pin(async move {
            let ahead = self.shared.live.all_ahead();
            self.query(move |connection| rows::list(connection, &query, &ahead)).await
        })
    }

    fn rename(
        &self,
        thread: &ThreadKey,
        name: Option<String>,
    ) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(self.write(move |writer| writer.rename(&thread, name.as_deref())))
    }

    fn archive(&self, thread: &ThreadKey, archived: bool) -> BoxFuture<'_, Result<ThreadInfo>> {
        let thread = thread.clone();
        Box::pin(self.write(move |writer| writer.archive(&thread, archived)))
    }

    fn delete(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<()>> {
        let thread = thread.clone();
        Box::pin(self.write(move |writer| writer.delete(&thread)))
    }

    fn clear(&self, tenant: &Tenant, owner: Option<&str>) -> BoxFuture<'_, Result<u64>> {
        let (tenant, owner) = (tenant.clone(), owner.map(str::to_owned));
        Box::pin(self.write(move |writer| writer.clear(&tenant, owner.as_deref())))
    }

    fn compact(&self, ended_for: Duration) -> BoxFuture<'_, Result<Compacted>> {
        Box::pin(self.compact_now(ended_for))
    }

    fn retain(&self, retention: &Retention) -> BoxFuture<'_, Result<Removed>> {
        Box::pin(self.retain_now(retention.clone()))
    }
}

struct Shared {
    tasks: mpsc::Sender<Task>,
    /// Its sender is gone once the file is free.
    closed: watch::Receiver<()>,
    readers: Readers,
    live: Arc<Live>,
}

/// A piece of work for a reader.
type Question = Box<dyn FnOnce(&Connection) + Send>;

/// The threads that read, each with a connection of its own.
struct Readers {
    questions: mpsc::Sender<Question>,
}

impl Readers {
    fn start(connections: Vec<Connection>) -> Result<Self> {
        let (questions, queue) = mpsc::channel::<Question>(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        for connection in connections {
            let queue = Arc::clone(&queue);
            spawn("agui-journal-reader", move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                    let Some(question) = next else { return };
                    question(&connection);
                }
            })?;
        }
        Ok(Self { questions })
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, answer) = oneshot::channel();
        let question: Question = Box::new(move |connection| drop(sender.send(work(connection))));
        self.questions.send(question).await.map_err(|_| JournalError::Closed)?;
        answer.await.map_err(|_| JournalError::Closed)?
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(|_| ()).map_err(|error| JournalError::Storage { source: error.into() })
}
