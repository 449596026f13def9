//! The way from the agent to its stream: a short queue behind the protocol's rules.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use agui_stream::{Fault, Verifier};
use agui_types::event::{RunError, RunFinished, RunStarted};
use agui_types::{
    CancelledOutcome, Event, Interrupt, InterruptOutcome, Json, ProtocolVersion, RunAgentInput,
    RunFinishedOutcome, RunId, SuccessOutcome, ThreadId, TokenUsage, ToolCallId,
};

/// How many events wait for the consumer before emitting waits too.
pub const CAPACITY: usize = 16;

/// An event was not emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The run is over, or nobody takes its events any more.
    #[error("the run is over")]
    RunOver,
    /// The event would break a rule of the protocol. The stream goes on without it.
    #[error("the event would break the stream: {0}")]
    Rule(Fault),
    /// Run boundaries and chunks cannot be emitted by hand: the run begins and ends its stream
    /// itself, and handles take the place of chunks.
    #[error("{0} cannot be emitted by hand")]
    Reserved(&'static str),
    /// The value cannot be written as JSON.
    #[error("the value cannot be written as JSON: {0}")]
    Json(String),
}

/// How a run ends.
pub(super) enum End {
    Returned,
    Failed { message: String, code: Option<String> },
    Cancelled,
}

/// The events on their way, and what the run's end is made of.
pub(super) struct Channel {
    state: Mutex<State>,
}

struct State {
    thread_id: ThreadId,
    run_id: RunId,
    queue: VecDeque<Event>,
    verifier: Verifier,
    over: bool,
    consumer: Option<Waker>,
    producers: Vec<Waker>,
    unanswered: Vec<ToolCallId>,
    interrupts: Vec<Interrupt>,
    result: Option<Json>,
    usage: Vec<TokenUsage>,
}

impl Channel {
    /// A channel that holds the run's `RUN_STARTED`.
    pub(super) fn new(input: &RunAgentInput) -> Self {
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        let mut state = State {
            verifier: Verifier::for_run(thread_id.clone(), run_id.clone()),
            thread_id,
            run_id,
            queue: VecDeque::with_capacity(CAPACITY),
            over: false,
            consumer: None,
            producers: Vec::new(),
            unanswered: Vec::new(),
            interrupts: Vec::new(),
            result: None,
            usage: Vec::new(),
        };
        let mut started = RunStarted::new(state.thread_id.clone(), state.run_id.clone())
            .protocol_version(ProtocolVersion::DECLARED);
        started.parent_run_id.clone_from(&input.parent_run_id);
        // The first event of a stream cannot break a rule.
        let _ = state.push(started.into());
        Self { state: Mutex::new(state) }
    }

    /// Emits an event, waiting for room.
    pub(super) async fn send(&self, event: impl Into<Event>) -> Result<(), EmitError> {
        let mut event = Some(event.into());
        poll_fn(|cx| self.poll_send(cx, &mut event)).await
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        event: &mut Option<Event>,
    ) -> Poll<Result<(), EmitError>> {
        let mut state = self.lock();
        if !state.over && state.queue.len() >= CAPACITY {
            if !state.producers.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.producers.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(event.take().map_or(Ok(()), |event| state.push(event)))
    }

    /// Emits an event without waiting: the closing of what was opened. What no longer fits the
    /// stream, because the run is over or the item was closed otherwise, is let go.
    pub(super) fn send_now(&self, event: impl Into<Event>) {
        let _ = self.lock().push(event.into());
    }

    /// Takes the next event.
    pub(super) fn take(&self) -> Option<Event> {
        let mut state = self.lock();
        let event = state.queue.pop_front()?;
        let producers = std::mem::take(&mut state.producers);
        drop(state);
        producers.into_iter().for_each(Waker::wake);
        Some(event)
    }

    /// Has the consumer woken when an event comes.
    pub(super) fn watch(&self, cx: &mut Context<'_>) {
        let mut state = self.lock();
        match &mut state.consumer {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// Closes what is open and ends the run, once.
    pub(super) fn end(&self, end: End) {
        let mut state = self.lock();
        if state.over {
            return;
        }
        for event in state.verifier.closing_events() {
            // Closing what is open, innermost first, breaks no rule.
            let _ = state.push(event);
        }
        let terminal = state.terminal(end);
        let _ = state.push(terminal);
        state.over = true;
        let producers = std::mem::take(&mut state.producers);
        drop(state);
        producers.into_iter().for_each(Waker::wake);
    }

    /// Nobody takes events any more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.over = true;
        state.queue.clear();
        let producers = std::mem::take(&mut state.producers);
        drop(state);
        producers.into_iter().for_each(Waker::wake);
    }

    /// Adds to what the run's end will ask.
    pub(super) fn interrupt(&self, interrupt: Interrupt) -> Result<(), EmitError> {
        let mut state = self.lock();
        if state.over {
            return Err(EmitError::RunOver);
        }
        // P-68: ids are unique within the run; the later one stands.
        state.interrupts.retain(|held| held.id != interrupt.id);
        state.interrupts.push(interrupt);
        Ok(())
    }

    pub(super) fn set_result(&self, result: Json) {
        self.lock().result = Some(result);
    }

    pub(super) fn add_usage(&self, usage: TokenUsage) {
        self.lock().usage.push(usage);
    }

    // A panic while the lock is held leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, event: Event) -> Result<(), EmitError> {
        if self.over {
            return Err(EmitError::RunOver);
        }
        self.verifier.try_push(&event).map_err(EmitError::Rule)?;
        match &event {
            Event::ToolCallStart(start) if !self.unanswered.contains(&start.tool_call_id) => {
                self.unanswered.push(start.tool_call_id.clone());
            }
            Event::ToolCallResult(result) => {
                self.unanswered.retain(|call| *call != result.tool_call_id);
            }
            _ => {}
        }
        self.queue.push_back(event);
        if let Some(consumer) = self.consumer.take() {
            consumer.wake();
        }
        Ok(())
    }

    fn terminal(&mut self, end: End) -> Event {
        let usage = std::mem::take(&mut self.usage);
        let usage = (!usage.is_empty()).then(|| TokenUsage::by_model(&usage));
        let (outcome, result) = match end {
            End::Failed { message, code } => {
                let mut error = RunError::new(message);
                error.code = code;
                error.usage = usage;
                return error.into();
            }
            // P-13: a cancelled run has no result.
            End::Cancelled => (Some(CancelledOutcome::new().into()), None),
            End::Returned => (self.outcome(), self.result.take()),
        };
        let mut finished = RunFinished::new(self.thread_id.clone(), self.run_id.clone());
        finished.outcome = outcome;
        finished.result = result;
        finished.usage = usage;
        finished.into()
    }

    fn outcome(&mut self) -> Option<RunFinishedOutcome> {
        let interrupts = std::mem::take(&mut self.interrupts);
        if let Ok(interrupts) = agui_types::Interrupts::try_from(interrupts) {
            return Some(InterruptOutcome::new(interrupts).into());
        }
        let unanswered = std::mem::take(&mut self.unanswered);
        // P-32: calls left open for the application are named.
        let pending = !unanswered.is_empty();
        pending.then(|| SuccessOutcome::new().pending_tool_call_ids(unanswered).into())
    }
}
