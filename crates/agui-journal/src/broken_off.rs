//! What the log adds before the end of a run that was broken off.

use std::collections::{HashMap, HashSet};

use agui_stream::{Conversation, Verifier};
use agui_types::event::{ToolCallResult, ToolRole};
use agui_types::{Event, MessageContent, MessageId, RunFinishedOutcome, ToolCallId};

/// How a run was broken off. As far as the protocol goes, what is open then may stay open (C-9), or was
/// left so by somebody who was told to stop. In a log nothing is: a replay goes on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenOff {
    Stopped,
    Failed,
}

impl BrokenOff {
    /// Nothing where this is no terminal event, or one behind which nothing may be open.
    pub(crate) fn by(event: &Event) -> Option<Self> {
        match event {
            Event::RunError(_) => Some(Self::Failed),
            Event::RunFinished(finished) => match finished.outcome {
                Some(RunFinishedOutcome::Cancelled(_)) => Some(Self::Stopped),
                _ => None,
            },
            _ => None,
        }
    }

    /// The calls that will never have a result, in the order made: those of the run at hand that
    /// nobody has answered and, since a run that is stopped closes the open interrupts as well, those
    /// that an interrupt is about. Where a run fails these wait for the interrupt's answer. Nobody
    /// answers for a subagent that is gone.
    pub(crate) fn unanswered(
        self,
        conversation: &Conversation,
        verifier: &Verifier,
    ) -> Vec<ToolCallId> {
        let interrupts = conversation.open_interrupts().iter();
        let mut waiting = HashSet::new();
        let mut calls: Vec<&ToolCallId> = interrupts
            .filter_map(|interrupt| interrupt.tool_call_id.as_ref())
            .filter(|call| waiting.insert(*call))
            .collect();
        if self == Self::Failed {
            calls.clear();
        }
        let of_run = conversation.pending_tool_calls_of_run();
        calls.extend(of_run.filter(|call| !waiting.contains(call)));
        let is_missing = |call: &&ToolCallId| {
            let held = conversation.messages().find_call(call.as_str());
            let owner = held.map(|(message, _)| message.subagent_run_id.as_ref());
            let gone = |owner: Option<_>| owner.is_some_and(|owner| verifier.is_gone(owner));
            owner.is_some_and(|owner| !gone(owner)) && !conversation.is_answered(call)
        };
        calls.into_iter().filter(is_missing).cloned().collect()
    }

    /// The result that says why a call has none, as the tools of front ends know it.
    pub(crate) fn result(self, call: &ToolCallId, conversation: &Conversation) -> Event {
        let content = match self {
            Self::Stopped => STOPPED,
            Self::Failed => FAILED,
        };
        let id = result_id(call, conversation);
        let mut result = ToolCallResult::new(id, call.clone(), MessageContent::from(content));
        result.role = Some(ToolRole);
        let held = conversation.messages().find_call(call.as_str());
        result.subagent_run_id = held.and_then(|(message, _)| message.subagent_run_id.clone());
        result.into()
    }
}

const STOPPED: &str = "{\"status\":\"stopped\",\"reason\":\"stop_requested\",\"message\":\"The run was \
                       stopped before the call had a result.\"}";

const FAILED: &str = "{\"status\":\"error\",\"reason\":\"missing_terminal_event\",\"message\":\"The run \
                      failed before the call had a result.\"}";

/// The id of a call's result: one that the thread does not have (P-28).
fn result_id(call: &ToolCallId, conversation: &Conversation) -> MessageId {
    let is_free = |id: &String| conversation.messages().find(id).is_none();
    let plain = format!("{call}-result");
    let others = (2..).map(|at: u64| format!("{plain}-{at}"));
    let mut ids = std::iter::once(plain.clone()).chain(others);
    ids.find(is_free).unwrap_or(plain).into()
}

/// The events among these that end tool calls, by the call.
pub(crate) fn call_ends(closing: Vec<Event>) -> HashMap<ToolCallId, Event> {
    let ends = closing.into_iter().filter_map(|event| match &event {
        Event::ToolCallEnd(end) => Some((end.tool_call_id.clone(), event)),
        _ => None,
    });
    ends.collect()
}
