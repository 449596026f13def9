//! The rules of order: what may come when, what is open, and whose it is.

mod faults;
mod items;
mod open;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use agui_types::event::{
    ActivitySnapshot, ReasoningEncryptedValue, RunFinished, RunStarted, StepFinished, StepStarted,
    SubagentStarted, ToolCallStart,
};
use agui_types::event::{EncryptedValueSubtype, Event, EventType};
use agui_types::{
    InterruptId, Message, MessageId, RunFinishedOutcome, RunId, SubagentRunId, ThreadId, ToolCallId,
};

use crate::Fault;
use items::{Items, Noun};
pub use open::OpenItem;

/// Who something belongs to: a subagent invocation, or the parent agent.
type Owner = Option<SubagentRunId>;

/// Checks a stream of events against the rules of order: the life of runs (C-1 to C-9, C-17), what
/// is opened and closed (C-38, C-39, C-58), ownership (C-77 to C-79), steps (C-8) and interrupt ids
/// (P-68).
///
/// Takes one event after another with [`push`](Self::push) and is told the end of the stream with
/// [`finish`](Self::finish). Chunks are to be [expanded](crate::ChunkExpander) before (C-43); one
/// that arrives here all the same, and an event of unknown type, is only checked against the life of
/// the run.
///
/// Holds the ids met in the current run, so that a reopened item keeps its owner; they are forgotten
/// when the next run starts. An event that continues an item allocates nothing.
///
/// ```
/// use agui_stream::Verifier;
/// use agui_types::Event;
/// use agui_types::event::{RunStarted, TextMessageContent};
///
/// let mut verifier = Verifier::new();
/// verifier.push(&Event::from(RunStarted::new("thread", "run")))?;
/// let fault = verifier.push(&Event::from(TextMessageContent::new("m1", "Hi"))).unwrap_err();
/// assert_eq!(fault.rule, "C-38");
/// assert_eq!(fault.event, Some(1));
/// # Ok::<(), agui_stream::Fault>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    /// The run that was asked for.
    requested: Option<RunId>,
    /// The thread that every run belongs to: the requested one, else the first run's.
    thread: Option<ThreadId>,
    phase: Phase,
    /// The run started last.
    run: Option<RunId>,
    /// How many events were accepted.
    accepted: u64,
    /// How many items were opened in this run.
    opened: u64,
    messages: Items<MessageId>,
    calls: Items<ToolCallId>,
    reasoning: Items<MessageId>,
    spans: Items<MessageId>,
    subagents: Items<SubagentRunId>,
    activities: HashMap<MessageId, Owner>,
    /// The open steps of each owner, with when they were opened.
    steps: HashMap<Owner, HashMap<String, u64>>,
    fault: Option<Box<Fault>>,
}

/// Where a stream is in the life of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// No run has started.
    NotStarted,
    /// A run is going on.
    Active {
        /// Its thread.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
    },
    /// The last run ended with `RUN_FINISHED`.
    Finished,
    /// The last run ended with `RUN_ERROR`.
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    NotStarted,
    Active,
    Finished,
    Failed,
}

const TEXT: Noun = Noun::new("text message", EventType::TextMessageStart);
const CALL: Noun = Noun::new("tool call", EventType::ToolCallStart);
const REASONING: Noun = Noun::new("reasoning message", EventType::ReasoningMessageStart);
const SPAN: Noun = Noun::new("reasoning span", EventType::ReasoningStart);

impl Verifier {
    /// A verifier for a stream nobody asked for: a capture, a log.
    ///
    /// The first run's thread is the thread of the stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A verifier for the answer to a `RunAgentInput`: every run on the stream has to belong to its
    /// thread (C-17, P-5).
    ///
    /// The runs are not held to `run_id`, since replayed runs may come with the requested one (P-7);
    /// it is named when nothing comes at all.
    #[must_use]
    pub fn for_run(thread_id: ThreadId, run_id: RunId) -> Self {
        Self { requested: Some(run_id), thread: Some(thread_id), ..Self::default() }
    }

    /// Checks the next event.
    ///
    /// Fails where a rule is broken; the event is then not part of the stream, and every further
    /// call fails with the same fault. The fault counts events as they were pushed.
    pub fn push(&mut self, event: &Event) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(Fault::clone(fault));
        }
        self.try_push(event).inspect_err(|fault| self.fault = Some(Box::new(fault.clone())))
    }

    /// Checks the next event, and lets the stream go on without it where it breaks a rule: for a
    /// producer that is still free to leave it out.
    ///
    /// Fails like [`push`](Self::push), but is not failed afterwards.
    pub fn try_push(&mut self, event: &Event) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(Fault::clone(fault));
        }
        self.check(event).map_err(|fault| fault.of_event(self.accepted))?;
        self.accepted += 1;
        Ok(())
    }

    /// Checks that the stream may end here.
    ///
    /// Fails with [`Class::Truncated`](crate::Class::Truncated) where a run is going on or none ever
    /// started (C-15, T-9), and with the fault of an earlier event where there was one.
    pub fn finish(&mut self) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(Fault::clone(fault));
        }
        let truncated = match self.phase {
            Phase::Finished | Phase::Failed => return Ok(()),
            Phase::NotStarted => faults::nothing_came(self.requested.as_ref()),
            Phase::Active => faults::cut_off(self.run.as_ref(), &self.open_items()),
        };
        self.fault = Some(Box::new(truncated.clone()));
        Err(truncated)
    }

    /// Where the stream is in the life of its runs.
    #[must_use]
    pub fn run(&self) -> RunState {
        match (self.phase, &self.thread, &self.run) {
            (Phase::Active, Some(thread_id), Some(run_id)) => {
                RunState::Active { thread_id: thread_id.clone(), run_id: run_id.clone() }
            }
            (Phase::NotStarted | Phase::Active, ..) => RunState::NotStarted,
            (Phase::Finished, ..) => RunState::Finished,
            (Phase::Failed, ..) => RunState::Failed,
        }
    }

    /// What is open now, in the order opened. [`closing_events`](Self::closing_events) closes it.
    #[must_use]
    pub fn open_items(&self) -> Vec<OpenItem> {
        let mut open: Vec<(u64, OpenItem)> = Vec::new();
        open.extend(self.messages.open(|message_id, owner| OpenItem::Text { message_id, owner }));
        open.extend(
            self.calls.open(|tool_call_id, owner| OpenItem::ToolCall { tool_call_id, owner }),
        );
        open.extend(
            self.reasoning
                .open(|message_id, owner| OpenItem::ReasoningMessage { message_id, owner }),
        );
        open.extend(
            self.spans.open(|message_id, owner| OpenItem::ReasoningSpan { message_id, owner }),
        );
        open.extend(
            self.subagents
                .open(|subagent_run_id, owner| OpenItem::Subagent { subagent_run_id, owner }),
        );
        open.extend(self.steps.iter().flat_map(|(owner, steps)| {
            steps.iter().map(|(name, opened)| {
                (*opened, OpenItem::Step { name: name.clone(), owner: owner.clone() })
            })
        }));
        open.sort_unstable_by_key(|(opened, _)| *opened);
        open.into_iter().map(|(_, item)| item).collect()
    }

    /// The events that close everything that is open, in an order that keeps every rule: what was
    /// opened last is closed first, a subagent after all that it and its own subagents opened. A
    /// `RUN_FINISHED` may follow (P-9).
    #[must_use]
    pub fn closing_events(&self) -> Vec<Event> {
        let (subagents, others): (Vec<_>, Vec<_>) = self
            .open_items()
            .into_iter()
            .rev()
            .partition(|item| matches!(item, OpenItem::Subagent { .. }));
        others.iter().chain(&subagents).map(OpenItem::closing_event).collect()
    }

    /// Whether a subagent was announced in this run, and has ended since: nothing more is attributed to
    /// it (P-57).
    #[must_use]
    pub fn is_gone(&self, subagent: &SubagentRunId) -> bool {
        self.subagents.is_known(subagent) && !self.subagents.is_open(subagent)
    }

    #[inline]
    fn check(&mut self, event: &Event) -> Result<(), Fault> {
        if self.phase != Phase::Active {
            self.check_outside(event)?;
        }
        match event {
            Event::TextMessageContent(event) => self.messages.check(
                TEXT,
                &event.message_id,
                &event.subagent_run_id,
                EventType::TextMessageContent,
            ),
            Event::ToolCallArgs(event) => self.calls.check(
                CALL,
                &event.tool_call_id,
                &event.subagent_run_id,
                EventType::ToolCallArgs,
            ),
            Event::ReasoningMessageContent(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.reasoning.check(REASONING, id, tag, EventType::ReasoningMessageContent)
            }
            other => self.check_rare(other),
        }
    }

    /// Everything that does not come by the token.
    fn check_rare(&mut self, event: &Event) -> Result<(), Fault> {
        let opened = &mut self.opened;
        match event {
            Event::RunStarted(event) => self.start(event),
            Event::RunFinished(event) => self.finish_run(event),
            Event::RunError(_) => {
                // C-9: whatever was open is abandoned.
                self.forget_run();
                self.phase = Phase::Failed;
                Ok(())
            }
            Event::TextMessageStart(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.messages.start(TEXT, id, tag, tag, opened)
            }
            Event::TextMessageEnd(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.messages.end(TEXT, id, tag, EventType::TextMessageEnd)
            }
            Event::ToolCallStart(event) => self.start_call(event),
            Event::ToolCallEnd(event) => {
                let (id, tag) = (&event.tool_call_id, &event.subagent_run_id);
                self.calls.end(CALL, id, tag, EventType::ToolCallEnd)
            }
            Event::ToolCallResult(event) => {
                self.messages.learn_new(&event.message_id, &event.subagent_run_id);
                Ok(())
            }
            Event::ReasoningStart(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.spans.start(SPAN, id, tag, tag, opened)
            }
            Event::ReasoningEnd(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.spans.end(SPAN, id, tag, EventType::ReasoningEnd)
            }
            Event::ReasoningMessageStart(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.reasoning.start(REASONING, id, tag, tag, opened)
            }
            Event::ReasoningMessageEnd(event) => {
                let (id, tag) = (&event.message_id, &event.subagent_run_id);
                self.reasoning.end(REASONING, id, tag, EventType::ReasoningMessageEnd)
            }
            Event::ReasoningEncryptedValue(event) => self.check_encrypted_value(event),
            Event::StepStarted(event) => self.start_step(event),
            Event::StepFinished(event) => self.finish_step(event),
            Event::SubagentStarted(event) => self.start_subagent(event),
            Event::SubagentFinished(event) => {
                self.end_subagent(&event.subagent_run_id, EventType::SubagentFinished)
            }
            Event::SubagentError(event) => {
                self.end_subagent(&event.subagent_run_id, EventType::SubagentError)
            }
            Event::ActivitySnapshot(event) => {
                self.snapshot_activity(event);
                Ok(())
            }
            Event::ActivityDelta(event) => match self.activities.get(&event.message_id) {
                Some(owner) => {
                    let id = event.message_id.as_str();
                    same_owner(
                        EventType::ActivityDelta,
                        "activity",
                        id,
                        &event.subagent_run_id,
                        owner,
                    )
                }
                None => Ok(()),
            },
            Event::MessagesSnapshot(event) => {
                self.learn(&event.messages);
                Ok(())
            }
            // Chunks, state, RAW, CUSTOM and what is unknown open and close nothing.
            _ => Ok(()),
        }
    }

    /// The first event of a stream, or one after a run closed.
    fn check_outside(&self, event: &Event) -> Result<(), Fault> {
        match (self.phase, event) {
            (Phase::Active, _) | (_, Event::RunStarted(_)) => Ok(()),
            (Phase::NotStarted | Phase::Finished, Event::RunError(_)) => Ok(()),
            (Phase::NotStarted, _) => Err(faults::not_first(event.type_name())),
            (Phase::Finished, _) => Err(faults::after_finish(event.type_name())),
            (Phase::Failed, _) => Err(faults::after_error(event.type_name())),
        }
    }

    fn start(&mut self, event: &RunStarted) -> Result<(), Fault> {
        if self.phase == Phase::Active {
            return Err(faults::nested_run(self.run.as_ref(), &event.run_id));
        }
        self.check_thread("RUN_STARTED", &event.thread_id)?;
        self.forget_run();
        self.phase = Phase::Active;
        self.thread = Some(event.thread_id.clone());
        self.run = Some(event.run_id.clone());
        if let Some(input) = &event.input {
            self.learn(&input.messages);
        }
        Ok(())
    }

    fn finish_run(&mut self, event: &RunFinished) -> Result<(), Fault> {
        self.check_thread("RUN_FINISHED", &event.thread_id)?;
        if let Some(run) = self.run.as_ref().filter(|run| **run != event.run_id) {
            return Err(faults::other_run(run, &event.run_id));
        }
        if self.has_open() {
            return Err(faults::still_open(&self.open_items()));
        }
        if let Some(RunFinishedOutcome::Interrupt(outcome)) = &event.outcome {
            let mut seen: HashSet<&InterruptId> = HashSet::new();
            for (at, interrupt) in outcome.interrupts.iter().enumerate() {
                if !seen.insert(&interrupt.id) {
                    return Err(faults::duplicate_interrupt(at, &interrupt.id));
                }
            }
        }
        self.forget_run();
        self.phase = Phase::Finished;
        Ok(())
    }

    /// C-17, P-5.
    fn check_thread(&self, event: &str, found: &ThreadId) -> Result<(), Fault> {
        match &self.thread {
            Some(expected) if expected != found => {
                Err(faults::other_thread(event, expected, found))
            }
            _ => Ok(()),
        }
    }

    fn has_open(&self) -> bool {
        self.messages.has_open()
            || self.calls.has_open()
            || self.reasoning.has_open()
            || self.spans.has_open()
            || self.subagents.has_open()
            || !self.steps.is_empty()
    }

    fn start_call(&mut self, event: &ToolCallStart) -> Result<(), Fault> {
        let tag = &event.subagent_run_id;
        let held = event.parent_message_id.as_ref().and_then(|parent| {
            let holder = self.messages.owner(parent.as_str())?;
            Some((parent, holder))
        });
        let id = &event.tool_call_id;
        // One that starts again says by itself whose it is, or stays whose it was.
        let before = self.calls.owner(id.as_str()).filter(|_| !self.calls.is_open(id));
        let claimed = if tag.is_some() { Some(tag) } else { before };
        let owner = match held {
            Some((parent, holder)) => match claimed {
                Some(claimed) if claimed != holder => {
                    return Err(faults::other_holder(parent, claimed, holder));
                }
                // An unattributed call belongs to whom its message belongs to.
                _ => holder,
            },
            None => tag,
        };
        self.calls.start(CALL, id, tag, owner, &mut self.opened)
    }

    /// C-77: a value is attributed like what it belongs to.
    fn check_encrypted_value(&self, event: &ReasoningEncryptedValue) -> Result<(), Fault> {
        let id = event.entity_id.as_str();
        let (kind, owner) = match event.subtype {
            EncryptedValueSubtype::Message => {
                ("message", self.messages.owner(id).or_else(|| self.reasoning.owner(id)))
            }
            EncryptedValueSubtype::ToolCall => ("tool call", self.calls.owner(id)),
            _ => return Ok(()),
        };
        owner.map_or(Ok(()), |owner| {
            let event_type = EventType::ReasoningEncryptedValue;
            same_owner(event_type, kind, id, &event.subagent_run_id, owner)
        })
    }

    fn snapshot_activity(&mut self, event: &ActivitySnapshot) {
        // C-72: a snapshot that replaces says anew whose the activity is.
        if event.replace != Some(false) || !self.activities.contains_key(&event.message_id) {
            self.activities.insert(event.message_id.clone(), event.subagent_run_id.clone());
        }
    }

    fn start_step(&mut self, event: &StepStarted) -> Result<(), Fault> {
        let (owner, name) = (&event.subagent_run_id, &event.step_name);
        if self.steps.get(owner).is_some_and(|steps| steps.contains_key(name)) {
            return Err(faults::step_open(name, owner));
        }
        self.opened += 1;
        self.steps.entry(owner.clone()).or_default().insert(name.clone(), self.opened);
        Ok(())
    }

    fn finish_step(&mut self, event: &StepFinished) -> Result<(), Fault> {
        let (owner, name) = (&event.subagent_run_id, &event.step_name);
        let closed = self.steps.get_mut(owner).and_then(|steps| steps.remove(name));
        if closed.is_none() {
            // P-62: here a missing tag is no agreement.
            let others = self.steps.iter().find(|(_, steps)| steps.contains_key(name));
            return Err(match others {
                Some((other, _)) => faults::other_step(name, owner, other),
                None => faults::step_not_open(name),
            });
        }
        if self.steps.get(owner).is_some_and(HashMap::is_empty) {
            self.steps.remove(owner);
        }
        Ok(())
    }

    fn start_subagent(&mut self, event: &SubagentStarted) -> Result<(), Fault> {
        let (id, parent) = (&event.subagent_run_id, &event.parent_subagent_run_id);
        if self.subagents.is_known(id) {
            return Err(faults::subagent_known(id, self.subagents.is_open(id)));
        }
        if let Some(unknown) = parent.as_ref().filter(|parent| !self.subagents.is_known(parent)) {
            return Err(faults::unknown_parent(unknown));
        }
        self.subagents.insert(id, parent, &mut self.opened);
        Ok(())
    }

    fn end_subagent(&mut self, id: &SubagentRunId, event: EventType) -> Result<(), Fault> {
        if self.subagents.close(id) { Ok(()) } else { Err(faults::subagent_not_open(id, event)) }
    }

    /// Takes over whom the messages of a snapshot, or of an echoed input, belong to.
    fn learn(&mut self, messages: &[Message]) {
        for message in messages {
            let owner = || message.attribution().cloned();
            match message {
                Message::Developer(held) => self.messages.learn(&held.id, owner()),
                Message::System(held) => self.messages.learn(&held.id, owner()),
                Message::User(held) => self.messages.learn(&held.id, owner()),
                Message::Tool(held) => self.messages.learn(&held.id, owner()),
                Message::Assistant(held) => {
                    self.messages.learn(&held.id, owner());
                    for call in held.tool_calls.iter().flatten() {
                        self.calls.learn(&call.id, owner());
                    }
                }
                Message::Reasoning(held) => self.reasoning.learn(&held.id, owner()),
                Message::Activity(held) => {
                    self.activities.insert(held.id.clone(), owner());
                }
                _ => {}
            }
        }
    }

    /// C-5: a run starts with nothing open and nobody owning anything.
    fn forget_run(&mut self) {
        // New maps, not cleared ones: one long run must not make every later one pay for its size.
        self.opened = 0;
        self.messages = Items::default();
        self.calls = Items::default();
        self.reasoning = Items::default();
        self.spans = Items::default();
        self.subagents = Items::default();
        self.activities = HashMap::new();
        self.steps = HashMap::new();
    }
}

/// C-77: what continues something may leave its owner out, but not name another.
#[inline]
fn same_owner(
    event: EventType,
    kind: &str,
    id: &str,
    tag: &Owner,
    owner: &Owner,
) -> Result<(), Fault> {
    if tag.is_none() || tag == owner {
        Ok(())
    } else {
        Err(faults::other_owner(event, kind, id, tag, owner))
    }
}
