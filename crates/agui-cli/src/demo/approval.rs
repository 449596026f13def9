//! `approval`: a call that waits for someone's consent, over two runs.
//!
//! Nothing is remembered between the runs (P-69): the interrupt's id names the call, so that the
//! answer may reach a process that never saw the question.

use std::collections::HashSet;

use agui_agent::{AgentResult, BoxError, Run};
use agui_types::event::ToolCallStart;
use agui_types::{
    Interrupt, InterruptId, Json, JsonObject, Message, ResumeEntry, ResumeStatus, RunAgentInput,
    Tool, ToolCallId,
};
use serde_json::{Value, json};

use super::speech::say;

const TOOL: &str = "delete_file";
const FILE: &str = "notes.txt";
/// What the ids of these calls and interrupts begin with.
const CALL: &str = "delete-file-";
const INTERRUPT: &str = "approve-";

/// The tool, as the agent declares it.
pub(super) fn delete_file() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    });
    Tool::new(TOOL, "Deletes a file, once someone has approved.").parameters(Json::from(parameters))
}

/// Makes the call and stops to ask.
pub(super) async fn show(run: &Run) -> AgentResult {
    let id = ToolCallId::from(format!("{CALL}{}", uuid::Uuid::now_v7()));
    let mut call = run.open_tool_call(ToolCallStart::new(&id, TOOL)).await?;
    call.args_json(&json!({ "path": FILE })).await?;
    call.end().await?;
    ask(run, &id)
}

/// Takes up the questions of earlier runs that are still open: answers the calls whose questions
/// were answered, and asks the others again (P-71). `false` where there is none; entries for
/// questions that are not its own are passed over (P-70, P-72).
pub(super) async fn take_up(run: &Run) -> Result<bool, BoxError> {
    let questions = open_questions(run.input());
    for Question { call, has_result } in &questions {
        let Some(entry) = run.answer(interrupt_id(call)) else {
            say(run, &format!("I still wait for your answer: may I delete {FILE}?")).await?;
            ask(run, call)?;
            continue;
        };
        let (outcome, text) = if approved(entry) {
            ("deleted", format!("You approved, so {FILE} is deleted. Not really: this is a demo."))
        } else {
            ("refused", format!("You refused, so {FILE} stays."))
        };
        if !has_result {
            run.tool_result(call, outcome).await?;
        }
        say(run, &text).await?;
    }
    Ok(!questions.is_empty())
}

fn ask(run: &Run, call: &ToolCallId) -> AgentResult {
    let schema = json!({
        "type": "object",
        "properties": { "approved": { "type": "boolean" } },
        "required": ["approved"],
    });
    let interrupt = Interrupt::new(interrupt_id(call), "tool_call")
        .message(format!("May I delete {FILE}?"))
        .tool_call_id(call)
        .response_schema(JsonObject::try_from(schema)?);
    run.interrupt(interrupt)?;
    Ok(())
}

/// A call of ours that waits for consent.
struct Question {
    call: ToolCallId,
    /// Front ends may put the decision into the history as the call's result, besides resuming.
    has_result: bool,
}

/// The calls that the history holds without a result, and those that a resume entry names, where
/// no earlier run has settled them.
fn open_questions(input: &RunAgentInput) -> Vec<Question> {
    let called = input.messages.iter().flat_map(|message| match message {
        Message::Assistant(message) => message.tool_calls.as_deref().unwrap_or_default(),
        _ => &[],
    });
    let called = called.filter(|call| call.function.name == TOOL).map(|call| call.id.clone());
    let named = input.resume.iter().flatten().filter_map(|entry| {
        entry.interrupt_id.as_str().strip_prefix(INTERRUPT).map(ToolCallId::from)
    });
    let results = input.messages.iter().rev().map(|message| match message {
        Message::Tool(result) => Some(&result.tool_call_id),
        _ => None,
    });
    // The history and the answers are as long as their sender likes.
    let new: HashSet<&ToolCallId> = results.clone().map_while(|result| result).collect();
    let mut settled: HashSet<ToolCallId> =
        results.flatten().filter(|call| !new.contains(call)).cloned().collect();
    let unanswered = called.filter(|call| !new.contains(call));
    unanswered
        .chain(named)
        .filter(|call| call.as_str().starts_with(CALL) && settled.insert(call.clone()))
        .map(|call| Question { has_result: new.contains(&call), call })
        .collect()
}

fn interrupt_id(call: &ToolCallId) -> InterruptId {
    InterruptId::from(format!("{INTERRUPT}{call}"))
}

/// Whether someone said yes: `true`, or an object whose `approved` is `true`. Anything else is a no.
fn approved(entry: &ResumeEntry) -> bool {
    let payload = entry.payload.as_ref().and_then(|payload| payload.decode::<Value>().ok());
    entry.status == ResumeStatus::Resolved
        && payload
            .is_some_and(|payload| payload == true || payload.get("approved") == Some(&true.into()))
}
