//! The end of a run that did not end by itself.

use agui_types::event::{RunError, RunFinished, RunStarted, ToolCallEnd, ToolCallResult, ToolRole};
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

impl Unanswered {
    /// Whether an event is one to take note of.
    pub(crate) fn concerns(event: &Event) -> bool {
        matches!(
            event,
            Event::ToolCallStart(_)
                | Event::ToolCallEnd(_)
                | Event::ToolCallResult(_)
                | Event::SubagentFinished(_)
                | Event::SubagentError(_)
        )
    }

    /// Takes note of an event.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart(start) => {
                let call = Call { owner: start.subagent_run_id.clone(), open: true };
                self.0.insert(start.tool_call_id.clone(), call);
            }
            Event::ToolCallEnd(end) => {
                if let Some(call) = self.0.get_mut(&end.tool_call_id) {
                    call.open = false;
                }
            }
            Event::ToolCallResult(result) => {
                self.0.shift_remove(&result.tool_call_id);
            }
            // Nobody answers for a subagent that is gone.
            Event::SubagentFinished(gone) => self.drop_of(&gone.subagent_run_id),
            Event::SubagentError(gone) => self.drop_of(&gone.subagent_run_id),
            _ => {}
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

    fn drop_of(&mut self, subagent: &SubagentRunId) {
        self.0.retain(|_, call| call.owner.as_ref() != Some(subagent));
    }
}

/// What ends the run on its agent's behalf: results that say why there are none, and the one terminal
/// event (P-11, P-13). The log begins a run that was not begun, and closes whatever else is open.
pub(crate) fn end(unanswered: &Unanswered, run: &RunStarted, why: &Why) -> Vec<Event> {
    let mut out = unanswered.answer(why);
    out.push(match why {
        Why::Stopped => RunFinished::new(run.thread_id.clone(), run.run_id.clone())
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
