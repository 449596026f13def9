//! Ending runs that take too long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_types::event::RunError;
use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// The `code` of the `RUN_ERROR` of a run whose first event did not come in time.
pub const TIMEOUT_FIRST_EVENT: &str = "TIMEOUT_FIRST_EVENT";

/// The `code` of the `RUN_ERROR` of a run in which no event came for too long.
pub const TIMEOUT_IDLE: &str = "TIMEOUT_IDLE";

/// The `code` of the `RUN_ERROR` of a run that took too long as a whole.
pub const TIMEOUT_TOTAL: &str = "TIMEOUT_TOTAL";

/// Ends runs that take too long: the agent's stream is dropped, and a `RUN_ERROR` says why. What came
/// until then stays (C-12), what is open is abandoned by it (C-9). After the run has ended by itself
/// nothing more is waited for than these times, and nothing is added.
///
/// Time goes by while the stream is polled, and counts from its first poll; a consumer that does not
/// take events for a while may find the time over. By default there is no limit.
///
/// Its streams are to be polled in a `tokio` runtime with its timer enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeout {
    first_event: Option<Duration>,
    idle: Option<Duration>,
    total: Option<Duration>,
}

impl Timeout {
    /// No limit yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the first event may take. An agent in this process has its first event,
    /// `RUN_STARTED`, at once.
    #[must_use]
    pub fn first_event(mut self, limit: Duration) -> Self {
        self.first_event = Some(limit);
        self
    }

    /// How long the next event may take, after the first.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = Some(limit);
        self
    }

    /// How long all of it may take.
    #[must_use]
    pub fn total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }
}

impl Middleware for Timeout {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        Box::pin(Timed {
            stream: Some(next.run(input, context)),
            limits: *self,
            began: None,
            next: None,
            timer: None,
            over: false,
        })
    }
}

struct Timed {
    stream: Option<EventStream>,
    limits: Timeout,
    began: Option<Instant>,
    /// When the next event has to come, and the code for when it does not.
    next: Option<(Instant, &'static str)>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the last run has its terminal event.
    over: bool,
}

impl Stream for Timed {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.began.is_none() {
            this.began = Some(Instant::now());
            this.expect(this.limits.first_event, TIMEOUT_FIRST_EVENT);
        }
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        // An event that is there has come in time, however late it is taken.
        if let Poll::Ready(event) = stream.as_mut().poll_next(cx) {
            if let Some(Ok(event)) = &event {
                this.over = match &event.value {
                    Event::RunStarted(_) => false,
                    other => this.over || other.is_terminal(),
                };
                this.expect(this.limits.idle, TIMEOUT_IDLE);
            }
            return Poll::Ready(event);
        }
        let Some((limit, code)) = this.next else {
            return Poll::Pending;
        };
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(limit)));
        if timer.deadline() != limit {
            timer.as_mut().reset(limit);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.stream = None;
        if this.over {
            return Poll::Ready(None);
        }
        tracing::error!(code, "the run takes too long, and is ended");
        let message = match code {
            TIMEOUT_FIRST_EVENT => "the agent did not begin in time",
            TIMEOUT_IDLE => "the agent was silent for too long",
            _ => "the run took too long",
        };
        Poll::Ready(Some(Ok(Event::from(RunError::new(message).code(code)).into())))
    }
}

impl Timed {
    /// Sets when the next event has to come: by this limit, or by the whole's where that is earlier.
    fn expect(&mut self, limit: Option<Duration>, code: &'static str) {
        let within =
            |from: Instant, limit: Option<Duration>, code| Some((from.checked_add(limit?)?, code));
        let next = within(Instant::now(), limit, code);
        let total = self.began.and_then(|began| within(began, self.limits.total, TIMEOUT_TOTAL));
        self.next = next.into_iter().chain(total).min_by_key(|(at, _)| *at);
    }
}
