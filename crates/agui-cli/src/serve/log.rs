//! The run log of the CopilotKit runtime.

use std::path::Path;
use std::sync::Arc;

use agui_journal::{Journal, MemoryJournal, SqliteJournal};

use crate::failure::Failure;

/// Where the log is unless somebody says otherwise.
pub(super) const FILE: &str = "agui.sqlite";

/// What stands for a log that ends with the program.
const MEMORY: &str = "memory:";

/// A log, to be closed behind the last event of the last run.
pub(super) enum Log {
    Memory(MemoryJournal),
    File(SqliteJournal),
}

impl Log {
    /// Opens the log. Where nobody has named one and the usual file cannot be used, say because
    /// another server in the same folder has it, threads are kept in memory.
    pub(super) async fn open(named: Option<&Path>) -> Result<Self, Failure> {
        if named.is_some_and(|path| path.as_os_str() == MEMORY) {
            return Ok(Self::Memory(MemoryJournal::new()));
        }
        let path = named.unwrap_or(Path::new(FILE));
        match SqliteJournal::open(path).await {
            Ok(journal) => Ok(Self::File(journal)),
            Err(error) if named.is_none() => {
                tracing::warn!(%error, "{FILE} cannot be used: threads are kept in memory only");
                Ok(Self::Memory(MemoryJournal::new()))
            }
            Err(error) => {
                let hint = "name another file with --journal, or keep threads in memory with \
                            --journal memory:";
                let path = path.display();
                let failure = Failure::new(format!("the run log {path} cannot be opened"));
                Err(failure.because(error).hint(hint))
            }
        }
    }

    pub(super) fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Self::Memory(journal) => Arc::new(journal.clone()),
            Self::File(journal) => Arc::new(journal.clone()),
        }
    }

    /// Waits until everything is in the file.
    pub(super) async fn close(self) {
        if let Self::File(journal) = self {
            journal.close().await;
        }
    }
}
