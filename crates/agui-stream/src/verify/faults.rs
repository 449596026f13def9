//! What the verifier says where a rule is broken.

use agui_types::event::EventType;
use agui_types::{InterruptId, MessageId, RunId, SubagentRunId, ThreadId};

use super::items::Noun;
use super::{OpenItem, Owner};
use crate::report::{listed, quoted, shortened};
use crate::{Class, Fault};

#[cold]
pub(super) fn not_first(found: &str) -> Fault {
    let fix = "start the stream with RUN_STARTED, or with RUN_ERROR where the run cannot start";
    let found = shortened(found);
    let message = format!("First event must be 'RUN_STARTED' or 'RUN_ERROR', found '{found}'");
    sequence("C-1", "RUN_STARTED or RUN_ERROR", found, fix, message)
}

#[cold]
pub(super) fn after_finish(found: &str) -> Fault {
    let fix = "emit everything of a run before its RUN_FINISHED";
    let found = shortened(found);
    let message = format!(
        "Cannot send '{found}' here: The run has already finished with 'RUN_FINISHED'; only \
         'RUN_STARTED' of another run or a late 'RUN_ERROR' may follow"
    );
    sequence("C-3", "RUN_STARTED, RUN_ERROR or the end", found, fix, message)
}

#[cold]
pub(super) fn after_error(found: &str) -> Fault {
    let fix = "emit nothing of a run after its RUN_ERROR";
    let found = shortened(found);
    let message = format!(
        "Cannot send '{found}' here: The run has already errored with 'RUN_ERROR'; only \
         'RUN_STARTED' of another run may follow"
    );
    sequence("C-3", "RUN_STARTED or the end", found, fix, message)
}

#[cold]
pub(super) fn nested_run(open: Option<&RunId>, started: &RunId) -> Fault {
    let fix = "end the run with RUN_FINISHED or RUN_ERROR before the next one starts";
    let (open, started) = (run(open), run(Some(started)));
    let message = format!("Cannot send 'RUN_STARTED' while a run is still active: {open} is open");
    sequence("C-6", format!("an event of {open}"), format!("the start of {started}"), fix, message)
}

#[cold]
pub(super) fn other_thread(event: &str, expected: &ThreadId, found: &ThreadId) -> Fault {
    let fix = "use the input's threadId on RUN_STARTED and RUN_FINISHED of every run";
    let (expected, found) = (quoted(expected.as_str()), quoted(found.as_str()));
    let message = format!(
        "'{event}' names thread {found}, but every run on the stream must carry the input's \
         threadId, which is {expected}"
    );
    sequence("C-17", format!("threadId {expected}"), found, fix, message).at("/threadId")
}

#[cold]
pub(super) fn other_run(started: &RunId, finished: &RunId) -> Fault {
    let fix = "finish the run under the id it was started with";
    let (started, finished) = (quoted(started.as_str()), quoted(finished.as_str()));
    let message = format!(
        "'RUN_STARTED' and 'RUN_FINISHED' must agree on their runId: {started} was started, \
         {finished} is finished"
    );
    sequence("C-17", format!("runId {started}"), finished, fix, message).at("/runId")
}

#[cold]
pub(super) fn still_open(items: &[OpenItem]) -> Fault {
    let fix = "close everything that was opened, or end the run with RUN_ERROR instead";
    let mut rest: Vec<&OpenItem> = items.iter().collect();
    let mut groups = Vec::new();
    while let Some(kind) = rest.first().map(|item| item.plural()) {
        let (group, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|item| item.plural() == kind);
        let names: Vec<&str> = group.iter().map(|item| item.name()).collect();
        groups.push(format!("while {kind} are still active: {}", listed(&names)));
        rest = others;
    }
    let message = format!("Cannot send 'RUN_FINISHED' {}", groups.join(", "));
    let open: Vec<String> = items.iter().map(ToString::to_string).collect();
    sequence("C-7", "everything closed", listed(&open), fix, message)
}

#[cold]
pub(super) fn duplicate_interrupt(at: usize, id: &InterruptId) -> Fault {
    let fix = "give every interrupt of a run an id of its own";
    let id = quoted(id.as_str());
    let message = format!("The outcome holds two interrupts carrying the id {id}");
    sequence("P-68", "an id no other interrupt has", id, fix, message)
        .at(format!("/outcome/interrupts/{at}/id"))
}

#[cold]
pub(super) fn not_open(noun: Noun, id: &str, event: EventType) -> Fault {
    let Noun { name, start } = noun;
    let fix = format!("open it with {start}, and send nothing for it after its end");
    let id = quoted(id);
    let message = format!(
        "Cannot send '{event}': No active {name} found with ID {id}; a '{start}' must come first"
    );
    sequence("C-38", format!("the id of an open {name}"), id, fix, message).at(id_path(start))
}

#[cold]
pub(super) fn already_open(noun: Noun, id: &str) -> Fault {
    let Noun { name, start } = noun;
    let fix = format!("close the {name} before it is opened again, or use another id");
    let id = quoted(id);
    let message = format!("Cannot send '{start}': A {name} with ID {id} is already in progress");
    sequence("C-39", format!("an id no open {name} has"), id, fix, message).at(id_path(start))
}

#[cold]
pub(super) fn other_owner(
    event: EventType,
    kind: &str,
    id: &str,
    tag: &Owner,
    owner: &Owner,
) -> Fault {
    let fix = "attribute what continues something as its opener was, or leave subagentRunId out";
    let (id, tag, owner) = (quoted(id), named(tag), named(owner));
    let message = format!(
        "Cannot send '{event}': {tag} does not match the owner of the {kind} {id}, which is {owner}"
    );
    sequence("C-77", owner, tag, fix, message).at("/subagentRunId")
}

#[cold]
pub(super) fn other_holder(parent: &MessageId, tag: &Owner, holder: &Owner) -> Fault {
    let fix = "attribute a tool call as the message that carries it, or leave subagentRunId out";
    let (parent, tag, holder) = (quoted(parent.as_str()), named(tag), named(holder));
    let message = format!(
        "Cannot send 'TOOL_CALL_START': {tag} does not match the owner of its parent message \
         {parent}, which is {holder}"
    );
    sequence("P-63", holder, tag, fix, message).at("/subagentRunId")
}

#[cold]
pub(super) fn step_open(name: &str, owner: &Owner) -> Fault {
    let fix = "finish the step with STEP_FINISHED before it starts again";
    let (name, owner) = (quoted(name), named(owner));
    let message = format!("Cannot send 'STEP_STARTED': step {name} of {owner} is already active");
    sequence("C-8", "a step that is not open", name, fix, message).at("/stepName")
}

#[cold]
pub(super) fn step_not_open(name: &str) -> Fault {
    let fix = "start the step with STEP_STARTED first, or leave STEP_FINISHED out";
    let name = quoted(name);
    let message = format!("Cannot send 'STEP_FINISHED' for step {name} that was not started");
    sequence("C-8", "the name of an open step", name, fix, message).at("/stepName")
}

#[cold]
pub(super) fn other_step(name: &str, tag: &Owner, owner: &Owner) -> Fault {
    let fix = "attribute STEP_FINISHED exactly as its STEP_STARTED";
    let (name, tag, owner) = (quoted(name), named(tag), named(owner));
    let message = format!(
        "Cannot send 'STEP_FINISHED' for step {name} of {tag}, that was not started: the step is \
         open under {owner}"
    );
    sequence("P-62", owner, tag, fix, message).at("/subagentRunId")
}

#[cold]
pub(super) fn subagent_known(id: &SubagentRunId, open: bool) -> Fault {
    let fix = "give every invocation of a subagent a subagentRunId of its own";
    let id = quoted(id.as_str());
    let (rule, how) =
        if open { ("P-58", "is already active") } else { ("P-55", "has already ended") };
    let message = format!("Cannot send 'SUBAGENT_STARTED': subagent {id} {how} in this run");
    sequence(rule, "a subagentRunId new to this run", id, fix, message).at("/subagentRunId")
}

#[cold]
pub(super) fn unknown_parent(id: &SubagentRunId) -> Fault {
    let fix = "announce the parent invocation with SUBAGENT_STARTED first";
    let id = quoted(id.as_str());
    let message = format!(
        "Cannot send 'SUBAGENT_STARTED': parentSubagentRunId {id} has not been started in this run"
    );
    sequence("P-64", "an invocation announced in this run", id, fix, message)
        .at("/parentSubagentRunId")
}

#[cold]
pub(super) fn subagent_not_open(id: &SubagentRunId, event: EventType) -> Fault {
    let fix = "announce an invocation with SUBAGENT_STARTED, and end it once";
    let id = quoted(id.as_str());
    let message = format!(
        "Cannot send '{event}': no active subagent found with ID {id}; a 'SUBAGENT_STARTED' must \
         come first"
    );
    sequence("C-79", "an announced, open invocation", id, fix, message).at("/subagentRunId")
}

#[cold]
pub(super) fn nothing_came(requested: Option<&RunId>) -> Fault {
    let whose = requested.map_or_else(String::new, |id| format!(" of {}", run(Some(id))));
    let message = format!(
        "The stream ended without a terminal event: no event{whose} came, 'RUN_STARTED' and then \
         'RUN_FINISHED' or 'RUN_ERROR' were to"
    );
    truncated("RUN_STARTED or RUN_ERROR", message)
}

#[cold]
pub(super) fn cut_off(id: Option<&RunId>, open: &[OpenItem]) -> Fault {
    let open: Vec<String> = open.iter().map(ToString::to_string).collect();
    let and =
        if open.is_empty() { String::new() } else { format!(", with {} open", listed(&open)) };
    let message = format!(
        "The stream ended without a terminal event: 'RUN_FINISHED' or 'RUN_ERROR' of {} is \
         missing{and}",
        run(id)
    );
    truncated("RUN_FINISHED or RUN_ERROR", message)
}

fn sequence(
    rule: &'static str,
    expected: impl Into<Box<str>>,
    found: impl Into<Box<str>>,
    fix: impl Into<Box<str>>,
    message: String,
) -> Fault {
    Fault::new(rule, Class::Sequence, expected, found, fix).message(message)
}

fn truncated(expected: &str, message: String) -> Fault {
    let fix = "end every run with RUN_FINISHED or RUN_ERROR";
    Fault::new("T-9", Class::Truncated, expected, "the end of the stream", fix).message(message)
}

fn id_path(start: EventType) -> &'static str {
    if start == EventType::ToolCallStart { "/toolCallId" } else { "/messageId" }
}

fn run(id: Option<&RunId>) -> String {
    format!("run {}", quoted(id.map_or("", |id| id.as_str())))
}

/// Who an owner is.
fn named(owner: &Owner) -> String {
    match owner {
        Some(id) => format!("subagent {}", quoted(id.as_str())),
        None => "the parent agent".into(),
    }
}
