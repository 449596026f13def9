//! What wraps an agent into an agent.
//!
//! [`AgentExt::with`] puts a [`Middleware`] around an agent; the result is an agent again, to be
//! served, called or wrapped like any other. A closure is middleware, and so is a type.
//!
//! ```
//! use std::time::Duration;
//!
//! use agui_agent::middleware::{EventLog, HistoryGuard, Throttle, Timeout, ToolFilter};
//! use agui_agent::{Agent, AgentExt, AgentResult, Run};
//!
//! async fn chat(run: Run) -> AgentResult {
//!     run.say("Hello!").await?;
//!     Ok(())
//! }
//!
//! let agent = chat
//!     .with(ToolFilter::deny(["delete_everything"]))
//!     .with(Throttle::new(Duration::from_millis(50)))
//!     .with(Timeout::new().total(Duration::from_secs(300)))
//!     .with(HistoryGuard::new())
//!     .with(EventLog::new());
//! # fn serve(agent: impl Agent) {}
//! # serve(agent);
//! ```
//!
//! # Order
//!
//! What is added last is outermost: it sees the input first and the events last. Above, the log sees
//! what the client sees, a history that is refused never reaches the agent, and the timeout goes by
//! when events come out of the throttle.
//!
//! A good order from the inside out: what changes what the agent may do (filters, header policies),
//! [`Retry`], what changes how events come ([`ExpandChunks`], [`Throttle`]), [`Timeout`], what judges
//! the input ([`HistoryGuard`]), [`EventLog`].
//!
//! # Raw events and expanded ones
//!
//! Middleware sees events as the agent sent them, before anything is judged (C-32): with chunks, which
//! stand for a start, content and end (C-34), and with what the protocol does not describe. Who
//! would rather have chunks spelled out puts [`ExpandChunks`] inside of it:
//! `agent.with(ExpandChunks).with(mine)`. The emitter never sends chunks, so that is for remote
//! agents only.
//!
//! # Writing one
//!
//! - Looks at events or changes them, one by one: [`each_event`] with a closure.
//! - Keeps something from event to event: a [`Stage`], begun for each run with [`staged`].
//! - Anything else, such as changing the input, answering in the agent's place or running it twice:
//!   a closure or type with [`Middleware::run`].
//!
//! ```
//! use agui_agent::middleware::{Next, each_event};
//! use agui_agent::{Agent, AgentExt, AgentResult, Run, RunContext};
//! use agui_types::{Context, Event, RunAgentInput};
//!
//! # async fn chat(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
//! let agent = chat
//!     .with(|mut input: RunAgentInput, context: RunContext, next: Next| {
//!         input.context.get_or_insert_default().push(Context::new("The user's language", "Norwegian"));
//!         next.run(input, context)
//!     })
//!     .with(each_event(|event| match event {
//!         // Steps are nobody's business.
//!         Event::StepStarted(_) | Event::StepFinished(_) => None,
//!         other => Some(other),
//!     }));
//! # fn serve(agent: impl Agent) {}
//! # serve(agent);
//! ```
//!
//! What middleware makes of a stream is held to the rules like any stream, by whoever serves or
//! consumes it: who leaves out the start of something has to leave out its content and its end too.

mod event_log;
mod events;
mod expand;
mod headers;
mod history_guard;
mod retry;
mod throttle;
mod timeout;
mod tool_filter;

use std::fmt;
use std::sync::Arc;

use agui_types::{AgentCapabilities, Event, RunAgentInput};

use crate::{Agent, BoxFuture, EventStream, RunContext};

pub use event_log::EventLog;
pub use events::{EachEvent, Stage, Staged, each_event, staged};
pub use expand::ExpandChunks;
pub use headers::{AgentHeaders, HeaderPolicy, InvalidHeader, RequestHeaders};
pub use history_guard::{HISTORY_REFUSED, HistoryGuard};
pub use retry::Retry;
pub use throttle::Throttle;
pub use timeout::{TIMEOUT_FIRST_EVENT, TIMEOUT_IDLE, TIMEOUT_TOTAL, Timeout};
pub use tool_filter::ToolFilter;

#[cfg(doc)]
use crate::AgentExt;

/// Wraps an agent into an agent. See the [module](self).
///
/// Closures of this shape are middleware.
pub trait Middleware: Send + Sync + 'static {
    /// Starts a run, mostly by having `next` run with this input and context, changed or not, and
    /// giving its stream, changed or not. Nothing should happen before the stream is polled.
    ///
    /// The same is asked when a consumer attaches to a thread ([`Agent::connect`]); `next` then
    /// attaches too.
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream;

    /// What the wrapped agent declares about itself, given what the agent does. Default: the same.
    fn capabilities(&self, declared: Option<AgentCapabilities>) -> Option<AgentCapabilities> {
        declared
    }
}

impl<F> Middleware for F
where
    F: Fn(RunAgentInput, RunContext, Next) -> EventStream + Send + Sync + 'static,
{
    fn run(&self, input: RunAgentInput, context: RunContext, next: Next) -> EventStream {
        self(input, context, next)
    }
}

/// What is inside of a middleware: the agent, or the next middleware.
#[derive(Clone)]
pub struct Next {
    agent: Arc<dyn Agent>,
    attach: bool,
}

impl Next {
    /// Has it run, or attach where that is what is asked. May be called several times.
    #[must_use]
    pub fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        if !self.attach {
            return self.agent.run(input, context);
        }
        // It was asked before whether it can. If it cannot any more, its stream ends at once.
        self.agent.connect(input, context).unwrap_or_else(|| Box::pin(events::nothing()))
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("attach", &self.attach).finish_non_exhaustive()
    }
}

/// An agent with a middleware around it; made by [`AgentExt::with`].
#[derive(Clone)]
pub struct Wrapped<M> {
    agent: Arc<dyn Agent>,
    middleware: M,
}

impl<M: Middleware> Wrapped<M> {
    pub(crate) fn new(agent: impl Agent, middleware: M) -> Self {
        Self { agent: Arc::new(agent), middleware }
    }

    fn next(&self, attach: bool) -> Next {
        Next { agent: Arc::clone(&self.agent), attach }
    }
}

impl<M: Middleware> Agent for Wrapped<M> {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        self.middleware.run(input, context, self.next(false))
    }

    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        // Only asked whether it can: nothing happens before the stream is polled.
        drop(self.agent.connect(input.clone(), context.clone())?);
        Some(self.middleware.run(input, context, self.next(true)))
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        Box::pin(async { self.middleware.capabilities(self.agent.capabilities().await) })
    }
}

impl<M: fmt::Debug> fmt::Debug for Wrapped<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped").field("middleware", &self.middleware).finish_non_exhaustive()
    }
}

/// A stream that is one `RUN_ERROR`: a run that is refused before it begins (P-1).
fn refused(message: String, code: &str) -> EventStream {
    let error = Event::from(agui_types::event::RunError::new(message).code(code));
    Box::pin(events::once(error))
}
