//! Somebody who looks at a thread: its log as frames, at their own pace.

use std::sync::Arc;

use agui_journal::{Cursor, Follower, Journal, JournalError, Snapshot, ThreadKey, Until};
use agui_types::event::{MessagesSnapshot, RunFinished, RunStarted, StateSnapshot};
use agui_types::{Event, InterruptOutcome, Interrupts, RunId, ToJson};
use agui_wire::sse::Encoder;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;

use crate::dialect::Dialect;
use crate::replay::{Replay, frame};

/// What a viewer sees first, before the entries of the log.
#[derive(Debug, Default)]
struct Opening(Vec<u8>);

/// The frames behind a cursor until `until`.
///
/// Where the log cannot be read on, the stream ends without a terminal event, which is what front
/// ends take for "cut off": they may come back.
pub(crate) fn frames(
    journal: Arc<dyn Journal>,
    thread: ThreadKey,
    from: Cursor,
    until: Until,
    dialect: Dialect,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let replay = Replay::new(thread.thread.clone(), dialect);
    let follower = Follower::new(journal, thread, from, until);
    follow(follower, replay, Opening::default())
}

/// The same for somebody whose place in the log is gone: what the thread holds now, then what comes.
pub(crate) fn from_snapshot(
    journal: Arc<dyn Journal>,
    thread: ThreadKey,
    snapshot: &Snapshot,
    asked: &RunId,
    dialect: Dialect,
) -> impl Stream<Item = Bytes> + Send + use<> {
    let opening = Opening::of(&thread, snapshot, asked);
    let replay = Replay::new(thread.thread.clone(), dialect);
    let follower = Follower::new(journal, thread, Cursor::after(snapshot.position), Until::Idle);
    follow(follower, replay, opening)
}

impl Opening {
    /// A run that holds the thread as it is. It is the run that is going on, with what it has open
    /// opened again; or, where none is, one that finishes at once.
    fn of(thread: &ThreadKey, snapshot: &Snapshot, asked: &RunId) -> Self {
        let mut out = Vec::new();
        let mut put = |event: Event| frame(snapshot.position, &event.to_json(), &mut out);
        let run = snapshot.running.as_ref().unwrap_or(asked).clone();
        put(RunStarted::new(thread.thread.clone(), run.clone()).into());
        put(StateSnapshot::new(snapshot.state.clone()).into());
        put(MessagesSnapshot::new(snapshot.messages.clone()).into());
        for event in &snapshot.open {
            put(event.clone());
        }
        if snapshot.running.is_none() {
            let mut finished = RunFinished::new(thread.thread.clone(), run);
            if let Ok(open) = Interrupts::try_from(snapshot.open_interrupts.clone()) {
                finished = finished.outcome(InterruptOutcome::new(open));
            }
            put(finished.into());
        }
        let mut warning = Vec::new();
        Encoder::comment(&mut warning, "the position is unknown; this is the thread as it is now");
        warning.append(&mut out);
        Self(warning)
    }
}

fn follow(
    follower: Follower,
    replay: Replay,
    opening: Opening,
) -> impl Stream<Item = Bytes> + Send + 'static {
    unfold(Some((follower, replay, opening.0)), |viewer| async move {
        let (mut follower, mut replay, mut out) = viewer?;
        if !out.is_empty() {
            return Some((out.into(), Some((follower, replay, Vec::new()))));
        }
        loop {
            match follower.next().await {
                Some(Ok(page)) => {
                    for entry in page.entries {
                        replay.push(entry, &mut out);
                    }
                    // A page may hold nothing for this reader.
                    if !out.is_empty() {
                        return Some((out.into(), Some((follower, replay, Vec::new()))));
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
