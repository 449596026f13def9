//! Runs whose end cannot be written.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;

use agui_journal::{Journal, JournalError, ThreadKey};
use tokio::sync::watch;

/// The threads whose last run goes on in the log although nothing of it runs any more: its end could
/// not be written, say since the disk is full. Cheap to clone: all clones are one.
#[derive(Clone, Debug)]
pub(crate) struct Unended(Arc<watch::Sender<HashSet<ThreadKey>>>);

impl Unended {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(HashSet::new())))
    }

    /// The end of the thread's run cannot be written: those who watch it are told.
    pub(crate) fn mark(&self, thread: &ThreadKey) {
        self.0.send_modify(|threads| {
            threads.insert(thread.clone());
        });
    }

    /// It has ended, or another run has begun.
    pub(crate) fn clear(&self, thread: &ThreadKey) {
        self.0.send_if_modified(|threads| {
            threads.remove(thread);
            // Nobody waits for that.
            false
        });
    }

    /// Waits until the end of the thread's run cannot be written.
    pub(crate) fn of(
        &self,
        thread: &ThreadKey,
        journal: &Arc<dyn Journal>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (unended, thread, journal) = (self.clone(), thread.clone(), Arc::clone(journal));
        let mut threads = self.0.subscribe();
        async move {
            loop {
                if threads.wait_for(|threads| threads.contains(&thread)).await.is_err() {
                    return pending().await;
                }
                // Whoever recovers runs, or stops one, may have ended it.
                match journal.thread(&thread).await {
                    Ok(info) if !info.is_running() => unended.clear(&thread),
                    Err(JournalError::ThreadNotFound) => unended.clear(&thread),
                    _ => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_journal::{MemoryJournal, NewRun, Tenant};
    use agui_types::RunAgentInput;
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_mark_is_seen_for_as_long_as_the_run_goes_on_in_the_log() {
        let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
        let thread = ThreadKey::new(Tenant::default(), "t");
        let unended = Unended::new();
        let input = || RunAgentInput::new("t", "r", Vec::new());
        let begin = || journal.begin(NewRun::new(Tenant::default(), "default", input()));
        let begun = begin().await.unwrap();
        let mut early = Box::pin(unended.of(&thread, &journal));
        assert_eq!(early.as_mut().now_or_never(), None);
        unended.mark(&thread);
        assert_eq!(early.as_mut().now_or_never(), Some(()));
        // Who comes later is told too, until another run has begun.
        assert_eq!(unended.of(&thread, &journal).now_or_never(), Some(()));
        unended.clear(&thread);
        assert_eq!(unended.of(&thread, &journal).now_or_never(), None);
        // A mark that nobody took away says nothing of a run that has ended.
        unended.mark(&thread);
        journal.release(&begun.lease).await.unwrap();
        assert_eq!(journal.recover().await.unwrap().len(), 1);
        assert_eq!(unended.of(&thread, &journal).now_or_never(), None);
        begin().await.unwrap();
        assert_eq!(unended.of(&thread, &journal).now_or_never(), None);
    }
}
