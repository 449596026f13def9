//! What a run log promises.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use agui_types::{Event, RunId};

use crate::entry::{Cursor, Page, ReadLimit};
use crate::error::JournalError;
use crate::implement::Batch;
use crate::retention::{Compacted, Removed, Retention};
use crate::run::{Begun, EndedRun, Lease, NewRun, Stop, StopOutcome};
use crate::snapshot::{Facts, Snapshot};
use crate::thread::{Tenant, ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// A future on the heap, so that [`Journal`] can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a journal answers.
pub type Result<T> = std::result::Result<T, JournalError>;

/// The log of all runs of all threads.
///
/// **Order.** An event is numbered, then written, then shown: [`read`](Self::read) and
/// [`changed`](Self::changed) know of an event only once it is as safe as the journal makes events.
/// Positions grow within a thread. Everybody reads the same bytes.
///
/// **Rules.** The log of a thread, read from its beginning, keeps the rules of order at all times:
/// what would break one is [refused](JournalError::Rule), every run begins with `RUN_STARTED`, and
/// ends with one terminal event, whatever becomes of the one who runs it. Chunks have to be expanded
/// before.
///
/// **Who writes.** One run at a time is going on in a thread, and whoever holds its [`Lease`] writes
/// it. A lease has to be renewed; appending renews it too. One that has lapsed is still good until
/// somebody ends the run for it: [`recover`](Self::recover), or whoever wants to begin the next run
/// or to stop this one.
///
/// **Futures** may be dropped at any time. What had been asked for then happens as a whole or not at
/// all. No method blocks the thread it is called on.
pub trait Journal: Send + Sync + 'static {
    /// Begins a run, and the thread with its first one.
    ///
    /// The thread's `RUN_STARTED` will be the first event of the run. It gets the run's `input`, with
    /// those messages only that are new to the thread, unless whoever appends it has put one there;
    /// where the input brings another state than the thread has, a `STATE_SNAPSHOT` with it follows.
    /// So the whole input can be read from the log.
    ///
    /// Fails with [`ThreadBusy`](JournalError::ThreadBusy) where a run is going on, unless it is to
    /// be [superseded](crate::BusyPolicy::Supersede).
    fn begin(&self, run: NewRun) -> BoxFuture<'_, Result<Begun>>;

    /// Appends events to the run, in order, and gives the position of the last one. Renews the
    /// lease.
    ///
    /// The first event of a run is its `RUN_STARTED`; no event is terminal, see
    /// [`finish`](Self::finish).
    ///
    /// Fails with [`LeaseLost`](JournalError::LeaseLost), [`Misplaced`](JournalError::Misplaced), and
    /// [`Rule`](JournalError::Rule).
    fn append(&self, lease: &Lease, events: Vec<Event>) -> BoxFuture<'_, Result<u64>> {
        self.append_batch(lease, Batch::new(events))
    }

    /// [`append`](Self::append), for events that were written as JSON before.
    fn append_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>>;

    /// Appends events of which the last is the run's `RUN_FINISHED` or `RUN_ERROR`, and gives its
    /// position. The run is over and the lease is lost.
    ///
    /// Where the run has no `RUN_STARTED` yet, the journal puts it first: what the user said is kept
    /// also where the agent failed before it began. What is still open before a `RUN_ERROR`, or before
    /// a `RUN_FINISHED` whose outcome is `cancelled`, the journal closes: nothing is open where a run
    /// ends.
    ///
    /// Fails like [`append`](Self::append); the run then goes on.
    fn finish(&self, lease: &Lease, events: Vec<Event>) -> BoxFuture<'_, Result<u64>> {
        self.finish_batch(lease, Batch::new(events))
    }

    /// [`finish`](Self::finish), for events that were written as JSON before.
    fn finish_batch(&self, lease: &Lease, events: Batch) -> BoxFuture<'_, Result<u64>>;

    /// Makes the lease good for as long again as it was given for.
    ///
    /// Fails with [`LeaseLost`](JournalError::LeaseLost).
    fn renew(&self, lease: &Lease) -> BoxFuture<'_, Result<()>>;

    /// Gives the lease back without an end of the run, for whoever cannot write that end: it has
    /// lapsed from now on, so that whoever looks next ends the run.
    ///
    /// Fails with [`LeaseLost`](JournalError::LeaseLost).
    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<()>>;

    /// Waits until the run should stop; forever, unless somebody asks for it or it ends.
    fn stopped(&self, lease: &Lease) -> BoxFuture<'static, Stop>;

    /// Asks whoever runs the thread's run to stop; only if it is this run, where one is named.
    fn request_stop(
        &self,
        thread: &ThreadKey,
        run: Option<&RunId>,
    ) -> BoxFuture<'_, Result<StopOutcome>>;

    /// Ends all runs whose leases have lapsed: closes what they have open and ends each with a
    /// `RUN_ERROR` that has the code [`LEASE_LAPSED`](crate::codes::LEASE_LAPSED). Each is ended, and
    /// given here, once.
    fn recover(&self) -> BoxFuture<'_, Result<Vec<EndedRun>>>;

    /// Reads on behind a cursor.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound) and
    /// [`PositionUnknown`](JournalError::PositionUnknown).
    fn read(
        &self,
        thread: &ThreadKey,
        from: Cursor,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<Page>>;

    /// Waits until the log holds something behind a position.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound), also where the thread is deleted
    /// meanwhile.
    fn changed(&self, thread: &ThreadKey, position: u64) -> BoxFuture<'_, Result<()>>;

    /// The thread folded up to its last event.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn snapshot(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Snapshot>>;

    /// What the thread's last ended run left open.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn facts(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<Facts>>;

    /// What is known of a thread.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn thread(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<ThreadInfo>>;

    /// Lists threads, the latest activity first.
    ///
    /// Fails with [`PageToken`](JournalError::PageToken).
    fn threads(&self, query: ThreadQuery) -> BoxFuture<'_, Result<ThreadPage>>;

    /// Names a thread, or takes its name away.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn rename(&self, thread: &ThreadKey, name: Option<String>)
    -> BoxFuture<'_, Result<ThreadInfo>>;

    /// Archives a thread, or brings it back.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn archive(&self, thread: &ThreadKey, archived: bool) -> BoxFuture<'_, Result<ThreadInfo>>;

    /// Deletes a thread with everything in it. A run that is going on loses its lease, and viewers
    /// are told that the thread is gone.
    ///
    /// Fails with [`ThreadNotFound`](JournalError::ThreadNotFound).
    fn delete(&self, thread: &ThreadKey) -> BoxFuture<'_, Result<()>>;

    /// Deletes all threads of a tenant, or those of one owner, and gives their number.
    fn clear(&self, tenant: &Tenant, owner: Option<&str>) -> BoxFuture<'_, Result<u64>>;

    /// Compacts runs that ended at least this long ago and were not compacted yet: fewer events that
    /// fold to the same conversation. The first and the last event of a run stay where they are; a
    /// position in between points nowhere afterwards.
    fn compact(&self, ended_for: Duration) -> BoxFuture<'_, Result<Compacted>>;

    /// Removes threads.
    fn retain(&self, retention: &Retention) -> BoxFuture<'_, Result<Removed>>;
}
