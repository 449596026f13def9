//! Watching a thread.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::entry::{Cursor, Page, ReadLimit};
use crate::journal::{BoxFuture, Journal, Result};
use crate::thread::ThreadKey;

/// A viewer of a thread: reads what is there, then waits for more.
///
/// Holds no more than the page at hand, however slow its reader is: what it has not read yet stays
/// in the log. It ends where [`Until`] says, and only there. Where it cannot go on (the thread is
/// deleted, or was compacted past a viewer that is far behind) its last item is an error.
pub struct Follower {
    journal: Arc<dyn Journal>,
    thread: ThreadKey,
    cursor: Cursor,
    until: Until,
    limit: ReadLimit,
    step: Step,
}

/// Where a [`Follower`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Behind the first terminal event, or where the log ends and no run is going on: the rest of
    /// one run.
    Terminal,
    /// Where the log ends and no run is going on: what a newcomer is to see of a thread.
    Idle,
    /// Nowhere.
    Never,
}

enum Step {
    Idle,
    Reading(BoxFuture<'static, Result<Page>>),
    Waiting(BoxFuture<'static, Result<()>>),
    Over,
}

impl Follower {
    /// A viewer of a thread that reads on behind a cursor.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>, thread: ThreadKey, from: Cursor, until: Until) -> Self {
        let limit = ReadLimit::default();
        Self { journal, thread, cursor: from, until, limit, step: Step::Idle }
    }

    /// Sets how much is read at once.
    #[must_use]
    pub fn limit(mut self, limit: ReadLimit) -> Self {
        self.limit = limit;
        self
    }

    /// Begins with a page that was read already, behind the cursor that it was made with.
    #[must_use]
    pub fn beginning_with(mut self, page: Page) -> Self {
        self.step = Step::Reading(Box::pin(std::future::ready(Ok(page))));
        self
    }

    /// Behind which event it is.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Whether it has given everything that was there, and waits for more: so it is while
    /// [`next`](Self::next) is pending, unless that still reads.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.step, Step::Waiting(_))
    }

    /// The next events, at least one; `None` at the end, then again `None`. An error is the last
    /// item. May be dropped while it waits.
    pub async fn next(&mut self) -> Option<Result<Page>> {
        poll_fn(|cx| self.poll_page(cx)).await
    }

    fn poll_page(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Page>>> {
        loop {
            match &mut self.step {
                Step::Idle => {
                    let (journal, thread) = (Arc::clone(&self.journal), self.thread.clone());
                    let (cursor, limit) = (self.cursor, self.limit);
                    let read = async move { journal.read(&thread, cursor, limit).await };
                    self.step = Step::Reading(Box::pin(read));
                }
                Step::Reading(read) => {
                    let page = ready!(read.as_mut().poll(cx));
                    self.step = Step::Over;
                    let mut page = match page {
                        Ok(page) => page,
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    };
                    self.cursor = page.next;
                    self.step = self.after(&mut page);
                    if !page.entries.is_empty() {
                        return Poll::Ready(Some(Ok(page)));
                    }
                }
                Step::Waiting(wait) => match ready!(wait.as_mut().poll(cx)) {
                    Ok(()) => self.step = Step::Idle,
                    Err(error) => {
                        self.step = Step::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                Step::Over => return Poll::Ready(None),
            }
        }
    }

    /// What comes after a page, which is cut where the viewer ends.
    fn after(&mut self, page: &mut Page) -> Step {
        if self.until == Until::Terminal {
            let end = page.entries.iter().position(|entry| entry.kind.is_terminal());
            if let Some(end) = end {
                page.entries.truncate(end + 1);
                page.next = Cursor::after(page.entries[end].position);
                self.cursor = page.next;
                return Step::Over;
            }
        }
        if !page.is_last() {
            return Step::Idle;
        }
        if self.until != Until::Never && page.running.is_none() {
            return Step::Over;
        }
        let (journal, thread) = (Arc::clone(&self.journal), self.thread.clone());
        let position = page.next.position();
        Step::Waiting(Box::pin(async move { journal.changed(&thread, position).await }))
    }
}

/// The same as [`Follower::next`].
impl Stream for Follower {
    type Item = Result<Page>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_page(cx)
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("thread", &self.thread)
            .field("cursor", &self.cursor)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}
