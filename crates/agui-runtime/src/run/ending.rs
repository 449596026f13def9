//! The end of a run that did not end by itself.

use std::collections::HashSet;

use agui_stream::{RunState, Verifier};
use agui_types::event::{RunError, RunFinished, RunStarted, ToolCallResult, ToolRole};
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
pub(crate) struct Unanswered(IndexMap<ToolCallId, Option<SubagentRunId>>);

impl Unanswered {
    /// Takes note of an event.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart(start) => {
                self.0.insert(start.tool_call_id.clone(), start.subagent_run_id.clone());
            }
            Event::ToolCallResult(result) => {
                self.0.shift_remove(&result.tool_call_id);
            }
            Event::RunStarted(_) => self.0.clear(),
            _ => {}
        }
    }
}

/// What ends the run: its start where it never had one, the ends of everything open, results that say
/// why there are none, and the one terminal event (P-11, P-13). Nothing where it has ended already.
pub(crate) fn end(
    verifier: &Verifier,
    unanswered: &Unanswered,
    started: &RunStarted,
    why: &Why,
) -> Vec<Event> {
    if matches!(verifier.run(), RunState::Finished | RunState::Failed) {
        return Vec::new();
    }
    let mut out = match verifier.run() {
        RunState::Active { .. } => close(verifier, unanswered, why),
        _ => vec![started.clone().into()],
    };
    out.push(match why {
        Why::Stopped => RunFinished::new(started.thread_id.clone(), started.run_id.clone())
            .outcome(CancelledOutcome::new())
            .into(),
        Why::Failed { code, message } => RunError::new(message.clone()).code(*code).into(),
    });
    out
}

/// Closes what is open and answers what is not answered, without the terminal event.
pub(crate) fn close(verifier: &Verifier, unanswered: &Unanswered, why: &Why) -> Vec<Event> {
    let closing = verifier.closing_events();
    let ends: HashSet<&ToolCallId> = closing.iter().filter_map(ended_call).collect();
    let mut out = Vec::new();
    let mut after = verifier.clone();
    let mut take = |event: Event| {
        // A result that breaks a rule, say of an owner that is gone, helps nobody.
        if after.try_push(&event).is_ok() {
            out.push(event);
        }
    };
    // Results first: their subagents are about to be closed.
    for (id, owner) in &unanswered.0 {
        if !ends.contains(id) {
            take(no_result(id, owner.as_ref(), why));
        }
    }
    for event in &closing {
        take(event.clone());
        if let Some(id) = ended_call(event)
            && let Some(owner) = unanswered.0.get(id)
        {
            take(no_result(id, owner.as_ref(), why));
        }
    }
    out
}

fn ended_call(event: &Event) -> Option<&ToolCallId> {
    match event {
        Event::ToolCallEnd(end) => Some(&end.tool_call_id),
        _ => None,
    }
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
