//! Somebody who looks at a thread: its log as frames, at their own pace.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use agui_journal::{Cursor, Follower, Journal, JournalError, Snapshot, ThreadKey, Until};
use agui_types::{Event, RunId, ToJson};
use agui_wire::sse::Encoder;
use bytes::Bytes;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};

use crate::dialect::Dialect;
use crate::position::Places;
use crate::replay::{Replay, frame};

/// What a viewer sees first, before the entries of the log.
#[derive(Debug, Default)]
struct Opening(Vec<u8>);

/// The frames that a follower of a thread gives.
///
/// Where the log cannot be read on, the stream ends without a terminal event, which is what front
/// ends take for "cut off": they may come back. Once the run at hand is `unended`, which is to say
/// that its end cannot be written, it ends with a `RUN_ERROR` that has no place in the log.
pub(crate) fn frames<U: Future<Output = ()> + Send + 'static>(
    thread: &ThreadKey,
    follower: Follower,
    dialect: Dialect,
    unended: U,
) -> impl Stream<Item = Bytes> + Send + use<U> {
    follow(follower, Replay::new(thread, dialect), Opening::default(), unended)
}

/// The same for somebody whose place in the log is gone: what the thread holds now, then what comes.
pub(crate) fn from_snapshot<U: Future<Output = ()> + Send + 'static>(
    journal: Arc<dyn Journal>,
    thread: ThreadKey,
    snapshot: Snapshot,
    asked: &RunId,
    dialect: Dialect,
    unended: U,
) -> impl Stream<Item = Bytes> + Send + use<U> {
    let from = Cursor::after(snapshot.position);
    let opening = Opening::of(&thread, snapshot, asked, dialect);
    let replay = Replay::new(&thread, dialect);
    follow(Follower::new(journal, thread, from, Until::Idle), replay, opening, unended)
}

impl Opening {
    /// The thread restated. Its last frame alone has a place: who is cut off before it has not seen the
    /// thread.
    fn of(thread: &ThreadKey, mut snapshot: Snapshot, asked: &RunId, dialect: Dialect) -> Self {
        let place = Places::of(thread).name(snapshot.position);
        if dialect == Dialect::Early {
            // These have no word for calls that wait, and take one that is begun again for another.
            snapshot.pending_tool_calls.clear();
            snapshot.pending_of_run.clear();
        }
        let events = snapshot.restated(&thread.thread, asked);
        let mut out = Vec::new();
        Encoder::comment(&mut out, "the position is unknown; this is the thread as it is now");
        let events: Vec<Event> = events.into_iter().filter_map(|it| dialect.say(it)).collect();
        for (at, event) in events.iter().enumerate() {
            let last = at + 1 == events.len();
            frame(last.then_some(place), &event.to_json(), &mut out);
        }
        Self(out)
    }
}

fn follow(
    follower: Follower,
    replay: Replay,
    opening: Opening,
    unended: impl Future<Output = ()> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static {
    unfold(Some((follower, replay, opening.0, Box::pin(unended))), |viewer| async move {
        let (mut follower, mut replay, mut out, mut unended) = viewer?;
        if !out.is_empty() {
            return Some((out.into(), Some((follower, replay, Vec::new(), unended))));
        }
        loop {
            // Everything that is there is shown first.
            let next = poll_fn(|cx| match follower.poll_next_unpin(cx) {
                Poll::Pending if follower.is_waiting() => unended.as_mut().poll(cx).map(|()| None),
                next => next.map(Some),
            });
            let Some(page) = next.await else {
                replay.unended(&mut out);
                return Some((out.into(), None));
            };
            match page {
                Some(Ok(page)) => {
                    for entry in page.entries {
                        replay.push(entry, &mut out);
                    }
                    // A page may hold nothing for this reader.
                    if !out.is_empty() {
                        return Some((out.into(), Some((follower, replay, Vec::new(), unended))));
                    }
                }
                Some(Err(error)) => {
                    match error {
                        JournalError::ThreadNotFound => {
                            tracing::info!("a thread was deleted while it was watched");
                        }
                        error => tracing::error!(%error, "a log cannot be read on"),
                    }
                    return None;
                }
                None => {
                    replay.finish(&mut out);
                    return (!out.is_empty()).then(|| (out.into(), None));
                }
            }
        }
    })
}
