//! An observer that does what a recorded script says, and writes down what it is called with; and how
//! that is judged.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agui_stream::Conversation;
use agui_stream::observe::{Mutation, Observer, Reaction, Scene};
use agui_stream::partial::PartialState;
use agui_types::event::*;
use agui_types::json::Value as Tree;
use agui_types::{FromJson, Message, RunFinishedOutcome, ToolCall};
use serde_json::{Value, json};

use crate::compare::differences;
use crate::corpus::{Vector, Verdicts};

/// Writes down what it is called with, as the recordings do, and does what the script says.
pub(crate) struct Recorder {
    script: Vec<Step>,
    counts: HashMap<&'static str, usize>,
    pub(crate) calls: Arc<Mutex<Vec<Value>>>,
    /// How often it failed.
    pub(crate) thrown: Arc<Mutex<usize>>,
    /// The class of a failed run.
    class: fn(&(dyn Error + 'static)) -> Option<&'static str>,
}

struct Step {
    on: String,
    nth: usize,
    reaction: Option<Mutation>,
}

impl Recorder {
    pub(crate) fn new(
        script: &Value,
        class: fn(&(dyn Error + 'static)) -> Option<&'static str>,
    ) -> Self {
        let steps = script.as_array().into_iter().flatten().map(|step| Step {
            on: step["on"].as_str().unwrap().into(),
            nth: step["nth"].as_u64().unwrap_or(1) as usize,
            reaction: step.get("return").map(mutation),
        });
        Self {
            script: steps.collect(),
            counts: HashMap::new(),
            calls: Arc::default(),
            thrown: Arc::default(),
            class,
        }
    }

    fn called(&mut self, callback: &'static str, arguments: Option<Value>) -> Reaction {
        self.note(callback, arguments);
        let count = self.counts.entry(callback).or_default();
        *count += 1;
        let step = self.script.iter().find(|step| step.on == callback && step.nth == *count);
        match step.map(|step| &step.reaction) {
            None => Ok(Mutation::new()),
            Some(Some(mutation)) => Ok(mutation.clone()),
            Some(None) => {
                *self.thrown.lock().unwrap() += 1;
                Err("subscriber bug".into())
            }
        }
    }

    fn note(&self, callback: &str, arguments: Option<Value>) {
        let call = [json!(callback)].into_iter().chain(arguments).collect();
        self.calls.lock().unwrap().push(call);
    }
}

/// The callbacks of the kinds: the recorded name, and the arguments that are written down.
macro_rules! recorded {
    ($($callback:ident($kind:ident) = $name:literal $(, |$event:ident, $scene:ident| $arguments:expr)?;)*) => {
        $(fn $callback(&mut self, event: &$kind, scene: &Scene<'_>) -> Reaction {
            let _ = (event, scene);
            let arguments = None $(.or({
                let ($event, $scene) = (event, scene);
                Some($arguments)
            }))?;
            self.called($name, arguments)
        })*
    };
}

impl Observer for Recorder {
    fn on_run_initialized(&mut self, conversation: &Conversation) -> Reaction {
        self.called("onRunInitialized", Some(count(conversation)))
    }

    fn on_event(&mut self, event: &Event, _: &Scene<'_>) -> Reaction {
        self.called("onEvent", Some(json!({"type": event.type_name()})))
    }

    recorded! {
        on_run_started(RunStarted) = "onRunStartedEvent", |event, _scene| json!({"runId": event.run_id});
        on_run_finished(RunFinished) = "onRunFinishedEvent", |event, scene| finished(event, scene);
        on_run_error(RunError) = "onRunErrorEvent", |event, _scene| json!({"message": event.message});
        on_step_started(StepStarted) = "onStepStartedEvent", |event, _scene| json!({"id": event.step_name});
        on_step_finished(StepFinished) = "onStepFinishedEvent", |event, _scene| json!({"id": event.step_name});
        on_text_message_start(TextMessageStart) = "onTextMessageStartEvent", |event, _scene| json!({"id": event.message_id});
        on_text_message_content(TextMessageContent) = "onTextMessageContentEvent",
            |event, scene| json!({"id": event.message_id, "textMessageBuffer": scene.text()});
        on_text_message_end(TextMessageEnd) = "onTextMessageEndEvent",
            |event, scene| json!({"id": event.message_id, "textMessageBuffer": scene.text()});
        on_tool_call_start(ToolCallStart) = "onToolCallStartEvent", |event, _scene| json!({"id": event.tool_call_id});
        on_tool_call_args(ToolCallArgs) = "onToolCallArgsEvent", |event, scene| growing(event, scene);
        on_tool_call_end(ToolCallEnd) = "onToolCallEndEvent", |event, scene| ended(event, scene);
        on_tool_call_result(ToolCallResult) = "onToolCallResultEvent", |event, _scene| json!({"id": event.message_id});
        on_state_snapshot(StateSnapshot) = "onStateSnapshotEvent";
        on_state_delta(StateDelta) = "onStateDeltaEvent";
        on_messages_snapshot(MessagesSnapshot) = "onMessagesSnapshotEvent";
        on_activity_snapshot(ActivitySnapshot) = "onActivitySnapshotEvent", |event, scene| json!({
            "id": event.message_id,
            "hadActivity": matches!(scene.message(), Some(Message::Activity(_))),
            "hadMessage": scene.message().is_some(),
        });
        on_activity_delta(ActivityDelta) = "onActivityDeltaEvent", |event, scene| json!({
            "id": event.message_id,
            "hadActivity": matches!(scene.message(), Some(Message::Activity(_))),
        });
        on_raw(Raw) = "onRawEvent";
        on_custom(Custom) = "onCustomEvent", |event, _scene| json!({"id": event.name});
        on_reasoning_start(ReasoningStart) = "onReasoningStartEvent", |event, _scene| json!({"id": event.message_id});
        on_reasoning_message_start(ReasoningMessageStart) = "onReasoningMessageStartEvent",
            |event, _scene| json!({"id": event.message_id});
        on_reasoning_message_content(ReasoningMessageContent) = "onReasoningMessageContentEvent",
            |event, scene| json!({"id": event.message_id, "reasoningMessageBuffer": scene.text()});
        on_reasoning_message_end(ReasoningMessageEnd) = "onReasoningMessageEndEvent",
            |event, scene| json!({"id": event.message_id, "reasoningMessageBuffer": scene.text()});
        on_reasoning_end(ReasoningEnd) = "onReasoningEndEvent", |event, _scene| json!({"id": event.message_id});
        on_reasoning_encrypted_value(ReasoningEncryptedValue) = "onReasoningEncryptedValueEvent",
            |event, _scene| json!({"id": event.entity_id});
        on_subagent_started(SubagentStarted) = "onSubagentStartedEvent", |event, _scene| json!({"id": event.name});
        on_subagent_finished(SubagentFinished) = "onSubagentFinishedEvent";
        on_subagent_error(SubagentError) = "onSubagentErrorEvent";
    }

    fn on_run_failed(&mut self, failure: &(dyn Error + 'static), _: &Conversation) -> Reaction {
        let class = (self.class)(failure);
        self.called("onRunFailed", Some(json!({"errorClass": class})))
    }

    fn on_run_finalized(&mut self, conversation: &Conversation) -> Reaction {
        self.called("onRunFinalized", Some(count(conversation)))
    }

    fn on_new_message(&mut self, message: &Message, _: &Conversation) {
        self.note("onNewMessage", Some(json!({"id": message.id(), "role": message.tag()})));
    }

    fn on_new_tool_call(&mut self, call: &ToolCall, _: &Conversation) {
        let arguments = json!({"id": call.id, "arguments": call.function.arguments});
        self.note("onNewToolCall", Some(arguments));
    }

    fn on_messages_changed(&mut self, conversation: &Conversation) {
        self.note("onMessagesChanged", Some(count(conversation)));
    }

    fn on_state_changed(&mut self, _: &Conversation) {
        self.note("onStateChanged", None);
    }
}

fn count(conversation: &Conversation) -> Value {
    json!({"messages": conversation.messages().len()})
}

fn finished(event: &RunFinished, scene: &Scene<'_>) -> Value {
    let (name, more) = match &event.outcome {
        Some(RunFinishedOutcome::Interrupt(outcome)) => {
            let ids: Vec<_> = outcome.interrupts.iter().map(|it| &it.id).collect();
            ("interrupt", Some(("interrupts", json!(ids))))
        }
        Some(RunFinishedOutcome::Cancelled(_)) => ("cancelled", None),
        other => {
            let declared = match other {
                Some(RunFinishedOutcome::Success(it)) => it.pending_tool_call_ids.as_ref(),
                _ => None,
            };
            // C-54
            let ids = match declared.filter(|ids| !ids.is_empty()) {
                Some(ids) => json!(ids),
                None => json!(scene.conversation().pending_tool_calls().collect::<Vec<_>>()),
            };
            ("success", Some(("pendingToolCallIds", ids)))
        }
    };
    let mut arguments = json!({"outcome": name});
    if let Some((name, value)) = more {
        arguments[name] = value;
    }
    if let Some(result) = &event.result {
        arguments["result"] = value(result.as_str());
    }
    arguments
}

/// The recorded value of the arguments is always empty, by a fault of packaging: it is checked here.
fn growing(event: &ToolCallArgs, scene: &Scene<'_>) -> Value {
    let call = scene.tool_call().unwrap();
    let buffer = &call.function.arguments;
    let so_far = scene.arguments().unwrap();
    let shown = so_far.value().map(|shown| value(&shown.to_string()));
    let read = serde_json::from_str(buffer).or_else(|_| serde_json::from_str(&so_far.repaired()));
    assert_eq!(shown, read.ok(), "{buffer:?}");
    json!({
        "id": event.tool_call_id,
        "toolCallName": call.function.name,
        "toolCallBuffer": buffer,
        "partialToolCallArgs": {},
    })
}

fn ended(event: &ToolCallEnd, scene: &Scene<'_>) -> Value {
    let arguments = scene.arguments().unwrap();
    let whole = (arguments.state() == PartialState::Complete).then(|| arguments.value()).flatten();
    json!({
        "id": event.tool_call_id,
        "toolCallName": scene.tool_call().unwrap().function.name,
        "toolCallArgs": whole.map_or(json!({}), |whole| value(&whole.to_string())),
    })
}

fn mutation(returned: &Value) -> Mutation {
    let mut mutation = Mutation::new();
    if returned.get("messages").is_some() {
        mutation = mutation.messages(messages(&returned["messages"]));
    }
    if let Some(state) = returned.get("state") {
        mutation = mutation.state(tree(state));
    }
    if returned["stopPropagation"] == true {
        mutation = mutation.stop();
    }
    mutation
}

/// Judges the runs of a file. What the callbacks are called with is judged by itself, and only with a
/// script: their order alone is normative.
pub(crate) struct Judge {
    name: String,
    runs: Verdicts,
    arguments: Verdicts,
    compared: usize,
}

impl Judge {
    /// The file, and where the known deviations of its runs are.
    pub(crate) fn new(name: &str, deviations: &str) -> Self {
        let arguments = Verdicts::new(&format!("{name}-observed-arguments"));
        Self { name: name.into(), runs: Verdicts::new(deviations), arguments, compared: 0 }
    }

    /// Takes up what differs on a line, and with which calls it came.
    pub(crate) fn note(
        &mut self,
        vector: &Vector,
        expected: &Value,
        mut differences: Vec<String>,
        found: &[Value],
    ) {
        if let Some(expected) = expected["subscriberCalls"].as_array() {
            let names = |calls: &[Value]| -> Vec<Value> {
                calls.iter().map(|call| call[0].clone()).collect()
            };
            let order = first_difference(&names(expected), &names(found));
            let same_order = order.is_none();
            differences.extend(order);
            if vector.input["subscriberScript"].is_array() && same_order {
                let difference = first_difference(expected, found);
                self.arguments.note(&vector.id, difference.as_slice());
            }
        }
        self.runs.note(&vector.id, &differences);
        self.compared += 1;
    }

    /// Fails where something differs that is not known to, or where there were not so many lines.
    pub(crate) fn settle(self, count: usize) {
        self.runs.settle();
        self.arguments.settle();
        assert_eq!(self.compared, count, "lines of {}", self.name);
    }
}

/// What differs from the recording in what is left of a run, and in how often the observer failed: what
/// was told of that, and what there was.
pub(crate) fn compared(
    input: &Value,
    expected: &Value,
    found: &Value,
    errors: &[impl Debug],
    thrown: usize,
) -> Vec<String> {
    let mut all = Vec::new();
    if errors.len() != thrown {
        all.push(format!("errors: expected {thrown}, found {errors:?}"));
    }
    for (name, found) in found.as_object().unwrap() {
        let Some(expected) = expected.get(name) else { continue };
        // What else was asked with is for the tests of whole exchanges.
        if name == "request" && input.get("runInput").is_some() {
            continue;
        }
        all.extend(differences(name, expected, found));
    }
    all
}

/// The first call that differs, with the one before it.
fn first_difference(expected: &[Value], found: &[Value]) -> Option<String> {
    let at = (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))?;
    let [expected, found] = [expected, found].map(|calls| {
        let calls = calls.iter().skip(at.saturating_sub(1)).take(2);
        calls.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    });
    Some(format!("call {at}: expected {expected}, found {found}"))
}

pub(crate) fn messages(list: &Value) -> Vec<Message> {
    let list = list.as_array().into_iter().flatten();
    list.map(|it| Message::from_json_tolerant(&it.to_string()).unwrap().value).collect()
}

pub(crate) fn tree(value: &Value) -> Tree {
    Tree::parse(&value.to_string()).unwrap()
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
