//! Telling the log what runs do.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use agui_stream::Ending;
use agui_types::{Event, Reading, RunAgentInput, RunId, ThreadId, ToJson};
use futures_core::Stream;

use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// Tells `tracing` what runs do, under the target `agui_agent::events`:
///
/// - `INFO`: that a run begins, with its ids and how much it was given, and how it ended, with the
///   number of events and the milliseconds it took. No content.
/// - `ERROR`: that its stream broke off, with the error's class.
/// - `DEBUG`: each event's type. No content.
/// - `TRACE`: each event as JSON: everything that was said.
///
/// A run is also logged as over when its consumer leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventLog {}

const TARGET: &str = "agui_agent::events";

impl EventLog {
    /// The log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Middleware for EventLog {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        let (thread, run) = (input.thread_id.clone(), input.run_id.clone());
        let (messages, tools) = (input.messages.len(), input.tools.iter().flatten().count());
        let answers = input.resume.iter().flatten().count();
        tracing::info!(
            target: TARGET, thread = thread.as_str(), run = run.as_str(), messages, tools, answers,
            "a run begins"
        );
        let stream = Some(next.run(input, context));
        Box::pin(Logged { stream, thread, run, began: Instant::now(), events: 0, ending: None })
    }
}

struct Logged {
    stream: Option<EventStream>,
    thread: ThreadId,
    run: RunId,
    began: Instant,
    events: u64,
    ending: Option<Ending>,
}

impl Stream for Logged {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        let Poll::Ready(next) = stream.as_mut().poll_next(cx) else {
            return Poll::Pending;
        };
        match &next {
            Some(Ok(event)) => this.event(&event.value),
            Some(Err(error)) => {
                let (thread, run) = (this.thread.as_str(), this.run.as_str());
                let class = error.class();
                tracing::error!(target: TARGET, thread, run, class, "a run's stream broke off");
                this.over(error.class());
            }
            None => {
                let ending = this.ending.unwrap_or(Ending::Truncated);
                this.over(ending.as_str());
            }
        }
        Poll::Ready(next)
    }
}

impl Logged {
    fn event(&mut self, event: &Event) {
        self.events += 1;
        match event {
            Event::RunFinished(finished) => self.ending = Some(Ending::from(&**finished)),
            Event::RunError(_) => self.ending = Some(Ending::Failed),
            Event::RunStarted(_) => self.ending = None,
            _ => {}
        }
        let (run, kind) = (self.run.as_str(), event.type_name());
        if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
            let json = event.to_json();
            tracing::trace!(target: TARGET, run, kind, json, "an event");
        } else {
            tracing::debug!(target: TARGET, run, kind, "an event");
        }
    }

    fn over(&mut self, ending: &'static str) {
        self.stream = None;
        let (thread, run, events) = (self.thread.as_str(), self.run.as_str(), self.events);
        let milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(target: TARGET, thread, run, ending, events, milliseconds, "a run is over");
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        if self.stream.is_some() {
            self.over(self.ending.map_or("abandoned", Ending::as_str));
        }
    }
}
