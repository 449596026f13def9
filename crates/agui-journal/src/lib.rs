//! The run log: every event of every run, numbered and kept before anybody is shown it.
//!
//! A run belongs to its journal and not to the connection that started it: viewers leave and come
//! back with their position, and whoever reads the log of a thread from its beginning reads a stream
//! that a strict verifier accepts. [`Journal`] is what a log promises; `docs/journal.md` is the same
//! at length. [`MemoryJournal`] is one that ends with its process; `SqliteJournal`, behind the feature
//! `sqlite`, is a file.
//!
//! ```
//! use std::sync::Arc;
//! use agui_journal::{Follower, Journal, MemoryJournal, NewRun, Tenant, Until};
//! use agui_types::event::{RunFinished, RunStarted};
//! use agui_types::RunAgentInput;
//!
//! # async fn example() -> Result<(), agui_journal::JournalError> {
//! let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
//! let input = RunAgentInput::new("thread", "run", Vec::new());
//! let begun = journal.begin(NewRun::new(Tenant::default(), "default", input)).await?;
//!
//! journal.append(&begun.lease, vec![RunStarted::new("thread", "run").into()]).await?;
//! journal.finish(&begun.lease, vec![RunFinished::new("thread", "run").into()]).await?;
//!
//! let thread = begun.lease.thread().clone();
//! let mut viewer = Follower::new(Arc::clone(&journal), thread, begun.from, Until::Terminal);
//! while let Some(page) = viewer.next().await {
//!     for entry in page?.entries {
//!         println!("id: {}\ndata: {}\n", entry.position, entry.text());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod broken_off;
mod clock;
mod compaction;
mod entry;
mod error;
mod follow;
pub mod implement;
mod journal;
mod memory;
mod opened;
mod retention;
mod run;
mod snapshot;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "suite")]
pub mod suite;
mod thread;

pub use clock::Clock;
pub use entry::{Cursor, Entry, EntryKind, Page, ReadLimit};
pub use error::JournalError;
pub use follow::{Follower, Until};
pub use implement::Batch;
pub use journal::{BoxFuture, Journal, Result};
pub use memory::{MemoryJournal, MemoryLimits, Overflow};
pub use retention::{Compacted, Removed, Retention};
pub use run::{Begun, BusyPolicy, EndedRun, Lease, NewRun, RunInfo, Stop, StopOutcome};
pub use snapshot::{Facts, Snapshot};
#[cfg(feature = "sqlite")]
pub use sqlite::{Durability, SqliteJournal, SqliteOptions};
pub use thread::{Archived, PageToken, Tenant, ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// The codes of the `RUN_ERROR` events that a journal writes.
pub mod codes {
    /// Whoever ran the run stopped to renew its lease: its process died, or it hung.
    pub const LEASE_LAPSED: &str = "LEASE_LAPSED";
}
