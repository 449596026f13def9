//! Every event of every run as it is written, for developers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use agui_journal::{Lease, Tenant};
use agui_wire::sse::Encoder;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many bytes a watcher may be behind before it is cut off. A single frame may be longer.
const BEHIND: usize = 4 * 1024 * 1024;

/// Where events are shown. Cheap to clone, and free while nobody watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct DebugFeed(Arc<Mutex<Vec<Watcher>>>);

/// One who watches, with what it has not read yet.
#[derive(Debug)]
struct Watcher {
    /// Whose runs it sees.
    tenant: Tenant,
    frames: UnboundedSender<Bytes>,
    behind: Arc<AtomicUsize>,
}

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
    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers().is_empty()
    }

    /// Shows events of a run by their JSON text, as its agent made them: an input that the log adds is
    /// not there.
    pub(crate) fn show(&self, agent: &str, lease: &Lease, events: &[Bytes]) {
        if events.is_empty() || !self.is_watched() {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for event in events {
            let Ok(json) = serde_json::from_slice::<&RawValue>(event) else { continue };
            let shown = Shown {
                timestamp: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                agent_id: agent,
                thread_id: lease.thread().thread.as_str(),
                run_id: lease.run().as_str(),
                event: json,
            };
            let mut frame = Vec::new();
            let written =
                Encoder::new().frame_with(&mut frame, |out| serde_json::to_writer(out, &shown));
            if written.is_ok() {
                self.send(&lease.thread().tenant, &frame.into());
            }
        }
    }

    /// The frames of a tenant's runs from now on, without end. Begins with a comment. Whoever is too far
    /// behind gets a comment that says so in place of what follows, and the end.
    pub(crate) fn watch(&self, tenant: Tenant) -> impl Stream<Item = Bytes> + Send + use<> {
        let (frames, coming) = unbounded_channel();
        let behind = Arc::new(AtomicUsize::new(0));
        self.watchers().push(Watcher { tenant, frames, behind: Arc::clone(&behind) });
        let watching = (coming, behind, true);
        unfold(watching, |(mut coming, behind, first)| async move {
            if first {
                return Some((comment("connected"), (coming, behind, false)));
            }
            let frame = next(&mut coming, &behind).await?;
            Some((frame, (coming, behind, false)))
        })
    }

    fn send(&self, tenant: &Tenant, frame: &Bytes) {
        self.watchers().retain(|watcher| watcher.tenant != *tenant || watcher.take(frame));
    }

    /// Those who are still there.
    fn watchers(&self) -> MutexGuard<'_, Vec<Watcher>> {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| !watcher.frames.is_closed());
        watchers
    }
}

impl Watcher {
    /// Takes a frame to be read. `false` where the watcher is cut off.
    fn take(&self, frame: &Bytes) -> bool {
        let behind = self.behind.load(Ordering::Relaxed);
        if behind > 0 && behind + frame.len() > BEHIND {
            // It may be gone by now.
            let _ = self.frames.send(comment("cut off: this was read too slowly"));
            return false;
        }
        self.behind.fetch_add(frame.len(), Ordering::Relaxed);
        self.frames.send(frame.clone()).is_ok()
    }
}

async fn next(coming: &mut UnboundedReceiver<Bytes>, behind: &AtomicUsize) -> Option<Bytes> {
    let frame = coming.recv().await?;
    // The comment at the end was not counted.
    let _ = behind.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |behind| {
        Some(behind.saturating_sub(frame.len()))
    });
    Some(frame)
}

fn comment(text: &str) -> Bytes {
    let mut out = Vec::new();
    Encoder::comment(&mut out, text);
    out.into()
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    #[tokio::test]
    async fn who_is_too_far_behind_is_cut_off_and_nobody_else() {
        let (feed, us) = (DebugFeed::default(), Tenant::new("us"));
        let mut slow = Box::pin(feed.watch(us.clone()));
        let mut quick = Box::pin(feed.watch(us.clone()));
        let connected = quick.next().await.unwrap();
        assert!(connected.starts_with(b":"));
        let half = Bytes::from(vec![b'x'; BEHIND / 2]);
        // Exactly as far as may be.
        for _ in 0..2 {
            feed.send(&us, &half);
            assert_eq!(quick.next().await.unwrap(), half);
        }
        // What others say is not shown, and does not count.
        feed.send(&Tenant::new("them"), &half);
        feed.send(&us, &Bytes::from_static(b"y"));
        assert_eq!(quick.next().await.unwrap(), "y");
        let read: Vec<Bytes> = slow.by_ref().collect().await;
        assert_eq!(read.len(), 4, "the comment, two frames, and why there are no more");
        assert_eq!((&read[1], &read[2]), (&half, &half));
        assert!(read[3].starts_with(b": cut off"), "{:?}", read[3]);

        // One frame may be longer, and nobody is forgotten.
        feed.send(&us, &Bytes::from(vec![b'z'; BEHIND + 1]));
        assert_eq!(quick.next().await.unwrap().len(), BEHIND + 1);
        assert!(quick.next().now_or_never().is_none());
        assert!(feed.is_watched());
        drop(quick);
        assert!(!feed.is_watched());
    }
}
