//! The body of a request, which has to come.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agui_agent::{BoxFuture, CancellationToken};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use crate::{BodyError, ServerLimits};

/// The body of a request to a [`Server`](crate::Server).
///
/// It ends with a [`BodyError`] where it comes too slowly, where the server stops before it has come,
/// or where it breaks off. Only time that is spent waiting for the client counts.
pub struct RequestBody {
    body: Incoming,
    limits: ServerLimits,
    closing: CancellationToken,
    received: u64,
    /// How long it was waited for, up to the pause that goes on.
    waited: Duration,
    pause: Option<Pause>,
    over: bool,
}

/// Nothing comes.
struct Pause {
    began: Instant,
    too_long: Pin<Box<Sleep>>,
    closing: BoxFuture<'static, ()>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, limits: ServerLimits, closing: CancellationToken) -> Self {
        let (received, waited, pause, over) = (0, Duration::ZERO, None, false);
        Self { body, limits, closing, received, waited, pause, over }
    }

    /// How long it may be waited for, given what has come.
    fn granted(&self) -> Duration {
        let worth = self.received / u64::from(self.limits.body_rate.max(1));
        self.limits.body_grace.saturating_add(Duration::from_secs(worth))
    }

    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<BodyError> {
        let left = self.granted().saturating_sub(self.waited);
        let closing = &self.closing;
        let pause = self.pause.get_or_insert_with(|| Pause {
            began: Instant::now(),
            too_long: Box::pin(sleep(left)),
            closing: Box::pin(closing.clone().cancelled_owned()),
        });
        if pause.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(BodyError::Closing);
        }
        pause.too_long.as_mut().poll(cx).map(|()| BodyError::TooSlow)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            let error = ready!(self.poll_pause(cx));
            self.over = true;
            return Poll::Ready(Some(Err(error)));
        };
        if let Some(pause) = self.pause.take() {
            self.waited += pause.began.elapsed();
        }
        if let Some(Ok(frame)) = &frame {
            self.received += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError::Broken(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("received", &self.received).finish_non_exhaustive()
    }
}
