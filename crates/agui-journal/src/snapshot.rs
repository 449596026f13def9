//! A thread as its events leave it.

use agui_types::{Event, Interrupt, Json, Message, RunId, ToolCallId};

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
