//! Whole exchanges: the vectors of kind `run`, from the input that is sent, over the parsed frames,
//! to the conversation.

use agui_stream::fold::Applied;
use agui_stream::{Class, Conversation, Fault, Outgoing, PeerVersion, Pipeline, Warning};
use agui_types::json::Value as Tree;
use agui_types::{
    Event, EventReader, FromJson, Json, Message, ReadErrorKind, RunAgentInput, RunFinishedOutcome,
    Timestamp, ToJson,
};
use serde_json::{Map, Value, json};

use crate::compare::differences;
use crate::corpus::{Vector, Verdicts, vectors};

#[test]
fn chunks() {
    file("chunks", 177);
}

#[test]
fn invalid_order() {
    file("invalid-order", 240);
}

#[test]
fn invalid_shape() {
    file("invalid-shape", 295);
}

#[test]
fn valid_simple() {
    file("valid-simple", 200);
}

#[test]
fn valid_rich() {
    file("valid-rich", 180);
}

#[test]
fn legacy_0x() {
    file("legacy-0x", 200);
}

#[test]
fn json_patch() {
    file("json-patch", 200);
}

#[test]
fn turns() {
    file("turns", 150);
}

/// What is compared.
const NORMATIVE: [&str; 10] = [
    "outcome",
    "errorClass",
    "runOutcome",
    "delivered",
    "messages",
    "state",
    "pendingInterrupts",
    "newMessages",
    "result",
    "request",
];

/// When the recorded client ran: past every date in 2001, before every one in 2999.
const NOW: i64 = 1_800_000_000_000;

fn file(name: &str, count: usize) {
    let Some(vectors) = vectors(name) else { return };
    let mut verdicts = Verdicts::new(name);
    let mut compared = 0;
    for vector in vectors.iter().filter(|vector| vector.kind == "run") {
        let runs = vector.runs();
        // Bytes instead of events are for the crate that reads them.
        if runs.iter().any(|run| run.get("events").is_none()) {
            continue;
        }
        let mut conversation = initial(vector);
        let mut all = Vec::new();
        for (at, (run, expected)) in runs.iter().zip(vector.expected()).enumerate() {
            let found = exchange(vector, run, &mut conversation);
            let differences = compare(&expected, &found);
            all.extend(differences.into_iter().map(|it| format!("run {at} {it}")));
        }
        verdicts.note(&vector.id, &all);
        compared += 1;
    }
    verdicts.settle();
    assert_eq!(compared, count, "lines of {name}");
}

fn initial(vector: &Vector) -> Conversation {
    let initial = &vector.input["initial"];
    let state = initial.get("state").cloned().unwrap_or_else(|| json!({}));
    Conversation::new(messages(&initial["messages"]), Tree::parse(&state.to_string()).unwrap())
}

/// What came of one run.
#[derive(Default)]
struct Found {
    request: Option<RunAgentInput>,
    fault: Option<Fault>,
    /// Why a frame was no event, as the recordings call it.
    class: Option<&'static str>,
    delivered: Vec<Event>,
    warnings: Vec<Warning>,
    held: Map<String, Value>,
}

fn exchange(vector: &Vector, run: &Value, conversation: &mut Conversation) -> Found {
    for message in messages(&run["addMessages"]) {
        conversation.push(message);
    }
    let mut found = Found::default();
    let peer = vector.input["maxProtocolVersion"].as_str();
    let peer = peer.map_or(PeerVersion::CURRENT, |peer| peer.parse().unwrap());
    let input = input(run, conversation);
    let outgoing = Outgoing::new().to_peer(peer).at(Timestamp::new(NOW).unwrap());
    match outgoing.prepare(input, conversation.open_interrupts(), &mut found.warnings) {
        Ok(input) => {
            let resume = input.resume.clone().unwrap_or_default();
            conversation.begin_exchange(&input.run_id, &resume);
            let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
            found.request = Some(input);
            consume(run, pipeline.from_peer(peer), conversation, &mut found);
        }
        Err(fault) => found.fault = Some(fault),
    }
    found.held = held(conversation, found.request.is_some());
    found
}

fn input(run: &Value, conversation: &Conversation) -> RunAgentInput {
    let given = run.get("runInput").unwrap_or(&Value::Null);
    let mut input = json!({
        "threadId": given.get("threadId").unwrap_or(&json!("thread-1")),
        "runId": given.get("runId").unwrap_or(&json!("run-1")),
        "messages": [],
        "forwardedProps": given.get("forwardedProps").unwrap_or(&json!({})),
    });
    for name in ["tools", "context", "resume"] {
        if let Some(value) = given.get(name) {
            input[name] = value.clone();
        }
    }
    let mut input: RunAgentInput = read(&input);
    input.messages = conversation.messages().to_vec();
    input.state(Json::parse(&conversation.state().to_string()).unwrap())
}

fn consume(
    run: &Value,
    mut pipeline: Pipeline,
    conversation: &mut Conversation,
    found: &mut Found,
) {
    let (mut reader, mut applied) = (EventReader::new(), Applied::default());
    for frame in run["events"].as_array().unwrap() {
        let first = found.delivered.len();
        let verdict = match reader.tolerant(&frame.to_string()) {
            Ok(reading) => pipeline.push(reading, &mut found.delivered, &mut found.warnings),
            Err(error) => {
                found.class = match error.kind() {
                    ReadErrorKind::NotAnEvent => Some("frame-shape"),
                    ReadErrorKind::Syntax | ReadErrorKind::TooDeep => Some("sse-json"),
                    _ => None,
                };
                Err(pipeline.push_unreadable(&error))
            }
        };
        for event in &found.delivered[first..] {
            conversation.apply(event, &mut applied);
            found.warnings.append(&mut applied.warnings);
        }
        if let Err(fault) = verdict {
            found.fault = Some(fault);
            return;
        }
    }
    found.fault = pipeline.finish().err();
}

fn held(conversation: &Conversation, sent: bool) -> Map<String, Value> {
    let written = |it: &Message| -> Value { serde_json::from_str(&it.to_json()).unwrap() };
    let interrupts = conversation.open_interrupts().iter();
    let interrupts: Vec<Value> =
        interrupts.map(|it| serde_json::from_str(&it.to_json()).unwrap()).collect();
    let new: Vec<&str> = conversation.new_messages().map(|id| id.as_str()).collect();
    let result = conversation.result().filter(|_| sent);
    let mut held = json!({
        "messages": conversation.messages().iter().map(written).collect::<Vec<_>>(),
        "state": serde_json::from_str::<Value>(&conversation.state().to_string()).unwrap(),
        "pendingInterrupts": interrupts,
        "newMessages": new,
    });
    if let Some(result) = result {
        held["result"] = serde_json::from_str(result.as_str()).unwrap();
    }
    match held {
        Value::Object(held) => held,
        _ => unreachable!("made as an object above"),
    }
}

fn compare(expected: &Value, found: &Found) -> Vec<String> {
    let mut result = found.held.clone();
    let outcome = if found.fault.is_some() { "failed" } else { "completed" };
    result.insert("outcome".into(), json!(outcome));
    let class = found.class.or(found.fault.as_ref().map(|fault| fault.class.as_str()));
    result.insert("errorClass".into(), json!(class));
    result.insert("runOutcome".into(), json!(run_outcome(&found.delivered)));
    let written = |event: &Event| -> Value { serde_json::from_str(&event.to_json()).unwrap() };
    let delivered: Vec<Value> = found.delivered.iter().map(written).collect();
    result.insert("delivered".into(), json!(delivered));
    let request = found.request.as_ref().map(ToJson::to_json);
    let request = request.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    result.insert("request".into(), json!(request));

    let mut expected = expected.clone();
    // As typed messages hold them: an absent member is never null.
    if let Some(held) = expected.get_mut("messages") {
        let typed = messages(held);
        *held =
            typed.iter().map(|it| serde_json::from_str::<Value>(&it.to_json()).unwrap()).collect();
    }
    let result = Names::default().rename(&Value::Object(result), is_minted);
    let expected =
        Names::default().rename(&expected, |text| text.starts_with("00000000-0000-4000-8000-"));

    let mut all = Vec::new();
    for field in NORMATIVE {
        if let Some(expected) = expected.get(field) {
            all.extend(differences(field, expected, &result[field]));
        }
    }
    all.extend(wrong_path(&expected["errorPaths"], found));
    all.extend(unwarned(&expected["warnings"], found));
    if !all.is_empty() {
        all.push(format!("fault: {:?}", found.fault.as_ref().map(ToString::to_string)));
        all.push(format!("recorded: {}", expected["error"]));
    }
    all
}

/// The fault has to be at a recorded place, at a parent of one, or more precisely within one.
fn wrong_path(paths: &Value, found: &Found) -> Option<String> {
    let fault = found.fault.as_ref().filter(|fault| fault.class == Class::Schema)?;
    let paths: Vec<&str> = paths.as_array()?.iter().filter_map(Value::as_str).collect();
    let within = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let named = paths.iter().any(|path| within(path, &fault.path) || within(&fault.path, path));
    (!named).then(|| format!("errorPaths: expected one of {paths:?}, found {}", fault.path))
}

/// Where the recorded client warned of something dropped, stripped or translated, so must we.
fn unwarned(recorded: &Value, found: &Found) -> Option<String> {
    const OF_THESE_STAGES: [&str; 4] =
        ["[enforce]", "[compat]", "AG-UI is dropping", "protocolVersion"];
    let recorded = recorded.as_array()?.iter().filter_map(Value::as_str);
    let mut of_these =
        recorded.filter(|text| OF_THESE_STAGES.iter().any(|mark| text.contains(mark)));
    let first = of_these.next()?;
    // What came together with a fault need not be told apart from it.
    let silent = found.warnings.is_empty() && found.fault.is_none();
    silent.then(|| format!("warnings: expected some as {first:?}"))
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
    list.as_array().into_iter().flatten().map(read).collect()
}

fn read<T: FromJson>(value: &Value) -> T {
    T::from_json_tolerant(&value.to_string()).unwrap().value
}

/// An id in the shape of ours: a version 8 UUID.
fn is_minted(text: &str) -> bool {
    text.len() == 36
        && text.as_bytes()[14] == b'8'
        && text.bytes().filter(|byte| *byte == b'-').count() == 4
}

/// Renames invented ids by the order in which they occur.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn rename(&mut self, value: &Value, minted: fn(&str) -> bool) -> Value {
        match value {
            Value::String(text) if minted(text) => {
                let at = self.0.iter().position(|known| known == text).unwrap_or_else(|| {
                    self.0.push(text.clone());
                    self.0.len() - 1
                });
                json!(format!("minted {at}"))
            }
            Value::Array(items) => items.iter().map(|item| self.rename(item, minted)).collect(),
            Value::Object(members) => {
                let renamed =
                    members.iter().map(|(name, value)| (name.clone(), self.rename(value, minted)));
                renamed.collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
}
