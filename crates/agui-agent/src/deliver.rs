//! From what an agent sends to what an application may see.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use agui_stream::{Class, Fault, Pipeline, Warning};
use agui_types::{Event, RunAgentInput};
use futures_core::Stream;

use crate::{Agent, AgentError, EventStream, RunContext};

/// Runs an agent and delivers its events: retired shapes translated, what is not recognised
/// stripped, chunks expanded, and the order verified, as the protocol says for every path (C-32,
/// C-33).
///
/// Everything before a fault is delivered before it (C-12). The error is the last item.
pub fn deliver(
    agent: &(impl Agent + ?Sized),
    input: RunAgentInput,
    context: RunContext,
) -> Delivery {
    let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
    Delivery::new(agent.run(input, context), pipeline)
}

/// What an application gets from a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivered {
    /// An event, conforming and in order.
    Event(Event),
    /// Something was dropped, stripped or translated on the way.
    Warning(Warning),
}

/// A stream that was broken off, by the agent or by the rules.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The agent could not be reached, or what it sent is no AG-UI.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The stream breaks a rule, or ended without a terminal event.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl DeliveryError {
    /// The class of the failure in one word, as the reference client's failures are classed.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Agent(error) => error.class(),
            Self::Fault(fault) => fault.class.as_str(),
        }
    }

    /// Whether the stream was cut off: by its connection, inside a frame, or before the run said how
    /// it ended (T-9, C-15). Nothing in it was wrong until then.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        match self {
            Self::Agent(error) => error.is_cut_off(),
            Self::Fault(fault) => fault.class == Class::Truncated,
        }
    }

    /// The JSON Pointer of the member at fault; empty where no member is.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Agent(error) => error.path(),
            Self::Fault(fault) => &fault.path,
        }
    }
}

/// The stream that [`deliver`] gives.
pub struct Delivery {
    agent: Option<EventStream>,
    pipeline: Pipeline,
    ready: VecDeque<Delivered>,
    error: Option<DeliveryError>,
    events: Vec<Event>,
    warnings: Vec<Warning>,
}

impl Delivery {
    /// Sends any stream through a pipeline of the caller's.
    #[must_use]
    pub fn new(agent: EventStream, pipeline: Pipeline) -> Self {
        Self {
            agent: Some(agent),
            pipeline,
            ready: VecDeque::new(),
            error: None,
            events: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// What is known of the stream's order so far.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Takes over what the pipeline gave for one step, warnings first.
    fn collect(&mut self, judged: Result<(), Fault>) {
        self.ready.extend(self.warnings.drain(..).map(Delivered::Warning));
        self.ready.extend(self.events.drain(..).map(Delivered::Event));
        if let Err(fault) = judged {
            self.stop(fault.into());
        }
    }

    fn stop(&mut self, error: DeliveryError) {
        self.agent = None;
        self.error = Some(error);
    }
}

impl Stream for Delivery {
    type Item = Result<Delivered, DeliveryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(delivered) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(delivered)));
            }
            let Some(agent) = &mut this.agent else {
                return Poll::Ready(this.error.take().map(Err));
            };
            let Poll::Ready(next) = agent.as_mut().poll_next(cx) else {
                return Poll::Pending;
            };
            match next {
                Some(Ok(reading)) => {
                    let judged = this.pipeline.push(reading, &mut this.events, &mut this.warnings);
                    this.collect(judged);
                }
                Some(Err(AgentError::Rule(fault))) => this.stop((*fault).into()),
                Some(Err(error)) => this.stop(error.into()),
                None => {
                    this.agent = None;
                    let judged = this.pipeline.finish();
                    this.collect(judged);
                }
            }
        }
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}
