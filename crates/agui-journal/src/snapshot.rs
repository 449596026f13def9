//! A thread as its events leave it.

use std::collections::HashMap;

use agui_types::event::{
    MessagesSnapshot, RunFinished, RunStarted, StateSnapshot, ToolCallEnd, ToolCallStart,
};
use agui_types::{
    Event, Interrupt, InterruptOutcome, Interrupts, Json, Message, ResumeEntry, RunAgentInput,
    RunFinishedOutcome, RunId, SuccessOutcome, ThreadId, ToolCallId,
};

/// A thread folded up to a position, a run that is going on included.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The last event that is folded in; 0 where there is none.
    pub position: u64,
    /// The messages, in order. One that is being streamed has the text it has so far.
    pub messages: Vec<Message>,
    /// The state; `{}` where nobody has set one.
    pub state: Json,
    /// The interrupts that nobody has answered.
    pub open_interrupts: Vec<Interrupt>,
    /// The tool calls that nobody has answered, in the order made.
    pub pending_tool_calls: Vec<ToolCallId>,
    /// Those of the pending tool calls that the run that is going on has made.
    pub pending_of_run: Vec<ToolCallId>,
    /// The answers to interrupts that the run that is going on was given, as its `RUN_STARTED` says.
    pub resume: Vec<ResumeEntry>,
    /// The run that is going on.
    pub running: Option<RunId>,
    /// Whether the `RUN_STARTED` of the run that is going on is folded in; where it is not, it is
    /// still to come.
    pub started: bool,
    /// The events that opened what is open: starts of messages, calls, reasoning, steps and
    /// subagents, in the order opened. Sent after the snapshot, they make the rest of the run a
    /// stream that keeps the rules.
    pub open: Vec<Event>,
}

impl Snapshot {
    /// The events that show the thread to somebody who has not seen its log: with the log behind the
    /// position they are a stream that keeps the rules, and that folds to what the whole log folds to.
    ///
    /// They are the run that is going on, as far as it has come; or, where none has started, a run
    /// `asked` that holds the thread as it is and finishes. A run before says what earlier ones have
    /// left open: interrupts that the run that is going on may answer or not, and tool calls.
    #[must_use]
    pub fn restated(self, thread: &ThreadId, asked: &RunId) -> Vec<Event> {
        let running = self.running.clone().filter(|_| self.started);
        let opened = running.is_some().then(|| self.opened_again());
        let interrupts = Interrupts::try_from(self.open_interrupts).ok();
        let asks = interrupts.map(|open| RunFinishedOutcome::from(InterruptOutcome::new(open)));
        let of_run: &[ToolCallId] = if running.is_some() { &self.pending_of_run } else { &[] };
        let earlier = self.pending_tool_calls.iter().filter(|call| !of_run.contains(call)).cloned();
        let earlier: Vec<ToolCallId> = earlier.collect();
        let waits = (!earlier.is_empty())
            .then(|| SuccessOutcome::new().pending_tool_call_ids(earlier).into());

        let run = running.as_ref().unwrap_or(asked);
        let mut before: Vec<RunFinishedOutcome> = [waits, asks].into_iter().flatten().collect();
        let last = if running.is_some() { None } else { before.pop() };
        let mut events = Vec::new();
        for (at, outcome) in before.into_iter().enumerate() {
            let id = RunId::from(format!("{run}-before-{}", at + 1));
            events.push(RunStarted::new(thread, &id).into());
            events.push(RunFinished::new(thread, &id).outcome(outcome).into());
        }
        let mut started = RunStarted::new(thread, run);
        if running.is_some() && !self.resume.is_empty() {
            // Complete, since some readers want that of an input.
            let mut input = RunAgentInput::new(thread, run, Vec::new());
            (input.tools, input.context) = (Some(Vec::new()), Some(Vec::new()));
            input.resume = Some(self.resume);
            started = started.input(input);
        }
        events.push(started.into());
        events.push(StateSnapshot::new(self.state).into());
        events.push(MessagesSnapshot::new(self.messages).into());
        if let Some(opened) = opened {
            events.extend(opened);
        } else {
            let mut finished = RunFinished::new(thread, run);
            finished.outcome = last;
            events.push(finished.into());
        }
        events
    }

    /// What opens again what is open. A call of the run that has ended and waits for a result is begun
    /// and ended again, since nothing else in a run that goes on says so; in the order made.
    fn opened_again(&self) -> Vec<Event> {
        let waits = |event: &Event| match event {
            Event::ToolCallStart(start) if self.pending_of_run.contains(&start.tool_call_id) => {
                Some(start.tool_call_id.clone())
            }
            _ => None,
        };
        if self.open.iter().filter_map(waits).eq(self.pending_of_run.iter().cloned()) {
            return self.open.clone();
        }
        // Whoever is announced is announced before anything is theirs (P-57).
        let (announced, others): (Vec<_>, Vec<_>) =
            self.open.iter().cloned().partition(|it| matches!(it, Event::SubagentStarted(_)));
        let again = self.calls_of_run().into_iter().flat_map(|start| {
            let mut end = ToolCallEnd::new(start.tool_call_id.clone());
            end.subagent_run_id = start.subagent_run_id.clone();
            [start.into(), end.into()]
        });
        announced.into_iter().chain(again).chain(others).collect()
    }

    /// What starts the calls of the run that nobody has answered, as the messages hold them.
    fn calls_of_run(&self) -> Vec<ToolCallStart> {
        let mut held = HashMap::new();
        for message in &self.messages {
            let Message::Assistant(message) = message else { continue };
            for call in message.tool_calls.iter().flatten() {
                let mut start = ToolCallStart::new(call.id.clone(), call.function.name.clone());
                start.parent_message_id = Some(message.id.clone());
                start.subagent_run_id = message.subagent_run_id.clone();
                held.entry(&call.id).or_insert(start);
            }
        }
        self.pending_of_run.iter().filter_map(|call| held.remove(call)).collect()
    }
}

/// What the last run that ended left for others to do.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The interrupts that nobody has answered. The next run answers all of them in its `resume`.
    pub open_interrupts: Vec<Interrupt>,
    /// The tool calls that nobody has answered, in the order made.
    pub pending_tool_calls: Vec<ToolCallId>,
}

impl Facts {
    /// What is left to do, for journals.
    #[must_use]
    pub fn new(open_interrupts: Vec<Interrupt>, pending_tool_calls: Vec<ToolCallId>) -> Self {
        Self { open_interrupts, pending_tool_calls }
    }
}
