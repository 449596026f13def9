//! The end of a run that did not end by itself.

use agui_journal::Lease;
use agui_types::event::{RunError, RunFinished, ToolCallEnd, ToolCallResult, ToolRole};
use agui_types::{CancelledOutcome, Event, MessageContent, SubagentRunId, ToolCallId};
use indexmap::IndexMap;
use serde::Serialize;

/// Why a run is ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Somebody asked for it.
    Stopped,
    /// Something failed: a code for programs, a sentence for people.
    Failed { code: &'static str, message: String },
}

/// The tool calls of a run that nothing has answered, in the order made.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(IndexMap<ToolCallId, Call>);

#[derive(Debug)]
struct Call {
    owner: Option<SubagentRunId>,
    /// Whether its arguments are still coming.
    open: bool,
}

/// What an event says of a run's tool calls.
#[derive(Debug)]
pub(crate) enum Note {
    Begun(ToolCallId, Option<SubagentRunId>),
    Ended(ToolCallId),
    Answered(ToolCallId),
    /// Nobody answers for a subagent that is gone.
    Gone(SubagentRunId),
}

impl Note {
    /// Nothing, where it says nothing of them.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::ToolCallStart(start) => {
                Self::Begun(start.tool_call_id.clone(), start.subagent_run_id.clone())
            }
            Event::ToolCallEnd(end) => Self::Ended(end.tool_call_id.clone()),
            Event::ToolCallResult(result) => Self::Answered(result.tool_call_id.clone()),
            Event::SubagentFinished(gone) => Self::Gone(gone.subagent_run_id.clone()),
            Event::SubagentError(gone) => Self::Gone(gone.subagent_run_id.clone()),
            _ => return None,
        })
    }
}

impl Unanswered {
    /// Takes note of what an event says.
    pub(crate) fn see(&mut self, note: Note) {
        match note {
            Note::Begun(call, owner) => {
                self.0.insert(call, Call { owner, open: true });
            }
            Note::Ended(call) => {
                if let Some(call) = self.0.get_mut(&call) {
                    call.open = false;
                }
            }
            Note::Answered(call) => {
                self.0.shift_remove(&call);
            }
            Note::Gone(subagent) => self.0.retain(|_, call| call.owner.as_ref() != Some(&subagent)),
        }
    }

    /// Ends each call that is open, and gives each a result that says why it has none.
    pub(crate) fn answer(&self, why: &Why) -> Vec<Event> {
        let mut out = Vec::new();
        for (id, Call { owner, open }) in &self.0 {
            if *open {
                let mut end = ToolCallEnd::new(id.clone());
                end.subagent_run_id = owner.clone();
                out.push(end.into());
            }
            out.push(no_result(id, owner.as_ref(), why));
        }
        out
    }
}

/// What ends the run on its agent's behalf: results that say why there are none, and the one terminal
/// event (P-11, P-13). The log begins a run that was not begun, and closes whatever else is open.
pub(crate) fn end(unanswered: &Unanswered, lease: &Lease, why: &Why) -> Vec<Event> {
    let mut out = unanswered.answer(why);
    out.push(match why {
        Why::Stopped => RunFinished::new(lease.thread().thread.clone(), lease.run().clone())
            .outcome(CancelledOutcome::new())
            .into(),
        Why::Failed { code, message } => RunError::new(message.clone()).code(*code).into(),
    });
    out
}

fn no_result(call: &ToolCallId, owner: Option<&SubagentRunId>, why: &Why) -> Event {
    // Texts alone: writing them cannot fail.
    let content = serde_json::to_string(&NoResult::because(why)).unwrap_or_default();
    let content = MessageContent::from(content);
    let mut result = ToolCallResult::new(format!("{call}-result"), call.clone(), content);
    result.role = Some(ToolRole);
    result.subagent_run_id = owner.cloned();
    result.into()
}

/// What a call's result says that never came, as the front end's tools know it.
#[derive(Debug, Serialize)]
struct NoResult {
    status: &'static str,
    reason: &'static str,
    message: &'static str,
}

impl NoResult {
    fn because(why: &Why) -> Self {
        match why {
            Why::Stopped => Self {
                status: "stopped",
                reason: "stop_requested",
                message: "The run was stopped before the call had a result.",
            },
            Why::Failed { .. } => Self {
                status: "error",
                reason: "missing_terminal_event",
                message: "The run failed before the call had a result.",
            },
        }
    }
}
