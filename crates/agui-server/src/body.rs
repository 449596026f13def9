//! The bodies of the answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agui_agent::BoxFuture;
use agui_wire::{Encoder, WireForm};
use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep, timeout};

use crate::run::GuardedRun;

/// The body of an answer: a JSON text, or the events of a run as they come.
///
/// A run's body polls the agent, and nothing else does: the agent works as fast as the body is
/// read. Dropping the body drops the agent's stream.
pub struct ResponseBody(Content);

enum Content {
    Whole(Option<Bytes>),
    /// A text, and what is waited for before the body ends.
    Lingering(Option<Bytes>, BoxFuture<'static, ()>),
    Run(Box<RunBody>),
    Frames(FramesBody),
}

impl ResponseBody {
    /// How long the body of a refused request is still read, as long as it comes.
    const LINGER: Duration = Duration::from_secs(30);

    /// A body that is ready.
    #[must_use]
    pub fn whole(text: impl Into<Bytes>) -> Self {
        Self(Content::Whole(Some(text.into())))
    }

    #[cfg(feature = "ws")]
    pub(crate) fn empty() -> Self {
        Self(Content::Whole(None))
    }

    /// The same text at once, and the end when the rest of the request was read, for at most
    /// [`LINGER`](Self::LINGER).
    pub(crate) fn reading(self, rest: impl Future<Output = ()> + Send + 'static) -> Self {
        match self.0 {
            Content::Whole(text) => {
                let rest = async { drop(timeout(Self::LINGER, rest).await) };
                Self(Content::Lingering(text, Box::pin(rest)))
            }
            other => Self(other),
        }
    }

    /// Server-sent events as they come, written already, with a comment whenever nothing came for this
    /// long (T-17); `None` for never. Dropping the body drops the stream.
    #[must_use]
    pub fn frames(
        frames: impl Stream<Item = Bytes> + Send + 'static,
        keep_alive: Option<Duration>,
    ) -> Self {
        let keep_alive = keep_alive.map(KeepAlive::new);
        Self(Content::Frames(FramesBody { frames: Box::pin(frames), keep_alive }))
    }

    /// The events of a run, with a sign of life after this much silence where the form has one.
    pub(crate) fn run(run: GuardedRun, form: WireForm, keep_alive: Option<Duration>) -> Self {
        let keep_alive = keep_alive.filter(|_| form == WireForm::Sse).map(KeepAlive::new);
        let encoder = Encoder::new(form);
        Self(Content::Run(Box::new(RunBody { run, encoder, buffer: Vec::new(), keep_alive })))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = match &mut self.0 {
            Content::Whole(text) => text.take(),
            Content::Lingering(text, rest) => match text.take() {
                Some(text) => Some(text),
                None => {
                    ready!(rest.as_mut().poll(cx));
                    self.0 = Content::Whole(None);
                    None
                }
            },
            Content::Run(run) => ready!(run.poll_chunk(cx)),
            Content::Frames(frames) => ready!(frames.poll_chunk(cx)),
        };
        Poll::Ready(chunk.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Lingering(..) | Content::Run(_) | Content::Frames(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Content::Whole(_) | Content::Lingering(..) => "ResponseBody(whole)",
            Content::Run(_) | Content::Frames(_) => "ResponseBody(events)",
        })
    }
}

struct RunBody {
    run: GuardedRun,
    encoder: Encoder,
    /// What is ready and not handed out yet; empty between two polls.
    buffer: Vec<u8>,
    keep_alive: Option<KeepAlive>,
}

/// Events that are ready together share a chunk until it has this many bytes.
const CHUNK: usize = 16 * 1024;

/// A buffer that one large event made larger than this is handed out and not kept.
const KEPT: usize = 4 * CHUNK;

impl RunBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.run.poll_patience(cx);
        while self.buffer.len() < CHUNK {
            match self.run.poll_event(cx) {
                Poll::Ready(Some(event)) => {
                    match self.encoder.encode(&event, None, &mut self.buffer) {
                        Ok(omitted) => self.run.left_out(&omitted),
                        Err(error) => self.run.cannot_send(&event, &error),
                    }
                }
                Poll::Ready(None) if self.buffer.is_empty() => return Poll::Ready(None),
                Poll::Pending if self.buffer.is_empty() => {
                    ready!(self.poll_silence(cx));
                    self.encoder.keep_alive(&mut self.buffer);
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if let Some(keep_alive) = &mut self.keep_alive {
            keep_alive.running = false;
        }
        Poll::Ready(Some(self.take()))
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.keep_alive.as_mut().map_or(Poll::Pending, |keep_alive| keep_alive.poll(cx))
    }

    fn take(&mut self) -> Bytes {
        if self.buffer.capacity() > KEPT {
            return std::mem::take(&mut self.buffer).into();
        }
        let chunk = Bytes::copy_from_slice(&self.buffer);
        self.buffer.clear();
        chunk
    }
}

/// Server-sent events that somebody else writes.
struct FramesBody {
    frames: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    keep_alive: Option<KeepAlive>,
}

impl FramesBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let polled = self.frames.as_mut().poll_next(cx);
        let Some(keep_alive) = &mut self.keep_alive else {
            return polled;
        };
        if polled.is_pending() {
            ready!(keep_alive.poll(cx));
        }
        keep_alive.running = false;
        match polled {
            Poll::Ready(chunk) => Poll::Ready(chunk),
            Poll::Pending => {
                let mut comment = Vec::new();
                Encoder::new(WireForm::Sse).keep_alive(&mut comment);
                Poll::Ready(Some(comment.into()))
            }
        }
    }
}

/// Measures how long nothing was sent.
struct KeepAlive {
    silence: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer was started since something was sent.
    running: bool,
}

impl KeepAlive {
    fn new(silence: Duration) -> Self {
        Self { silence, timer: None, running: false }
    }

    /// Ready when it has been silent long enough.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let silence = self.silence;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(silence)));
        if !std::mem::replace(&mut self.running, true) {
            timer.as_mut().set(sleep(silence));
        }
        timer.as_mut().poll(cx)
    }
}
