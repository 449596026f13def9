//! What a journal is made of, for whoever writes one: what the log accepts, and what it folds to.

use std::collections::HashMap;

use agui_stream::fold::Applied;
use agui_stream::{Conversation, Ending, Fault, OpenItem, RunState, Verifier};
use agui_types::event::{RunError, RunFinished, RunStarted, StateSnapshot};
use agui_types::json::Value;
use agui_types::{
    CancelledOutcome, Event, Json, Message, ResumeEntry, RunAgentInput, RunId, ThreadId, ToJson,
};

pub use crate::compaction::{compact_run, place};
pub use crate::entry::Encoded;
use bytes::Bytes;
use tokio::sync::watch;

use crate::broken_off::{BrokenOff, call_ends};
use crate::error::JournalError;
use crate::opened::{Edge, Opened};
use crate::run::Stop;
use crate::snapshot::{Facts, Snapshot};
use crate::{Result, codes};

/// A thread as the events of its log leave it, and the rules that its next event has to keep.
///
/// Costs the same for every event, however long the thread is.
#[derive(Clone, Debug)]
pub struct Fold {
    conversation: Conversation,
    verifier: Verifier,
    /// What opened the items that the run at hand has opened.
    openers: HashMap<Opened, Event>,
    /// The answers to interrupts that the run at hand was given.
    resume: Vec<ResumeEntry>,
    /// Reused from event to event.
    applied: Applied,
}

impl Fold {
    /// A thread without events.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Conversation::new(Vec::new(), Value::Object(Default::default())))
    }

    /// A thread between two runs, from what was kept of it.
    #[must_use]
    pub fn restore(messages: Vec<Message>, state: Value, facts: Facts) -> Self {
        let conversation = Conversation::new(messages, state)
            .with_open_interrupts(facts.open_interrupts)
            .with_pending_tool_calls(facts.pending_tool_calls);
        Self::of(conversation)
    }

    fn of(conversation: Conversation) -> Self {
        Self {
            conversation,
            verifier: Verifier::new(),
            openers: HashMap::new(),
            resume: Vec::new(),
            applied: Applied::default(),
        }
    }

    /// A run begins for this input: the next event is its first.
    pub fn begin_run(&mut self, input: &RunAgentInput) {
        let resume = input.resume.as_deref().unwrap_or_default();
        self.conversation.begin_exchange(&input.run_id, resume);
        self.verifier = Verifier::for_run(input.thread_id.clone(), input.run_id.clone());
        self.openers = HashMap::new();
    }

    /// Takes the next event. One that breaks a rule is refused and changes nothing.
    pub fn push(&mut self, event: &Event) -> std::result::Result<(), Fault> {
        self.verifier.try_push(event)?;
        if let Some((edge, opened)) = Opened::of(event) {
            match edge {
                Edge::Opens => drop(self.openers.insert(opened, event.clone())),
                Edge::Closes => drop(self.openers.remove(&opened)),
            }
        }
        if let Event::RunStarted(started) = event {
            let input = started.input.as_ref();
            self.resume = input.and_then(|input| input.resume.clone()).unwrap_or_default();
        } else if event.is_terminal() {
            self.resume.clear();
        }
        self.conversation.apply(event, &mut self.applied);
        Ok(())
    }

    /// The conversation.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// What is open and unanswered.
    #[must_use]
    pub fn facts(&self) -> Facts {
        Facts {
            open_interrupts: self.conversation.open_interrupts().to_vec(),
            pending_tool_calls: self.conversation.pending_tool_calls().cloned().collect(),
        }
    }

    /// The state as text.
    #[must_use]
    pub fn state(&self) -> Json {
        self.conversation.state().to_json()
    }

    /// Answers the calls of a run that is broken off, and closes what it has open.
    fn break_off(&mut self, how: BrokenOff, out: &mut Vec<Encoded>) {
        let calls = how.unanswered(&self.conversation, &self.verifier);
        if !calls.is_empty() {
            let mut ends = call_ends(self.verifier.closing_events());
            for call in calls {
                if let Some(end) = ends.remove(&call) {
                    push_sound(&end, self, out);
                }
                push_sound(&how.result(&call, &self.conversation), self, out);
            }
        }
        for event in self.verifier.closing_events() {
            push_sound(&event, self, out);
        }
    }

    /// The thread at a position.
    #[must_use]
    pub fn snapshot(&self, position: u64, running: Option<RunId>) -> Snapshot {
        let Facts { open_interrupts, pending_tool_calls } = self.facts();
        let open = self.verifier.open_items();
        let opener = |item: &OpenItem| self.openers.get(&Opened::item(item)).cloned();
        let started = matches!(self.verifier.run(), RunState::Active { .. });
        let of_run = self.conversation.pending_tool_calls_of_run().filter(|_| started);
        Snapshot {
            position,
            messages: self.conversation.messages().to_vec(),
            state: self.state(),
            open_interrupts,
            pending_tool_calls,
            pending_of_run: of_run.cloned().collect(),
            resume: self.resume.clone(),
            started,
            running,
            open: open.iter().filter_map(opener).collect(),
        }
    }
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

/// A run that is going on: what the log accepts of it.
#[derive(Clone, Debug)]
pub struct ActiveRun {
    thread: ThreadId,
    run: RunId,
    /// What its `RUN_STARTED` gets; `None` once that is there.
    opening: Option<Opening>,
}

/// What the log adds to the beginning of a run.
#[derive(Clone, Debug)]
struct Opening {
    /// The input, with the messages that are new to the thread.
    input: Box<RunAgentInput>,
    /// The state that the input brings, where it is another than the thread's.
    state: Option<Json>,
}

impl ActiveRun {
    /// A run begins on a thread.
    pub fn begin(mut input: RunAgentInput, fold: &mut Fold) -> Self {
        let conversation = fold.conversation();
        let known = conversation.messages();
        input
            .messages
            .retain(|message| message.id().is_none_or(|id| known.find(id.as_str()).is_none()));
        let differs = |state: &&Json| {
            Value::try_from(*state).is_ok_and(|state| state != *conversation.state())
        };
        let state = input.state.as_ref().filter(differs).cloned();
        fold.begin_run(&input);
        Self {
            thread: input.thread_id.clone(),
            run: input.run_id.clone(),
            opening: Some(Opening { input: Box::new(input), state }),
        }
    }

    /// Takes an event of the run that the log holds already, to go on with the run behind it.
    pub fn replay(&mut self, event: &Event, fold: &mut Fold) {
        // Every event of a log is sound.
        let _ = fold.push(event);
        self.opening = None;
    }

    /// The run's id.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The input as the log will hold it, until it does: what has to be kept for a run that has
    /// begun and has no event yet.
    #[must_use]
    pub fn input(&self) -> Option<&RunAgentInput> {
        self.opening.as_ref().map(|opening| &*opening.input)
    }

    /// How many bytes of JSON text the log adds to the beginning of the run, at most.
    #[must_use]
    pub fn opening_bytes(&self) -> u64 {
        let opening = self.opening.as_ref();
        let bytes = |opening: &Opening| {
            let state = opening.state.as_ref().map_or(0, |state| state.as_str().len());
            // The input with what stands around it, in both events.
            opening.input.to_json().len() + state + 512
        };
        opening.map_or(0, bytes) as u64
    }

    /// Takes events that do not end the run. What was accepted is in `out`, also where one was
    /// refused.
    pub fn append(&mut self, batch: Batch, fold: &mut Fold, out: &mut Vec<Encoded>) -> Result<()> {
        self.check_places(&batch.0, false)?;
        self.take(batch, fold, out)
    }

    /// Takes events of which the last ends the run.
    pub fn finish(
        &mut self,
        batch: Batch,
        fold: &mut Fold,
        out: &mut Vec<Encoded>,
    ) -> Result<Ending> {
        self.check_places(&batch.0, true)?;
        let ending = batch.0.last().map_or(Ending::Truncated, |(event, _)| ending(event));
        if !matches!(batch.0.first(), Some((Event::RunStarted(_), _))) {
            self.start(fold, out);
        }
        self.take(batch, fold, out)?;
        Ok(ending)
    }

    /// Ends the run on behalf of whoever ran it: its calls are answered, and what is open is closed.
    pub fn end(&mut self, why: Abandoned, fold: &mut Fold, out: &mut Vec<Encoded>) -> Ending {
        self.start(fold, out);
        let (event, ending): (Event, _) = match why {
            Abandoned::LeaseLapsed => {
                let message =
                    "the server that ran this stopped, or lost touch, before the run ended";
                (RunError::new(message).code(codes::LEASE_LAPSED).into(), Ending::Failed)
            }
            Abandoned::Superseded => {
                let finished = RunFinished::new(self.thread.clone(), self.run.clone());
                (finished.outcome(CancelledOutcome::new()).into(), Ending::Cancelled)
            }
        };
        // What is open is closed before it, and an end keeps every rule.
        let _ = self.take(Batch::new(vec![event]), fold, out);
        ending
    }

    /// Writes `RUN_STARTED`, unless it is there.
    fn start(&mut self, fold: &mut Fold, out: &mut Vec<Encoded>) {
        if self.opening.is_some() {
            let mut started = RunStarted::new(self.thread.clone(), self.run.clone());
            let parent = self.input().and_then(|input| input.parent_run_id.clone());
            started.parent_run_id = parent;
            // The first event of a run that names its thread and nothing else keeps every rule.
            let _ = self.take(Batch::new(vec![started.into()]), fold, out);
        }
    }

    /// What can be said of the batch without looking at the log.
    fn check_places(&self, events: &[(Event, Encoded)], ends: bool) -> Result<()> {
        let problem = |at: usize, problem| {
            let kind = events.get(at).map_or("nothing", |(event, _)| event.type_name()).to_owned();
            Err(JournalError::Misplaced { event: at, kind, problem })
        };
        for (at, (event, _)) in events.iter().enumerate() {
            let last = ends && at + 1 == events.len();
            match event {
                Event::TextMessageChunk(_)
                | Event::ToolCallChunk(_)
                | Event::ReasoningMessageChunk(_) => {
                    return problem(at, "is shorthand: expand chunks before they are logged");
                }
                Event::RunStarted(_) if at > 0 || self.opening.is_none() => {
                    return problem(at, "opens a run a second time");
                }
                Event::RunStarted(event) if event.run_id != self.run => {
                    return problem(at, "names another run than the lease");
                }
                event if event.is_terminal() && !last => {
                    return problem(at, "ends the run: finish the run with it, as the last event");
                }
                event if last && !event.is_terminal() => {
                    return problem(at, "does not end the run, as the last event here has to");
                }
                _ => {}
            }
        }
        if ends && events.is_empty() {
            return problem(0, "does not end the run, as the last event here has to");
        }
        Ok(())
    }

    fn take(&mut self, batch: Batch, fold: &mut Fold, out: &mut Vec<Encoded>) -> Result<()> {
        for (accepted, (mut event, mut encoded)) in batch.0.into_iter().enumerate() {
            let mut opening = None;
            if let Event::RunStarted(started) = &mut event {
                opening = self.opening.clone();
                if let Some(opening) = &opening
                    && started.input.is_none()
                {
                    started.input = Some(opening.input.clone());
                    encoded = Encoded::from(&event);
                }
            }
            if let Some(how) = BrokenOff::by(&event) {
                fold.break_off(how, out);
            }
            fold.push(&event)
                .map_err(|fault| JournalError::Rule { accepted, fault: Box::new(fault) })?;
            out.push(encoded);
            if let Some(Opening { state, .. }) = opening {
                self.opening = None;
                if let Some(state) = state {
                    push_sound(&StateSnapshot::new(state).into(), fold, out);
                }
            }
        }
        Ok(())
    }
}

/// Events on their way into a log, written as JSON already, so that nobody waits for that who holds
/// a lock.
#[derive(Clone, Debug, Default)]
pub struct Batch(Vec<(Event, Encoded)>);

impl Batch {
    /// Writes the events.
    #[must_use]
    pub fn new(events: Vec<Event>) -> Self {
        let mut batch = Self(Vec::with_capacity(events.len()));
        for event in events {
            batch.push(event);
        }
        batch
    }

    /// Writes one more event, and gives how many bytes of JSON text it is.
    pub fn push(&mut self, event: Event) -> u64 {
        let encoded = Encoded::from(&event);
        let bytes = encoded.json.len() as u64;
        self.0.push((event, encoded));
        bytes
    }

    /// Takes the last event out again.
    pub fn pop(&mut self) -> Option<Event> {
        self.0.pop().map(|(event, _)| event)
    }

    /// The events as JSON text, in order.
    pub fn texts(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter().map(|(_, encoded)| &encoded.json)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes of JSON text they are.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, encoded)| encoded.json.len() as u64).sum()
    }
}

/// Why a run is ended by its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// Its lease lapsed: it failed.
    LeaseLapsed,
    /// Another run takes its place: it is cancelled.
    Superseded,
}

/// Waits until whoever runs a run is told to stop. The lease is lost where there is nobody to tell it,
/// or nobody any more.
pub async fn told_to_stop(stop: Option<watch::Receiver<Option<Stop>>>) -> Stop {
    let Some(mut stop) = stop else {
        return Stop::LeaseLost;
    };
    let told = stop.wait_for(Option::is_some).await;
    told.ok().and_then(|told| *told).unwrap_or(Stop::LeaseLost)
}

/// How a terminal event ends its run.
#[must_use]
pub fn ending(event: &Event) -> Ending {
    match event {
        Event::RunFinished(finished) => Ending::from(&**finished),
        Event::RunError(_) => Ending::Failed,
        _ => Ending::Truncated,
    }
}

/// Takes an event that the journal makes itself and that keeps every rule.
fn push_sound(event: &Event, fold: &mut Fold, out: &mut Vec<Encoded>) {
    if fold.push(event).is_ok() {
        out.push(Encoded::from(event));
    }
}
