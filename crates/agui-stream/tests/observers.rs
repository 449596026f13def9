//! The recorded runs with a subscriber, through the whole pipeline and with an observer that does
//! what the script says: which callbacks are called, in which order, with what, and what is left.
//!
//! Where they are read from, see `conformance/`.

#[path = "conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "conformance/corpus.rs"]
mod corpus;

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use agui_stream::fold::Applied;
use agui_stream::observe::{Mutation, Observer, Observers, Reaction, Scene};
use agui_stream::partial::PartialState;
use agui_stream::{Conversation, Fault, Outgoing, Pipeline};
use agui_types::event::*;
use agui_types::json::Value as Tree;
use agui_types::{
    EventReader, FromJson, Json, Message, RunAgentInput, RunFinishedOutcome, ToJson, ToolCall,
};
use compare::differences;
use corpus::{Vector, Verdicts, vectors};
use serde_json::{Value, json};

#[test]
fn subscribers() {
    file("subscribers", 150);
}

/// Without a script: only watched.
#[test]
fn runs_that_are_watched() {
    for (name, count) in [("valid-simple", 80), ("valid-rich", 15), ("chunks", 30)] {
        file(name, count);
    }
}

/// Runs the lines of a file that have a script, or recorded calls. What the callbacks are called with
/// is judged by itself, and only with a script: their order alone is normative.
fn file(name: &str, count: usize) {
    let Some(vectors) = vectors(name) else { return };
    let mut runs = Verdicts::new(&format!("{name}-observed"));
    let mut arguments = Verdicts::new(&format!("{name}-observed-arguments"));
    let mut compared = 0;
    for vector in &vectors {
        let expected = vector.expected().remove(0);
        let scripted = vector.input.get("subscriberScript").is_some();
        if !scripted && expected.get("subscriberCalls").is_none() {
            continue;
        }
        let recorder = Recorder::new(&vector.input["subscriberScript"]);
        let calls = recorder.calls.clone();
        let mut differences = run(vector, &expected, recorder);
        if let Some(expected) = expected["subscriberCalls"].as_array() {
            let found = std::mem::take(&mut *calls.lock().unwrap());
            let names = |calls: &[Value]| -> Vec<Value> {
                calls.iter().map(|call| call[0].clone()).collect()
            };
            let order = first_difference(&names(expected), &names(&found));
            let same_order = order.is_none();
            differences.extend(order);
            if scripted && same_order {
                let difference = first_difference(expected, &found);
                arguments.note(&vector.id, difference.as_slice());
            }
        }
        runs.note(&vector.id, &differences);
        compared += 1;
    }
    runs.settle();
    arguments.settle();
    assert_eq!(compared, count, "lines of {name}");
}

/// Takes one run from its request to its end; what differs from the recording.
fn run(vector: &Vector, expected: &Value, recorder: Recorder) -> Vec<String> {
    let input = &vector.input;
    let state = input["initial"].get("state").cloned().unwrap_or_else(|| json!({}));
    let messages = messages(&input["initial"]["messages"]);
    let mut conversation = Conversation::new(messages, tree(&state));
    let (mut applied, mut errors) = (Applied::default(), Vec::new());
    let thrown = recorder.thrown.clone();
    let mut observers = Observers::new();
    observers.add(recorder);

    // What it puts in place first is part of the request, and new.
    conversation.begin_exchange(&"run-1".into(), &[]);
    errors.extend(observers.run_initialized(&mut conversation, &mut applied).errors);
    let mut request = RunAgentInput::new("thread-1", "run-1", conversation.messages().to_vec());
    request.state = Some(Json::parse(&conversation.state().to_string()).unwrap());
    request.forwarded_props = Some(Json::parse("{}").unwrap());
    let request = Outgoing::new().prepare(request, &[], &mut Vec::new()).unwrap();

    let mut pipeline = Pipeline::for_run("thread-1".into(), "run-1".into());
    let (mut delivered, mut warnings) = (Vec::new(), Vec::new());
    let mut verdict = Ok(());
    for frame in input["events"].as_array().unwrap() {
        let first = delivered.len();
        verdict = match EventReader::new().tolerant(&frame.to_string()) {
            Ok(reading) => pipeline.push(reading, &mut delivered, &mut warnings),
            Err(error) => Err(pipeline.push_unreadable(&error)),
        };
        for event in &delivered[first..] {
            errors.extend(observers.apply(event, &mut conversation, &mut applied).errors);
        }
        if verdict.is_err() {
            break;
        }
    }
    let verdict = verdict.and_then(|()| pipeline.finish());
    if let Err(fault) = &verdict {
        errors.extend(observers.run_failed(fault, &mut conversation, &mut applied).errors);
    }
    // What it puts in place last is not.
    let new: Vec<_> = conversation.new_messages().map(ToString::to_string).collect();
    errors.extend(observers.run_finalized(&mut conversation, &mut applied).errors);

    let result = conversation.result().map(|result| value(result.as_str()));
    let found = json!({
        "outcome": if verdict.is_ok() { "completed" } else { "failed" },
        "runOutcome": run_outcome(&delivered),
        "delivered": delivered.iter().map(written).collect::<Vec<_>>(),
        "messages": conversation.messages().iter().map(written).collect::<Vec<_>>(),
        "state": value(&conversation.state().to_string()),
        "newMessages": new,
        "pendingInterrupts": conversation.open_interrupts().iter().map(written).collect::<Vec<_>>(),
        "result": result,
        "request": written(&request),
    });
    let thrown = *thrown.lock().unwrap();
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

/// Writes down what it is called with, as the recordings do, and does what the script says.
struct Recorder {
    script: Vec<Step>,
    counts: HashMap<&'static str, usize>,
    calls: Arc<Mutex<Vec<Value>>>,
    /// How often it failed.
    thrown: Arc<Mutex<usize>>,
}

struct Step {
    on: String,
    nth: usize,
    reaction: Option<Mutation>,
}

impl Recorder {
    fn new(script: &Value) -> Self {
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
        let class = failure.downcast_ref::<Fault>().map(|fault| fault.class.as_str());
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

fn run_outcome(delivered: &[Event]) -> &'static str {
    let is_boundary = |event: &&Event| event.is_terminal() || matches!(event, Event::RunStarted(_));
    match delivered.iter().rev().find(is_boundary) {
        Some(Event::RunError(_)) => "error",
        Some(Event::RunFinished(event)) => match &event.outcome {
            Some(RunFinishedOutcome::Interrupt(_)) => "interrupt",
            Some(RunFinishedOutcome::Cancelled(_)) => "cancelled",
            _ => "success",
        },
        _ => "none",
    }
}

fn messages(list: &Value) -> Vec<Message> {
    let list = list.as_array().into_iter().flatten();
    list.map(|it| Message::from_json_tolerant(&it.to_string()).unwrap().value).collect()
}

fn tree(value: &Value) -> Tree {
    Tree::parse(&value.to_string()).unwrap()
}

fn written<T: ToJson>(it: &T) -> Value {
    value(&it.to_json())
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
