//! Going on with a run whose connection was lost.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::Sleep;

use super::update::Update;
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
    reports: Reports,
}

/// What is told of the connection, beside its events: shared with the turn.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<VecDeque<Update>>>);

impl Reports {
    fn push(&self, update: Update) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(update);
    }

    pub(super) fn take(&self, told: &mut VecDeque<Update>) {
        told.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Reattaching {
    pub(super) fn new(
        stream: EventStream,
        agent: Arc<dyn Agent>,
        input: RunAgentInput,
        context: RunContext,
        policy: RetryPolicy,
        reports: Reports,
    ) -> Self {
        let (failures, wait, ended) = (0, None, false);
        Self { agent, input, context, policy, stream, failures, wait, ended, reports }
    }

    /// Connects anew, after a while, where that is possible; gives back why not.
    fn again(&mut self, why: Option<AgentError>) -> Result<(), Option<AgentError>> {
        let cut_off = match &why {
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
            return Err(why);
        }
        let Some(delay) = self.policy.delay(self.failures + 1, None) else {
            return Err(why);
        };
        // Nothing happens before it is polled.
        let Some(stream) = self.agent.connect(self.input.clone(), self.context.clone()) else {
            return Err(why);
        };
        let error = why.as_ref().map(|error| error as &dyn std::error::Error);
        tracing::warn!(error, ?delay, "the connection was lost; the run is taken up again");
        self.failures += 1;
        self.stream = stream;
        self.wait = Some(Box::pin(tokio::time::sleep(delay)));
        self.reports.push(Update::Reconnecting { attempt: self.failures, delay, error: why });
        Ok(())
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
            let broken = match ready!(this.stream.as_mut().poll_next(cx)) {
                Some(Ok(reading)) => {
                    if this.failures > 0 {
                        this.reports.push(Update::Reconnected { attempts: this.failures });
                    }
                    this.failures = 0;
                    this.ended = reading.value.is_terminal();
                    return Poll::Ready(Some(Ok(reading)));
                }
                Some(Err(error)) => Some(error),
                None => None,
            };
            if let Err(broken) = this.again(broken) {
                return Poll::Ready(broken.map(Err));
            }
        }
    }
}
