//! Why a journal refuses.

use std::path::PathBuf;

use agui_stream::Fault;
use agui_types::RunId;

/// Why a journal did not do what it was asked. Unless a variant says otherwise, nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The thread has a run already. Wait for it, stop it, or [supersede](crate::BusyPolicy::Supersede)
    /// it.
    #[error("the thread is busy with the run {run:?}")]
    ThreadBusy {
        /// The run that is going on.
        run: RunId,
    },
    /// The run is over for whoever holds this lease: it has ended, was superseded, was ended because
    /// the lease lapsed, or its thread was deleted.
    #[error("the lease on the run {run:?} is lost")]
    LeaseLost {
        /// The run.
        run: RunId,
    },
    /// There is no such thread.
    #[error("there is no such thread")]
    ThreadNotFound,
    /// The log has no place behind this position: it was never reached, or what it points into was
    /// compacted. Show a snapshot instead.
    #[error("the log has no place behind position {position}; it goes from {first} to {head}")]
    PositionUnknown {
        /// The position.
        position: u64,
        /// The first position of the log.
        first: u64,
        /// The last one.
        head: u64,
    },
    /// An event breaks a rule of the protocol. **The events before it are in the log**, it and those
    /// behind it are not, and the run goes on.
    #[error("event {accepted} of the batch breaks a rule: {fault}")]
    Rule {
        /// How many events of the batch were accepted, and so the index of the one at fault.
        accepted: usize,
        /// Which rule, and how.
        #[source]
        fault: Box<Fault>,
    },
    /// An event has no place in the batch.
    #[error("event {event} of the batch ({kind}) {problem}")]
    Misplaced {
        /// Its index in the batch.
        event: usize,
        /// Its type.
        kind: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// A bound would be passed: the memory that the journal may use, or the room on its disk.
    #[error("the journal is full: {what}")]
    Full {
        /// Which bound.
        what: String,
        /// What the storage said.
        #[source]
        source: Option<BoxError>,
    },
    /// The storage is held by somebody else for longer than the journal waits. Trying again may
    /// help.
    #[error("the journal's storage is held by another process")]
    Contended {
        /// What the storage said.
        #[source]
        source: Option<BoxError>,
    },
    /// The journal's file has several names, by hard links. Under another name another process could
    /// use it at the same time, and both would lose what they write. Keep one of the names.
    #[error(
        "the journal's file {} has {names} names: remove the hard links to it, all but one name",
        path.display()
    )]
    Linked {
        /// One of the names.
        path: PathBuf,
        /// How many there are.
        names: u64,
    },
    /// A page token was not made by this journal.
    #[error("the page token cannot be read")]
    PageToken,
    /// What is stored cannot be read: it was changed from outside, or was written by a newer
    /// version.
    #[error("the journal's storage cannot be read: {what}")]
    Corrupt {
        /// What is wrong with it.
        what: String,
        /// What the storage said.
        #[source]
        source: Option<BoxError>,
    },
    /// The storage failed. Whether an append is in the log is not known until it is read.
    #[error("the journal's storage failed")]
    Storage {
        /// How.
        #[source]
        source: BoxError,
    },
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
}

/// Any error.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
