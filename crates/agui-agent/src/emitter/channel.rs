//! The way from the agent to its stream: a short queue behind the protocol's rules.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use agui_stream::patch::PatchError;
use agui_stream::{Fault, Frame, Verifier, Warning, enforce};
use agui_types::event::{RunError, RunFinished, RunStarted};
use agui_types::{
    CancelledOutcome, Event, Interrupt, InterruptId, InterruptOutcome, Json, ProtocolVersion,
    RunAgentInput, RunFinishedOutcome, SuccessOutcome, TokenUsage, ToolCallId,
};

use super::holdings::Holdings;
use super::ordered::Ordered;
use super::shared::Shared;
use super::waiters::Waiters;

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
    /// The event holds something that the protocol does not describe (P-16), which a consumer would
    /// remove: an unknown role, part or patch operation. The stream goes on without it.
    #[error("the event holds what the protocol does not describe: {0}")]
    Undescribed(Warning),
    /// The patch does not apply to what the consumer holds, which would skip it (P-49, P-50). The
    /// stream goes on without it.
    #[error("the patch does not apply: {0}")]
    Patch(PatchError),
    /// Run boundaries and chunks cannot be emitted by hand: the run begins and ends its stream
    /// itself, and handles take the place of chunks.
    #[error("{0} cannot be emitted by hand")]
    Reserved(&'static str),
    /// The value cannot be written as JSON.
    #[error("the value cannot be written as JSON: {0}")]
    Json(String),
    /// What came with the input, or is in the state, cannot be read as the type asked for.
    ///
    /// Its text is for whoever sent it, and says nothing of types.
    #[error(
        "{what} is not as expected: {path}{}{problem}", if path.is_empty() { "" } else { ": " }
    )]
    Read {
        /// What cannot be read, such as `the state`.
        what: String,
        /// Where in the input, as a JSON Pointer such as `/resume/0/payload/approved`, below `/state`
        /// for the state, or in the arguments of a call; empty for all of them.
        path: String,
        /// The type's name, for whoever writes the agent.
        wanted: &'static str,
        /// What was expected there, and what was found.
        problem: String,
    },
    /// The front end offers no such tool (P-37).
    #[error("the front end offers no tool named {name:?}; it offers {offered}")]
    NoSuchTool {
        /// The name.
        name: String,
        /// The names there are, or a note that there are none.
        offered: String,
    },
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

/// What is behind the channel's lock.
pub(super) struct State {
    input: Arc<RunAgentInput>,
    queue: VecDeque<Event>,
    verifier: Verifier,
    /// What the thread holds: looked into, and made, when the first thing is opened.
    holdings: Option<Holdings>,
    shared: Shared,
    over: bool,
    consumer: Option<Waker>,
    producers: Waiters,
    unanswered: Ordered<ToolCallId, ToolCallId>,
    interrupts: Ordered<InterruptId, Interrupt>,
    result: Option<Json>,
    usage: Vec<TokenUsage>,
}

impl Channel {
    /// A channel that holds the run's `RUN_STARTED`.
    pub(super) fn new(input: Arc<RunAgentInput>) -> Self {
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        let mut started = RunStarted::new(thread_id.clone(), run_id.clone())
            .protocol_version(ProtocolVersion::DECLARED);
        started.parent_run_id.clone_from(&input.parent_run_id);
        let mut state = State {
            verifier: Verifier::for_run(thread_id, run_id),
            shared: Shared::of_input(&input),
            input,
            queue: VecDeque::with_capacity(CAPACITY),
            holdings: None,
            over: false,
            consumer: None,
            producers: Waiters::default(),
            unanswered: Ordered::default(),
            interrupts: Ordered::default(),
            result: None,
            usage: Vec::new(),
        };
        // The first event of a stream cannot break a rule.
        let _ = state.push(started.into());
        Self { state: Mutex::new(state) }
    }

    /// Emits an event, waiting for room.
    pub(super) async fn send(&self, event: Event) -> Result<(), EmitError> {
        self.when_room(move |state| state.push(event)).await
    }

    /// Does something with the stream once there is room for one more event.
    ///
    /// Fails where the run is over. `act` runs under the lock.
    pub(super) fn when_room<F, T>(&self, act: F) -> WhenRoom<'_, F>
    where
        F: FnOnce(&mut State) -> Result<T, EmitError>,
    {
        WhenRoom { channel: self, act: Some(act), place: None }
    }

    /// Emits an event without waiting: the closing of what was opened. What no longer fits the
    /// stream, because the run is over or the item was closed otherwise, is let go.
    pub(super) fn send_now(&self, event: Event) {
        let _ = self.lock().push(event);
    }

    /// Takes the next event, which makes room for another.
    pub(super) fn take(&self) -> Option<Event> {
        let mut state = self.lock();
        let event = state.queue.pop_front()?;
        let producer = state.next_producer();
        drop(state);
        producer.into_iter().for_each(Waker::wake);
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
        let producers = state.producers.all();
        drop(state);
        producers.for_each(Waker::wake);
    }

    /// Nobody takes events any more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.over = true;
        state.queue.clear();
        let producers = state.producers.all();
        drop(state);
        producers.for_each(Waker::wake);
    }

    /// Adds to what the run's end will ask.
    pub(super) fn interrupt(&self, interrupt: Interrupt) -> Result<(), EmitError> {
        let mut state = self.lock();
        if state.over {
            return Err(EmitError::RunOver);
        }
        // P-68: ids are unique within the run; the later one stands.
        state.interrupts.push(interrupt.id.clone(), interrupt);
        Ok(())
    }

    pub(super) fn set_result(&self, result: Json) {
        self.lock().result = Some(result);
    }

    pub(super) fn add_usage(&self, usage: TokenUsage) {
        let mut state = self.lock();
        let same = |held: &&mut TokenUsage| {
            (&held.provider, &held.model) == (&usage.provider, &usage.model)
        };
        match state.usage.iter_mut().find(same) {
            Some(held) => held.add(&usage),
            None => state.usage.push(usage),
        }
    }

    /// Looks at the shared state as it is now.
    pub(super) fn with_shared<T>(&self, look: impl FnOnce(&mut Shared) -> T) -> T {
        look(&mut self.lock().shared)
    }

    // A panic while the lock is held leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn shared(&mut self) -> &mut Shared {
        &mut self.shared
    }

    /// Emits an event, whether there is room or not.
    pub(super) fn push(&mut self, event: Event) -> Result<(), EmitError> {
        if self.over {
            return Err(EmitError::RunOver);
        }
        let event = match event {
            // What comes by the token is only held to the order.
            Event::TextMessageContent(_)
            | Event::ToolCallArgs(_)
            | Event::ReasoningMessageContent(_) => {
                self.verifier.try_push(&event).map_err(EmitError::Rule)?;
                event
            }
            other => self.judge(other)?,
        };
        self.queue.push_back(event);
        if let Some(consumer) = self.consumer.take() {
            consumer.wake();
        }
        Ok(())
    }

    /// Holds an event to everything that a consumer would refuse, remove or warn of, and takes over
    /// what it means for later ones.
    fn judge(&mut self, event: Event) -> Result<Event, EmitError> {
        let mut warnings = Vec::new();
        let enforced = enforce(Frame::from(event), &mut warnings).map_err(EmitError::Rule)?;
        let event = match (enforced, warnings.into_iter().next()) {
            (Some(event), None) => event,
            (_, Some(warning)) => return Err(EmitError::Undescribed(warning)),
            // Nothing is dropped without a warning.
            (None, None) => return Err(EmitError::Reserved("an event of an unknown type")),
        };
        let holdings = self.holdings.get_or_insert_with(|| Holdings::of_input(&self.input));
        holdings.check(&event, &self.verifier)?;
        match &event {
            // The verifier has nothing to say about these two while the run is going on.
            Event::StateSnapshot(snapshot) => self.shared.replace(&snapshot.snapshot),
            Event::StateDelta(delta) => self.shared.patch(&delta.delta)?,
            _ => {}
        }
        self.verifier.try_push(&event).map_err(EmitError::Rule)?;
        holdings.take_over(&event);
        match &event {
            Event::ToolCallStart(start) => {
                let id = &start.tool_call_id;
                if !self.unanswered.contains(id) && !holdings.is_answered(id) {
                    self.unanswered.push(id.clone(), id.clone());
                }
            }
            Event::ToolCallResult(result) => self.unanswered.remove(&result.tool_call_id),
            Event::MessagesSnapshot(_) => {
                self.unanswered.retain(|call| holdings.is_waiting(call));
            }
            _ => {}
        }
        Ok(event)
    }

    fn has_room(&self) -> bool {
        self.queue.len() < CAPACITY
    }

    /// The producer whose turn it is, where there is room.
    fn next_producer(&mut self) -> Option<Waker> {
        if self.has_room() { self.producers.next() } else { None }
    }

    fn terminal(&mut self, end: End) -> Event {
        let usage = std::mem::take(&mut self.usage);
        let usage = (!usage.is_empty()).then_some(usage);
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
        let (thread_id, run_id) = (self.input.thread_id.clone(), self.input.run_id.clone());
        let mut finished = RunFinished::new(thread_id, run_id);
        finished.outcome = outcome;
        finished.result = result;
        finished.usage = usage;
        finished.into()
    }

    fn outcome(&mut self) -> Option<RunFinishedOutcome> {
        if let Ok(interrupts) = agui_types::Interrupts::try_from(self.interrupts.take()) {
            return Some(InterruptOutcome::new(interrupts).into());
        }
        let unanswered = self.unanswered.take();
        // P-32: calls left open for the application are named.
        let pending = !unanswered.is_empty();
        pending.then(|| SuccessOutcome::new().pending_tool_call_ids(unanswered).into())
    }
}

/// Waits for room; made by [`Channel::when_room`].
///
/// Dropping it before it is done does nothing to the stream.
pub(super) struct WhenRoom<'c, F> {
    channel: &'c Channel,
    act: Option<F>,
    /// Its place among those who wait, once it does.
    place: Option<u64>,
}

impl<F, T> Future for WhenRoom<'_, F>
where
    F: FnOnce(&mut State) -> Result<T, EmitError> + Unpin,
{
    type Output = Result<T, EmitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = this.channel.lock();
        if !state.over && !state.has_room() {
            this.place = Some(state.producers.wait(this.place, cx.waker()));
            return Poll::Pending;
        }
        match this.act.take() {
            Some(act) if !state.over => Poll::Ready(act(&mut state)),
            _ => Poll::Ready(Err(EmitError::RunOver)),
        }
    }
}

impl<F> Drop for WhenRoom<'_, F> {
    fn drop(&mut self) {
        let Some(place) = self.place else {
            return;
        };
        let mut state = self.channel.lock();
        state.producers.leave(place);
        // It may have been woken for room that it did not use.
        let next = state.next_producer();
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}
