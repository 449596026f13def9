//! Every event of every run as it is written, for developers.

use agui_journal::Lease;
use agui_types::{Event, ToJson};
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use agui_wire::sse::Encoder;

/// How many frames a watcher may be behind; it is told when it lost some.
const BEHIND: usize = 4096;

/// Where events are shown. Cheap to clone, and free while nobody watches.
#[derive(Clone, Debug)]
pub(crate) struct DebugFeed(Sender<Bytes>);

/// An event with where it came from.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    timestamp: u64,
    agent_id: &'a str,
    thread_id: &'a str,
    run_id: &'a str,
    event: &'a RawValue,
}

impl DebugFeed {
    pub(crate) fn new() -> Self {
        Self(channel(BEHIND).0)
    }

    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Shows events of a run.
    pub(crate) fn show(&self, agent: &str, lease: &Lease, events: &[Event]) {
        if !self.is_watched() {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for event in events {
            let Ok(json) = RawValue::from_string(event.to_json()) else { continue };
            let shown = Shown {
                timestamp: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                agent_id: agent,
                thread_id: lease.thread().thread.as_str(),
                run_id: lease.run().as_str(),
                event: &json,
            };
            let mut frame = Vec::new();
            let written =
                Encoder::new().frame_with(&mut frame, |out| serde_json::to_writer(out, &shown));
            if written.is_ok() {
                // Nobody may be there by now.
                let _ = self.0.send(frame.into());
            }
        }
    }

    /// The frames from now on, without end. Begins with a comment.
    pub(crate) fn watch(&self) -> impl Stream<Item = Bytes> + Send + use<> {
        unfold((self.0.subscribe(), true), |(mut frames, first)| async move {
            if first {
                return Some((comment("connected"), (frames, false)));
            }
            let frame = next(&mut frames).await?;
            Some((frame, (frames, false)))
        })
    }
}

async fn next(frames: &mut Receiver<Bytes>) -> Option<Bytes> {
    match frames.recv().await {
        Ok(frame) => Some(frame),
        Err(RecvError::Lagged(lost)) => Some(comment(&format!("{lost} events were too fast"))),
        Err(RecvError::Closed) => None,
    }
}

fn comment(text: &str) -> Bytes {
    let mut out = Vec::new();
    Encoder::comment(&mut out, text);
    out.into()
}
