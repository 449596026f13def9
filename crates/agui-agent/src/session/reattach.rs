//! Going on with a run whose connection was lost.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::Sleep;

use crate::{Agent, AgentError, EventStream, RetryPolicy, RunContext};

/// The events of a run, over as many connections as it takes: one that is cut off before the run has
/// said how it ended is taken up again at the position behind the last event, where the agent has
/// positions and can be connected to.
pub(super) struct Reattaching {
    agent: Arc<dyn Agent>,
    input: RunAgentInput,
    context: RunContext,
    policy: RetryPolicy,
    stream: EventStream,
    /// How often it was cut off since the last event.
    failures: u32,
    wait: Option<Pin<Box<Sleep>>>,
    /// The last event ended a run.
    ended: bool,
}

impl Reattaching {
    pub(super) fn new(
        agent: Arc<dyn Agent>,
        input: RunAgentInput,
        context: RunContext,
        policy: RetryPolicy,
    ) -> Self {
        let stream = agent.run(input.clone(), context.clone());
        Self { agent, input, context, policy, stream, failures: 0, wait: None, ended: false }
    }

    /// Connects anew, after a while, where that is possible.
    fn again(&mut self, why: Option<&AgentError>) -> bool {
        let cut_off = match why {
            None => true,
            // Connecting asks for nothing new, so it can be tried again where a run could not.
            Some(
                AgentError::Connect { .. }
                | AgentError::NoAnswer { .. }
                | AgentError::Status { status: 429 | 502 | 503 | 504, .. },
            ) => self.failures > 0,
            Some(error) => error.is_cut_off(),
        };
        let ended = self.ended || self.context.cancel.is_cancelled();
        if ended || !cut_off || self.context.position.get().is_none() {
            return false;
        }
        let Some(delay) = self.policy.delay(self.failures + 1, None) else {
            return false;
        };
        // Nothing happens before it is polled.
        let Some(stream) = self.agent.connect(self.input.clone(), self.context.clone()) else {
            return false;
        };
        let error = why.map(|error| error as &dyn std::error::Error);
        tracing::warn!(error, ?delay, "the connection was lost; the run is taken up again");
        self.failures += 1;
        self.stream = stream;
        self.wait = Some(Box::pin(tokio::time::sleep(delay)));
        true
    }
}

impl Stream for Reattaching {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(wait) = &mut this.wait {
                ready!(wait.as_mut().poll(cx));
                this.wait = None;
            }
            let item = ready!(this.stream.as_mut().poll_next(cx));
            match &item {
                Some(Ok(reading)) => {
                    this.failures = 0;
                    this.ended = reading.value.is_terminal();
                }
                Some(Err(error)) if this.again(Some(error)) => continue,
                None if this.again(None) => continue,
                _ => {}
            }
            return Poll::Ready(item);
        }
    }
}
