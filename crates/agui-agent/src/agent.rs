//! The one trait: an agent turns an input into a stream of events.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use agui_types::{AgentCapabilities, Event, Reading, RunAgentInput};
use futures_core::Stream;
use http::Extensions;
use tokio_util::sync::CancellationToken;

use crate::emitter::{self, Run};
use crate::middleware::{Middleware, Wrapped};
use crate::{AgentError, BoxError, Position};

/// What an agent answers with: its events in order, each with what a tolerant reading did not
/// recognise in it (nothing, for an agent in this process).
///
/// An error is the last item. Dropping the stream abandons the run: a remote connection is closed,
/// a local agent's future is dropped.
pub type EventStream =
    Pin<Box<dyn Stream<Item = Result<Reading<Event>, AgentError>> + Send + 'static>>;

/// A future on the heap, so that [`Agent`] can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Turns a [`RunAgentInput`] into an ordered stream of events.
///
/// A closure or function that takes a [`Run`] is an agent; so is a remote URL
/// (`HttpAgent`), and an [`Arc`] of any agent.
///
/// ```
/// use agui_agent::{Agent, AgentResult, Run};
///
/// async fn greeter(run: Run) -> AgentResult {
///     run.say("Hello!").await?;
///     Ok(())
/// }
///
/// fn serve(agent: impl Agent) {}
/// serve(greeter);
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Starts a run. Nothing happens before the stream is polled.
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream;

    /// Attaches to what the agent has done and does on a thread, from the context's position on, or
    /// from the beginning; nothing new is asked for. `None` where the agent has no such thing, which
    /// is no part of the protocol.
    ///
    /// The input is that of a run; its `runId` names none.
    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        let _ = (input, context);
        None
    }

    /// What the agent declares about itself; `None` declares nothing, which says nothing (C-91).
    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        Box::pin(std::future::ready(None))
    }
}

/// What surrounds a run and is not part of its input.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunContext {
    /// Cancelling it stops the run on purpose: a local agent's run closes what is open and ends
    /// with the outcome `cancelled` (P-11); a remote one's connection is closed.
    pub cancel: CancellationToken,
    /// Where in the agent's stream its reader is: noted by an agent that has positions, and where
    /// [`Agent::connect`] goes on.
    pub position: Position,
    /// When the run has to be over: a local agent's run that is not ends with a `RUN_ERROR` whose
    /// code is [`RUN_DEADLINE`](crate::emitter::RUN_DEADLINE). `None`: it may take as long as it
    /// likes.
    pub deadline: Option<Instant>,
    /// What else goes with the run, by its type: who asks, the request's headers, a trace. Agents
    /// find it with [`Run::context`](crate::Run::context). Never shown in `Debug`.
    pub extensions: Extensions,
}

impl RunContext {
    /// A context that nobody cancels, without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The context with this cancellation token.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// The context with this position.
    #[must_use]
    pub fn with_position(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    /// The context with this deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The context with this value, in place of one of the same type.
    #[must_use]
    pub fn with_extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

/// A closure from a [`Run`] to a future is an agent.
impl<F, Fut> Agent for F
where
    F: Fn(Run) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        Box::pin(emitter::stream(input, context, self))
    }
}

impl<A: Agent + ?Sized> Agent for Arc<A> {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        (**self).run(input, context)
    }

    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        (**self).connect(input, context)
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        (**self).capabilities()
    }
}

/// An agent with a declaration of its capabilities; made by [`AgentExt::with_capabilities`].
#[derive(Clone, Debug)]
pub struct Declared<A> {
    agent: A,
    capabilities: AgentCapabilities,
}

impl<A: Agent> Agent for Declared<A> {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        self.agent.run(input, context)
    }

    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        self.agent.connect(input, context)
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        Box::pin(std::future::ready(Some(self.capabilities.clone())))
    }
}

/// What every agent can do beside running.
pub trait AgentExt: Agent + Sized {
    /// The agent with this declaration in place of its own.
    fn with_capabilities(self, capabilities: AgentCapabilities) -> Declared<Self> {
        Declared { agent: self, capabilities }
    }

    /// The agent with this [middleware](crate::middleware) around it, and around what is around it
    /// already: what is added last sees the input first and the events last.
    fn with<M: Middleware>(self, middleware: M) -> Wrapped<M> {
        Wrapped::new(self, middleware)
    }
}

impl<A: Agent> AgentExt for A {}
