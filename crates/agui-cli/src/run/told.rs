//! The lines about what happens beside the text.

use std::collections::HashMap;

use agui_stream::fold::{Change, Conversation};
use agui_types::{Event, Interrupt, Message, PatchOp, PatchOperation, SubagentRunId, TokenUsage};

use crate::terminal::{MOST_SHOWN, first, shortened};

/// How subagents are called, by their invocations. Those that were never introduced have no name.
#[derive(Debug, Default)]
pub(super) struct Subagents {
    names: HashMap<SubagentRunId, String>,
}

impl Subagents {
    /// An agent may start any number of them; so many are known at a time.
    const MOST: usize = 1000;

    /// Takes note of an invocation that starts.
    pub(super) fn note(&mut self, event: &Event) {
        if let Event::SubagentStarted(event) = event
            && self.names.len() < Self::MOST
        {
            self.names.insert(event.subagent_run_id.clone(), first(&event.name, 60));
        }
    }

    /// Its name; that of one nobody introduced is its id.
    pub(super) fn name(&self, id: &SubagentRunId) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| first(id.as_str(), 60))
    }
}

/// The lines about an event and what it changed.
pub(super) fn about(
    event: &Event,
    changes: &[Change],
    conversation: &Conversation,
    subagents: &Subagents,
) -> Vec<String> {
    let mut lines: Vec<String> = about_event(event, subagents).into_iter().collect();
    lines.extend(changes.iter().filter_map(|change| about_change(event, change, conversation)));
    if let Some(owner) = event.attribution() {
        let name = subagents.name(owner);
        lines.iter_mut().for_each(|line| *line = format!("{name}: {line}"));
    }
    lines
}

/// A line about an event that leaves no trace in the conversation.
fn about_event(event: &Event, subagents: &Subagents) -> Option<String> {
    Some(match event {
        Event::RunStarted(event) => format!(
            "run {} of thread {}",
            shortened(event.run_id.as_str()),
            shortened(event.thread_id.as_str())
        ),
        Event::StepStarted(event) => format!("step {} starts", shortened(&event.step_name)),
        Event::StepFinished(event) => format!("step {} ends", shortened(&event.step_name)),
        Event::SubagentStarted(event) => {
            let parent = event.parent_subagent_run_id.as_ref();
            let of = parent.map(|id| format!(" of {}", subagents.name(id))).unwrap_or_default();
            format!("subagent {}{of} starts", subagents.name(&event.subagent_run_id))
        }
        Event::SubagentFinished(event) => {
            let result = event.result.as_ref().map(|result| shortened(result.as_str()));
            let result = result.map(|result| format!(": {result}")).unwrap_or_default();
            format!("subagent {} ends{result}", subagents.name(&event.subagent_run_id))
        }
        Event::SubagentError(event) => format!(
            "subagent {} failed: {}",
            subagents.name(&event.subagent_run_id),
            shortened(&event.message)
        ),
        Event::Custom(event) => {
            format!("custom {}: {}", shortened(&event.name), shortened(event.value.as_str()))
        }
        Event::Raw(event) => format!("raw: {}", shortened(event.event.as_str())),
        _ => return None,
    })
}

/// A line about what an event changed. Costs no more than the event is long.
fn about_change(event: &Event, change: &Change, conversation: &Conversation) -> Option<String> {
    let messages = conversation.messages();
    Some(match change {
        Change::ToolCallEnded { tool_call, .. } => {
            let (_, call) = messages.find_call(tool_call.as_str())?;
            let arguments = shortened(&call.function.arguments);
            format!("tool call {} {arguments}", shortened(&call.function.name))
        }
        Change::MessageCreated { message, .. } => match messages.find(message.as_str())? {
            Message::Tool(answer) => {
                let called = messages.find_call(answer.tool_call_id.as_str());
                let name = called.map_or("?", |(_, call)| &call.function.name);
                format!("tool result of {}: {}", shortened(name), shortened(&answer.content.text()))
            }
            Message::Activity(activity) => {
                let content = shortened(activity.content.as_str());
                format!("activity {}: {content}", shortened(&activity.activity_type))
            }
            _ => return None,
        },
        // The patch is told, not the activity: its text is not made for a mere look.
        Change::ActivityPatched { .. } => match event {
            Event::ActivityDelta(delta) => {
                format!("activity {}: {}", shortened(&delta.activity_type), patched(&delta.patch))
            }
            _ => return None,
        },
        Change::TextEnded { message } => match messages.find(message.as_str())? {
            Message::Reasoning(message) => format!("reasoning: {}", shortened(&message.content)),
            _ => return None,
        },
        Change::StateReplaced => match event {
            Event::StateSnapshot(event) => format!("state: {}", shortened(event.snapshot.as_str())),
            _ => return None,
        },
        Change::StatePatched { .. } => match event {
            Event::StateDelta(event) => format!("state: {}", patched(&event.delta)),
            _ => return None,
        },
        _ => return None,
    })
}

/// What an interrupt asks, and its id to answer it by.
pub(super) fn about_interrupt(interrupt: &Interrupt, subagents: &Subagents) -> String {
    let asks = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
    let owner = interrupt.subagent_run_id.as_ref();
    let owner = owner.map(|id| format!("{}: ", subagents.name(id))).unwrap_or_default();
    format!("{owner}{} ({})", shortened(asks), shortened(interrupt.id.as_str()))
}

/// What was used of one model.
pub(super) fn about_usage(usage: &TokenUsage) -> String {
    let names = [&usage.provider, &usage.model].into_iter().flatten();
    let mut line = String::from("usage:");
    for name in names {
        line.push_str(&format!(" {}", first(name, 60)));
    }
    let counts = [
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.total(), "in all"),
        (usage.reasoning_tokens, "of them reasoning"),
        (usage.cached_input_tokens, "from a cache"),
        (usage.cache_write_input_tokens, "to a cache"),
    ];
    let told =
        counts.iter().filter_map(|(count, what)| Some(format!("{} {what}", (*count)?.get())));
    let told: Vec<String> = told.collect();
    format!("{line} {} tokens", told.join(", "))
}

/// The operations of a patch, as far as they fit into a line.
fn patched(patch: &[PatchOperation]) -> String {
    let mut told = String::new();
    for operation in patch {
        if told.len() > MOST_SHOWN {
            break;
        }
        told.extend((!told.is_empty()).then_some("; "));
        told.push_str(&match &operation.op {
            PatchOp::Add { path, value } => format!("add {path} {}", shortened(value.as_str())),
            PatchOp::Remove { path } => format!("remove {path}"),
            PatchOp::Replace { path, value } => {
                format!("replace {path} {}", shortened(value.as_str()))
            }
            PatchOp::Move { from, path } => format!("move {from} to {path}"),
            PatchOp::Copy { from, path } => format!("copy {from} to {path}"),
            // Nothing changes by these.
            _ => continue,
        });
    }
    shortened(&told)
}
