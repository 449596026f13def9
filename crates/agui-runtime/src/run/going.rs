//! The runs that go on in this process, so that one can be waited for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agui_agent::CancellationToken;
use agui_journal::ThreadKey;

/// Which runs go on, by thread. The log has one run a thread at a time; here there may be more, since
/// one that lost its lease takes a moment to be gone. Cheap to clone: all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Going(Arc<Mutex<HashMap<ThreadKey, Vec<CancellationToken>>>>);

/// A run that goes on, until this is dropped.
#[derive(Debug)]
pub(crate) struct Present {
    going: Going,
    thread: ThreadKey,
    gone: CancellationToken,
}

impl Going {
    /// A run begins on a thread. Gives its entry, and the runs that were there before it.
    pub(crate) fn enter(&self, thread: &ThreadKey) -> (Present, Earlier) {
        let gone = CancellationToken::new();
        let earlier = {
            let mut threads = self.threads();
            let there = threads.entry(thread.clone()).or_default();
            let earlier = Earlier(there.clone());
            there.push(gone.clone());
            earlier
        };
        (Present { going: self.clone(), thread: thread.clone(), gone }, earlier)
    }

    /// The runs that go on on a thread.
    pub(crate) fn on(&self, thread: &ThreadKey) -> Earlier {
        Earlier(self.threads().get(thread).cloned().unwrap_or_default())
    }

    fn threads(&self) -> MutexGuard<'_, HashMap<ThreadKey, Vec<CancellationToken>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.gone.cancel();
        let mut threads = self.going.threads();
        if let Some(there) = threads.get_mut(&self.thread) {
            there.retain(|gone| !gone.is_cancelled());
            if there.is_empty() {
                threads.remove(&self.thread);
            }
        }
    }
}

/// Runs that were there at some moment.
#[derive(Debug)]
pub(crate) struct Earlier(Vec<CancellationToken>);

impl Earlier {
    /// Waits until all of them are gone.
    pub(crate) async fn gone(self) {
        for gone in self.0 {
            gone.cancelled().await;
        }
    }
}
