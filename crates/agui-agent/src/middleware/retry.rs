//! Asking again.

use std::pin::Pin;
use std::task::{Context, Poll};

use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{Middleware, Next};
use crate::retry::{RetryPolicy, is_refused_for_now};
use crate::{AgentError, EventStream, RunContext};

/// Runs the agent again when its stream breaks off before its first event, after a delay that the
/// policy says.
///
/// Only errors that say that the agent was not reached, or did not take the request up: no
/// connection, and the statuses 408, 425, 429 and 503. [`also`](Self::also) adds others, for who
/// knows that a run which may have begun does no harm when it is begun twice. From the first event
/// on nothing is retried: a run that was shown is never shown again.
///
/// An `HttpAgent` has a retry policy of its own, which makes less ado and knows `Retry-After`; this is
/// for whatever else is an agent. Cancelling ends the waiting.
///
/// Its streams are to be polled in a `tokio` runtime with its timer enabled.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    also: fn(&AgentError) -> bool,
}

impl Retry {
    /// Retries by this policy.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, also: |_| false }
    }

    /// Retries these errors, too.
    #[must_use]
    pub fn also(mut self, errors: fn(&AgentError) -> bool) -> Self {
        self.also = errors;
        self
    }

    fn retries(&self, error: &AgentError) -> bool {
        let not_taken_up = match error {
            AgentError::Connect { .. } => true,
            AgentError::Status { status, .. } => is_refused_for_now(*status),
            _ => false,
        };
        not_taken_up || (self.also)(error)
    }
}

impl Middleware for Retry {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        let stream = next.run(input.clone(), context.clone());
        Box::pin(Retried {
            stream: Some(stream),
            again: Some((input, next)),
            cancelled: Box::pin(context.cancel.clone().cancelled_owned()),
            context,
            retry: *self,
            failures: 0,
            waiting: None,
        })
    }
}

struct Retried {
    stream: Option<EventStream>,
    /// What it takes to ask again, until the first event.
    again: Option<(RunAgentInput, Next)>,
    context: RunContext,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    retry: Retry,
    failures: u32,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Stream for Retried {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(waiting) = &mut this.waiting {
                if this.cancelled.as_mut().poll(cx).is_ready() {
                    (this.waiting, this.again) = (None, None);
                    return Poll::Ready(Some(Err(AgentError::Cancelled)));
                }
                if waiting.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.waiting = None;
                let again = this.again.as_ref();
                this.stream =
                    again.map(|(input, next)| next.run(input.clone(), this.context.clone()));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            let Poll::Ready(next) = stream.as_mut().poll_next(cx) else {
                return Poll::Pending;
            };
            match next {
                Some(Err(error)) if this.again.is_some() && this.retry.retries(&error) => {
                    this.stream = None;
                    this.failures += 1;
                    let Some(delay) = this.retry.policy.delay(this.failures, None) else {
                        this.again = None;
                        return Poll::Ready(Some(Err(error)));
                    };
                    let (class, failures) = (error.class(), this.failures);
                    tracing::warn!(class, failures, ?delay, "the run did not begin; it is retried");
                    this.waiting = Some(Box::pin(sleep(delay)));
                }
                other => {
                    this.again = None;
                    if !matches!(other, Some(Ok(_))) {
                        this.stream = None;
                    }
                    return Poll::Ready(other);
                }
            }
        }
    }
}
