//! Fewer, larger deltas.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_types::event::EventBase;
use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// Joins deltas that follow each other in the same text, arguments or reasoning message, so that
/// fewer events go out.
///
/// The first delta goes out at once. What follows it is held until the interval is over since the
/// last delta went out, until it has come to so many bytes, or until anything else comes: then it
/// goes out as one delta, before that. Nothing is lost and nothing changes its order; the texts are
/// the same, byte for byte.
///
/// A delta with metadata, a timestamp, a raw event or something unrecognised is passed on as it is.
/// Chunks are, too: put [`ExpandChunks`](super::ExpandChunks) inside.
///
/// Its streams are to be polled in a `tokio` runtime with its timer enabled.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    interval: Duration,
    most: usize,
}

impl Throttle {
    /// What is held goes out when it has come to this many bytes, unless
    /// [`most_bytes`](Self::most_bytes) says otherwise: 16 KiB.
    pub const MOST_BYTES: usize = 16 * 1024;

    /// At most one delta of an item in this time, where nothing else comes.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { interval, most: Self::MOST_BYTES }
    }

    /// What is held goes out when it has come to this many bytes. Default: 16 KiB.
    #[must_use]
    pub fn most_bytes(mut self, bytes: usize) -> Self {
        self.most = bytes;
        self
    }
}

impl Middleware for Throttle {
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        Box::pin(Throttled {
            stream: Some(next.run(input, context)),
            throttle: *self,
            held: None,
            next: None,
            open: None,
            timer: None,
        })
    }
}

struct Throttled {
    stream: Option<EventStream>,
    throttle: Throttle,
    /// A delta that waits.
    held: Option<Event>,
    /// What comes behind it.
    next: Option<Result<Reading<Event>, AgentError>>,
    /// Until when a delta waits: an interval after the last one.
    open: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stream for Throttled {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(next) = this.next.take() {
                return Poll::Ready(Some(next));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(None);
            };
            match stream.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(event))) => {
                    if let Some(event) = this.take(event) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                }
                Poll::Ready(ended) => {
                    this.stream = None;
                    this.next = ended;
                    if let Some(held) = this.held.take() {
                        return Poll::Ready(Some(Ok(held.into())));
                    }
                }
                Poll::Pending => {
                    let (Some(_), Some(open)) = (&this.held, this.open) else {
                        return Poll::Pending;
                    };
                    let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(open)));
                    if timer.deadline() != open {
                        timer.as_mut().reset(open);
                    }
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    return Poll::Ready(this.release().map(|event| Ok(event.into())));
                }
            }
        }
    }
}

impl Throttled {
    /// Takes the next event, and gives one where one is to go out now.
    fn take(&mut self, event: Reading<Event>) -> Option<Reading<Event>> {
        let plain = event.findings.is_empty() && delta(&event.value).is_some();
        if !plain {
            return match self.held.take() {
                Some(held) => {
                    self.next = Some(Ok(event));
                    Some(held.into())
                }
                None => Some(event),
            };
        }
        let due = self.open.is_none_or(|open| Instant::now() >= open);
        let before = match &mut self.held {
            // Of another item: that which waited goes out, and this one waits.
            Some(held) => match join(held, event.value) {
                Some(other) => self.held.replace(other),
                None => None,
            },
            none => {
                *none = Some(event.value);
                if due { self.release() } else { None }
            }
        };
        let full =
            |held: &Event| delta(held).is_some_and(|delta| delta.len() >= self.throttle.most);
        let goes = match before {
            None if self.held.as_ref().is_some_and(full) => self.release(),
            before => before,
        };
        goes.map(Reading::from)
    }

    /// Gives the delta that waits, and begins an interval.
    fn release(&mut self) -> Option<Event> {
        self.open = Some(Instant::now() + self.throttle.interval);
        self.held.take()
    }
}

/// The delta of an event that has nothing else to say.
fn delta(event: &Event) -> Option<&str> {
    let (delta, base) = match event {
        Event::TextMessageContent(event) => (&event.delta, &event.base),
        Event::ToolCallArgs(event) => (&event.delta, &event.base),
        Event::ReasoningMessageContent(event) => (&event.delta, &event.base),
        _ => return None,
    };
    (*base == EventBase::default()).then_some(delta)
}

/// Appends the second delta to the first; gives it back where it is of another item.
fn join(held: &mut Event, event: Event) -> Option<Event> {
    match (held, event) {
        (Event::TextMessageContent(held), Event::TextMessageContent(event))
            if held.message_id == event.message_id
                && held.subagent_run_id == event.subagent_run_id =>
        {
            held.delta.push_str(&event.delta);
        }
        (Event::ToolCallArgs(held), Event::ToolCallArgs(event))
            if held.tool_call_id == event.tool_call_id
                && held.subagent_run_id == event.subagent_run_id =>
        {
            held.delta.push_str(&event.delta);
        }
        (Event::ReasoningMessageContent(held), Event::ReasoningMessageContent(event))
            if held.message_id == event.message_id
                && held.subagent_run_id == event.subagent_run_id =>
        {
            held.delta.push_str(&event.delta);
        }
        (_, event) => return Some(event),
    }
    None
}
