//! The run log of the CopilotKit runtime.

use std::path::Path;
use std::sync::Arc;

use agui_journal::{Journal, MemoryJournal, SqliteJournal};

use crate::failure::Failure;

/// Where the log is unless somebody says otherwise.
const FILE: &str = "agui.sqlite";

/// What stands for a log that ends with the program.
const MEMORY: &str = "memory:";

/// Opens the log. Where nobody has named one and the usual file cannot be used, say because another
/// server in the same folder has it, threads are kept in memory.
pub(super) async fn open(named: Option<&Path>) -> Result<Arc<dyn Journal>, Failure> {
    if named.is_some_and(|path| path.as_os_str() == MEMORY) {
        return Ok(Arc::new(MemoryJournal::new()));
    }
    let path = named.unwrap_or(Path::new(FILE));
    match SqliteJournal::open(path).await {
        Ok(journal) => Ok(Arc::new(journal)),
        Err(error) if named.is_none() => {
            tracing::warn!(%error, "{FILE} cannot be used: threads are kept in memory only");
            Ok(Arc::new(MemoryJournal::new()))
        }
        Err(error) => Err(Failure::new(format!("the run log {} cannot be opened", path.display()))
            .because(error)
            .hint("name another file with --journal, or keep threads in memory with --journal memory:")),
    }
}
