//! Middleware that takes one event after another.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use agui_types::{Event, Reading, RunAgentInput};
use futures_core::Stream;

use super::{Middleware, Next};
use crate::{AgentError, EventStream, RunContext};

/// What is done with the events of one run.
///
/// An event comes as the agent's stream gave it: with what its reader did not recognise about it,
/// which [`Reading::from`] an event of one's own has nothing of.
pub trait Stage: Send + 'static {
    /// Takes the next event and appends to `out` what goes out in its place.
    ///
    /// Fails where the stream is to end with this error, behind what `out` has.
    fn push(
        &mut self,
        event: Reading<Event>,
        out: &mut Vec<Reading<Event>>,
    ) -> Result<(), AgentError>;

    /// Takes the end of the stream, and appends to `out` what goes out before it. Also called before
    /// an error of the agent's. Default: nothing.
    fn finish(&mut self, out: &mut Vec<Reading<Event>>) {
        let _ = out;
    }
}

/// Middleware from a stage: `begin` makes one for each run, from its input.
///
/// ```
/// use agui_agent::middleware::{Stage, staged};
/// use agui_agent::{AgentError, AgentExt, AgentResult, Run};
/// use agui_types::event::Custom;
/// use agui_types::{Event, Reading};
///
/// /// Tells how many events there were, at the end of the run.
/// struct Count(u64);
///
/// impl Stage for Count {
///     fn push(
///         &mut self,
///         event: Reading<Event>,
///         out: &mut Vec<Reading<Event>>,
///     ) -> Result<(), AgentError> {
///         if event.value.is_terminal() {
///             let count = serde_json::Value::from(self.0);
///             out.push(Event::from(Custom::new("app.count", count)).into());
///         }
///         self.0 += 1;
///         out.push(event);
///         Ok(())
///     }
/// }
///
/// # async fn chat(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
/// let agent = chat.with(staged(|_| Count(0)));
/// # fn serve(agent: impl agui_agent::Agent) {}
/// # serve(agent);
/// ```
pub fn staged<S, F>(begin: F) -> Staged<F>
where
    S: Stage,
    F: Fn(&RunAgentInput) -> S + Send + Sync + 'static,
{
    Staged(begin)
}

/// Middleware from a [`Stage`]; made by [`staged`].
#[derive(Clone, Debug)]
pub struct Staged<F>(F);

impl<S, F> Middleware for Staged<F>
where
    S: Stage,
    F: Fn(&RunAgentInput) -> S + Send + Sync + 'static,
{
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        let stage = (self.0)(&input);
        through(next.run(input, context), stage)
    }
}

/// Middleware from a closure that is given each event and gives what goes out in its place: nothing,
/// the event, several.
///
/// An event that is given back as it was is passed on as it came; so no event is compared, one that
/// comes out first is taken to be the one that went in, with what its reader did not recognise.
pub fn each_event<F, I>(change: F) -> EachEvent<F>
where
    F: Fn(Event) -> I + Clone + Send + Sync + 'static,
    I: IntoIterator<Item = Event>,
{
    EachEvent(change)
}

/// Middleware from a closure over events; made by [`each_event`].
#[derive(Clone, Debug)]
pub struct EachEvent<F>(F);

impl<F, I> Middleware for EachEvent<F>
where
    F: Fn(Event) -> I + Clone + Send + Sync + 'static,
    I: IntoIterator<Item = Event>,
{
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        through(next.run(input, context), Each(self.0.clone()))
    }
}

struct Each<F>(F);

impl<F, I> Stage for Each<F>
where
    F: Fn(Event) -> I + Send + 'static,
    I: IntoIterator<Item = Event>,
{
    fn push(
        &mut self,
        event: Reading<Event>,
        out: &mut Vec<Reading<Event>>,
    ) -> Result<(), AgentError> {
        let first = out.len();
        let Reading { value, findings } = event;
        out.extend((self.0)(value).into_iter().map(Reading::from));
        if let Some(first) = out.get_mut(first) {
            first.findings = findings;
        }
        Ok(())
    }
}

/// The stream behind a stage.
pub(super) fn through(stream: EventStream, stage: impl Stage) -> EventStream {
    Box::pin(Through {
        stream: Some(stream),
        stage,
        out: Vec::new(),
        ready: VecDeque::new(),
        error: None,
    })
}

struct Through<S> {
    /// `None` once nothing more is taken from it.
    stream: Option<EventStream>,
    stage: S,
    /// Empty between polls: kept for its room.
    out: Vec<Reading<Event>>,
    ready: VecDeque<Reading<Event>>,
    error: Option<AgentError>,
}

// Nothing in it is pinned in place.
impl<S> Unpin for Through<S> {}

impl<S: Stage> Stream for Through<S> {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(stream) = &mut this.stream else {
                return Poll::Ready(this.error.take().map(Err));
            };
            let Poll::Ready(next) = stream.as_mut().poll_next(cx) else {
                return Poll::Pending;
            };
            match next {
                Some(Ok(event)) => {
                    if let Err(error) = this.stage.push(event, &mut this.out) {
                        (this.stream, this.error) = (None, Some(error));
                    }
                }
                ended => {
                    this.stage.finish(&mut this.out);
                    (this.stream, this.error) = (None, ended.and_then(Result::err));
                }
            }
            this.ready.extend(this.out.drain(..));
        }
    }
}

/// A stream without events.
pub(super) fn nothing() -> impl Stream<Item = Result<Reading<Event>, AgentError>> + Send {
    Once(None)
}

/// A stream of one event.
pub(super) fn once(event: Event) -> impl Stream<Item = Result<Reading<Event>, AgentError>> + Send {
    Once(Some(event))
}

struct Once(Option<Event>);

impl Stream for Once {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(|event| Ok(event.into())))
    }
}
