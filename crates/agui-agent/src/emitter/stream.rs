//! The stream of a local agent: drives its future and ends its run whatever happens to it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::Run;
use super::channel::{Channel, End};
use super::request::Request;
use crate::panic::caught;
use crate::{AgentError, AgentResult, BoxError, RunContext, RunFailure};

/// The `code` of the `RUN_ERROR` that a panicking agent's run ends with. The panic's own text goes
/// to the log, not to the front end.
pub const AGENT_PANIC: &str = "AGENT_PANIC";

/// The `code` of the `RUN_ERROR` that a run ends with which was not over before its
/// [deadline](RunContext::deadline).
pub const RUN_DEADLINE: &str = "RUN_DEADLINE";

/// Runs an agent function and gives the stream of its events: `RUN_STARTED`, what it emits, and one
/// terminal event.
///
/// The future is polled by the stream, in the task of whoever consumes it, and dropped with it. Where
/// the context has a [deadline](RunContext::deadline), that task is to run in a `tokio` runtime with
/// its timer enabled.
pub fn stream<Fut>(
    input: RunAgentInput,
    context: RunContext,
    agent: impl FnOnce(Run) -> Fut,
) -> impl Stream<Item = Result<Reading<Event>, AgentError>> + Send + 'static
where
    Fut: Future<Output = AgentResult> + Send + 'static,
{
    let input = Arc::new(input);
    let request = Arc::new(Request::new(Arc::clone(&input)));
    let channel = Arc::new(Channel::new(input));
    let cancelled = Box::pin(context.cancel.clone().cancelled_owned());
    let deadline = context.deadline;
    let run = Run::new(Arc::clone(&request), Arc::clone(&channel), context);
    // The part of the agent before its first await may panic as well.
    let future = match caught(|| agent(run)) {
        Ok(future) => Some(Box::pin(future)),
        Err(panic) => {
            channel.end(panicked(&panic));
            None
        }
    };
    RunStream { channel, request, future, cancelled, deadline, timer: None }
}

struct RunStream<Fut> {
    channel: Arc<Channel>,
    request: Arc<Request>,
    future: Option<Pin<Box<Fut>>>,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    deadline: Option<Instant>,
    /// Runs from the first poll on, where there is a deadline.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<Fut: Future<Output = AgentResult>> Stream for RunStream<Fut> {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.channel.take() {
                return Poll::Ready(Some(Ok(event.into())));
            }
            if self.future.is_none() {
                return Poll::Ready(None);
            }
            self.channel.watch(cx);
            let Poll::Ready(end) = self.poll_agent(cx) else {
                // An event emitted meanwhile has used up the watch and woken this task.
                match self.channel.take() {
                    Some(event) => return Poll::Ready(Some(Ok(event.into()))),
                    None => return Poll::Pending,
                }
            };
            // The agent's handles close what they opened when they are dropped: before the end.
            self.drop_agent();
            if let End::Returned = end {
                self.request.warn_of_unknown_answers();
            }
            self.channel.end(end);
        }
    }
}

impl<Fut: Future<Output = AgentResult>> RunStream<Fut> {
    fn poll_agent(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(End::Cancelled);
        }
        if let Some(deadline) = self.deadline {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline.into())));
            if timer.as_mut().poll(cx).is_ready() {
                tracing::error!("the run was not over before its deadline");
                let message = "the run was not over before its deadline".into();
                return Poll::Ready(End::Failed { message, code: Some(RUN_DEADLINE.into()) });
            }
        }
        let Some(future) = &mut self.future else {
            return Poll::Ready(End::Returned);
        };
        match caught(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => Poll::Ready(End::Returned),
            Ok(Poll::Ready(Err(error))) => Poll::Ready(failed(error)),
            Err(panic) => Poll::Ready(panicked(&panic)),
        }
    }
}

impl<Fut> RunStream<Fut> {
    fn drop_agent(&mut self) {
        let future = self.future.take();
        if let Err(panic) = caught(|| drop(future)) {
            tracing::error!(panic, "the agent panicked while it was dropped");
        }
    }
}

impl<Fut> Drop for RunStream<Fut> {
    fn drop(&mut self) {
        self.channel.abandon();
        self.drop_agent();
    }
}

fn failed(error: BoxError) -> End {
    // Reading an error, logging it and dropping it run code of its author's.
    let end = caught(|| {
        let code = error.downcast_ref::<RunFailure>().and_then(|failure| failure.code.clone());
        tracing::error!(error = &*error as &dyn std::error::Error, code, "the agent failed");
        End::Failed { message: error.to_string(), code }
    });
    if let Err(panic) = caught(|| drop(error)) {
        tracing::error!(panic, "the agent's error panicked while it was dropped");
    }
    end.unwrap_or_else(|panic| panicked(&panic))
}

fn panicked(panic: &str) -> End {
    tracing::error!(panic, "the agent panicked");
    End::Failed { message: "the agent panicked".into(), code: Some(AGENT_PANIC.into()) }
}
