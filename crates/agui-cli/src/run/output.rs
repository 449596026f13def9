//! Standard output and standard error, written where waiting for their readers holds up nothing.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agui_agent::CancellationToken;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes may wait to be written before whoever writes has to wait.
const ROOM: u32 = 1 << 20;

/// How long a reader is waited for once the run is cancelled.
const PATIENCE: Duration = Duration::from_millis(300);

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A text, and where it goes.
pub(super) type Piece = (To, String);

/// The two streams of a program, in step with each other.
///
/// A thread of its own writes them. Should standard output fail, the run is cancelled; should
/// standard error fail, there is nobody left to tell.
pub(super) struct Output {
    queue: Sender<(Vec<Piece>, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    failed: Arc<OnceLock<io::Error>>,
    cancel: CancellationToken,
    /// Nobody took anything for too long after the run was cancelled.
    given_up: bool,
}

impl Output {
    /// Fails where the system has no room for another thread.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        cancel: CancellationToken,
    ) -> io::Result<Self> {
        let (queue, pieces) = channel();
        let failed = Arc::new(OnceLock::new());
        let (failure, stop) = (Arc::clone(&failed), cancel.clone());
        let thread = std::thread::Builder::new().name("output".into());
        thread.spawn(move || write_all(&pieces, out, err, &failure, &stop))?;
        let room = Arc::new(Semaphore::new(ROOM as usize));
        Ok(Self { queue, room, failed, cancel, given_up: false })
    }

    /// Has pieces written, in order. Waits while there is no room for them; where the run is
    /// cancelled and nobody takes anything for a while, they are given up.
    pub(super) async fn write(&mut self, pieces: Vec<Piece>) {
        let bytes = pieces.iter().map(|(_, text)| text.len()).sum::<usize>();
        let permits = u32::try_from(bytes).unwrap_or(ROOM).clamp(1, ROOM);
        if let Some(permit) = self.acquire(permits).await {
            // The thread that takes it never ends before this does.
            let _ = self.queue.send((pieces, permit));
        }
    }

    /// Waits until all is written; `false` where it was given up.
    pub(super) async fn flush(&mut self) -> bool {
        self.acquire(ROOM).await.is_some()
    }

    /// Has the last pieces written and waits until they are. Where nobody takes what came before, what
    /// is for standard error goes there all the same.
    pub(super) async fn write_last(&mut self, pieces: Vec<Piece>) {
        if self.given_up {
            for (_, text) in pieces.into_iter().filter(|(to, _)| *to == To::Err) {
                let _ = io::stderr().write_all(text.as_bytes());
            }
        } else {
            self.write(pieces).await;
            self.flush().await;
        }
    }

    /// Why standard output takes nothing any more.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failed.get()
    }

    async fn acquire(&mut self, permits: u32) -> Option<OwnedSemaphorePermit> {
        if self.given_up {
            return None;
        }
        let patience = async {
            self.cancel.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        let permit = tokio::select! {
            biased;
            permit = Arc::clone(&self.room).acquire_many_owned(permits) => permit.ok(),
            () = patience => None,
        };
        self.given_up = permit.is_none();
        permit
    }
}

fn write_all(
    pieces: &Receiver<(Vec<Piece>, OwnedSemaphorePermit)>,
    mut out: impl Write,
    mut err: impl Write,
    failed: &OnceLock<io::Error>,
    cancel: &CancellationToken,
) {
    while let Ok((first, permit)) = pieces.recv() {
        // What came meanwhile is written together.
        let mut batch = vec![(first, permit)];
        batch.extend(pieces.try_iter());
        let mut joined: Vec<Piece> = Vec::new();
        for (to, text) in batch.iter_mut().flat_map(|(pieces, _)| pieces.drain(..)) {
            match joined.last_mut() {
                Some((last, before)) if *last == to => before.push_str(&text),
                _ => joined.push((to, text)),
            }
        }
        for (to, text) in joined {
            match to {
                To::Out if failed.get().is_none() => {
                    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                    if let Err(error) = written {
                        let _ = failed.set(error);
                        cancel.cancel();
                    }
                }
                To::Out => {}
                To::Err => {
                    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
                }
            }
        }
    }
}
