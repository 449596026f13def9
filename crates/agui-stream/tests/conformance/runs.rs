//! Whole exchanges: the vectors of kind `run`, from the input that is sent, over the parsed frames,
//! to the conversation.

use agui_stream::{Class, Conversation, Outgoing, PeerVersion, Pipeline};
use agui_types::{Event, Json, RunAgentInput, RunFinishedOutcome, Timestamp};
use serde_json::{Map, Value, json};

use crate::client::{Consumed, all_written, consume, conversation, messages, read, state, written};
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
        let initial = &vector.input["initial"];
        let mut thread = conversation(&initial["messages"], initial.get("state"));
        let mut all = Vec::new();
        for (at, (run, expected)) in runs.iter().zip(vector.expected()).enumerate() {
            let found = exchange(vector, run, &mut thread);
            let differences = compare(&expected, &found);
            all.extend(differences.into_iter().map(|it| format!("run {at} {it}")));
        }
        verdicts.note(&vector.id, &all);
        compared += 1;
    }
    verdicts.settle();
    assert_eq!(compared, count, "lines of {name}");
}

/// What came of one run.
struct Found {
    /// What was sent; `None` where it was refused.
    request: Option<RunAgentInput>,
    consumed: Consumed,
    held: Map<String, Value>,
}

fn exchange(vector: &Vector, run: &Value, thread: &mut Conversation) -> Found {
    for message in messages(&run["addMessages"]) {
        thread.push(message);
    }
    let peer = vector.input["maxProtocolVersion"].as_str();
    let peer = peer.map_or(PeerVersion::CURRENT, |peer| peer.parse().unwrap());
    let outgoing = Outgoing::new().to_peer(peer).at(Timestamp::new(NOW).unwrap());
    let mut warnings = Vec::new();
    let prepared = outgoing.prepare(input(run, thread), thread.open_interrupts(), &mut warnings);
    let (request, mut consumed) = match prepared {
        Ok(input) => {
            thread.begin_exchange(&input.run_id, input.resume.as_deref().unwrap_or_default());
            let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
            (Some(input), consume(&run["events"], pipeline.from_peer(peer), thread))
        }
        Err(fault) => (None, Consumed { fault: Some(fault), ..Consumed::default() }),
    };
    consumed.warnings.append(&mut warnings);
    Found { held: held(thread, request.is_some()), request, consumed }
}

fn input(run: &Value, thread: &Conversation) -> RunAgentInput {
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
    input.messages = thread.messages().to_vec();
    input.state(Json::parse(&thread.state().to_string()).unwrap())
}

fn held(thread: &Conversation, sent: bool) -> Map<String, Value> {
    let new: Vec<&str> = thread.new_messages().map(|id| id.as_str()).collect();
    let mut held = Map::from_iter([
        ("messages".into(), all_written(thread.messages().iter())),
        ("state".into(), state(thread)),
        ("pendingInterrupts".into(), all_written(thread.open_interrupts())),
        ("newMessages".into(), json!(new)),
    ]);
    if let Some(result) = thread.result().filter(|_| sent) {
        held.insert("result".into(), serde_json::from_str(result.as_str()).unwrap());
    }
    held
}

fn compare(expected: &Value, found: &Found) -> Vec<String> {
    let consumed = &found.consumed;
    let fault = consumed.fault.as_ref();
    let outcome = if fault.is_some() { "failed" } else { "completed" };
    let class = consumed.class.or(fault.map(|fault| fault.class.as_str()));
    let mut result = found.held.clone();
    result.extend([
        ("outcome".into(), json!(outcome)),
        ("errorClass".into(), json!(class)),
        ("runOutcome".into(), json!(run_outcome(&consumed.delivered))),
        ("delivered".into(), all_written(&consumed.delivered)),
        ("request".into(), found.request.as_ref().map_or(Value::Null, written)),
    ]);

    let mut expected = expected.clone();
    // As typed messages hold them: an absent member is never null.
    if let Some(held) = expected.get_mut("messages") {
        *held = all_written(&messages(held));
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
    if expected["outcome"] == "completed" && expected.get("result").is_none() {
        all.extend(result.get("result").map(|it| format!("result: expected none, found {it}")));
    }
    all.extend(wrong_path(&expected["errorPaths"], consumed));
    all.extend(unwarned(&expected["warnings"], consumed));
    if !all.is_empty() {
        all.push(format!("fault: {:?}", fault.map(ToString::to_string)));
        all.push(format!("recorded: {}", expected["error"]));
    }
    all
}

/// The fault has to be at a recorded place, at a parent of one, or more precisely within one.
fn wrong_path(paths: &Value, found: &Consumed) -> Option<String> {
    let fault = found.fault.as_ref().filter(|fault| fault.class == Class::Schema)?;
    let paths: Vec<&str> = paths.as_array()?.iter().filter_map(Value::as_str).collect();
    let within = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let named = paths.iter().any(|path| within(path, &fault.path) || within(&fault.path, path));
    (!named).then(|| format!("errorPaths: expected one of {paths:?}, found {}", fault.path))
}

/// Where the recorded client warned of something dropped, stripped or translated, so must we.
fn unwarned(recorded: &Value, found: &Consumed) -> Option<String> {
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
