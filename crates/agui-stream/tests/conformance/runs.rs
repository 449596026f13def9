//! Whole runs: the vectors of kind `run`, from the parsed frame to the application.

use agui_stream::{Class, Fault, PeerVersion, Pipeline, Warning};
use agui_types::{Event, EventReader, ReadErrorKind, RunFinishedOutcome, ToJson};
use serde_json::{Map, Value, json};

use crate::compare::differences;
use crate::corpus::{Vector, Verdicts, vectors};

#[test]
fn chunks() {
    file("chunks");
}

#[test]
fn invalid_order() {
    file("invalid-order");
}

#[test]
fn invalid_shape() {
    file("invalid-shape");
}

#[test]
fn valid_simple() {
    file("valid-simple");
}

#[test]
fn valid_rich() {
    file("valid-rich");
}

#[test]
fn legacy_0x() {
    file("legacy-0x");
}

#[test]
fn json_patch() {
    file("json-patch");
}

#[test]
fn turns() {
    file("turns");
}

fn file(name: &str) {
    let Some(vectors) = vectors(name) else { return };
    let mut verdicts = Verdicts::new(name);
    for vector in vectors.iter().filter(|vector| vector.kind == "run") {
        let expected = vector.expected();
        let (input, expected) = match vector.input.get("runs").and_then(Value::as_array) {
            Some(runs) => (runs.clone(), expected["runs"].as_array().unwrap().clone()),
            None => (vec![vector.input.clone()], vec![expected]),
        };
        // Bytes instead of events are for the crate that reads them.
        if input.iter().any(|run| run.get("events").is_none()) {
            continue;
        }
        let mut all = Vec::new();
        for (at, (run, expected)) in input.iter().zip(&expected).enumerate() {
            let found = consume(vector, run);
            let where_ = if input.len() == 1 {
                String::new()
            } else {
                format!("run {at} ")
            };
            all.extend(
                compare(expected, &found)
                    .into_iter()
                    .map(|it| format!("{where_}{it}")),
            );
        }
        verdicts.note(&vector.id, &all);
    }
    verdicts.settle();
}

/// What a consumer made of one run.
struct Consumed {
    fault: Option<Fault>,
    /// Why the frame was not even JSON.
    class: Option<&'static str>,
    delivered: Vec<Event>,
    warnings: Vec<Warning>,
}

fn consume(vector: &Vector, run: &Value) -> Consumed {
    let input = run.get("runInput").unwrap_or(&Value::Null);
    let id = |name: &str, default: &str| input[name].as_str().unwrap_or(default).to_owned();
    let (thread, run_id) = (id("threadId", "thread-1"), id("runId", "run-1"));
    let mut pipeline = Pipeline::for_run(thread.into(), run_id.into());
    if let Some(peer) = vector.input["maxProtocolVersion"].as_str() {
        pipeline = pipeline.from_peer(peer.parse::<PeerVersion>().unwrap());
    }
    let mut reader = EventReader::new();
    let mut consumed = Consumed {
        fault: None,
        class: None,
        delivered: Vec::new(),
        warnings: Vec::new(),
    };
    for frame in run["events"].as_array().unwrap() {
        let verdict = match reader.tolerant(&frame.to_string()) {
            Ok(reading) => pipeline.push(reading, &mut consumed.delivered, &mut consumed.warnings),
            Err(error) => {
                consumed.class = match error.kind() {
                    ReadErrorKind::NotAnEvent => Some("frame-shape"),
                    ReadErrorKind::Syntax | ReadErrorKind::TooDeep => Some("sse-json"),
                    _ => None,
                };
                Err(pipeline.push_unreadable(&error))
            }
        };
        if let Err(fault) = verdict {
            consumed.fault = Some(fault);
            return consumed;
        }
    }
    consumed.fault = pipeline.finish().err();
    consumed
}

fn compare(expected: &Value, found: &Consumed) -> Vec<String> {
    let mut result = Map::new();
    result.insert(
        "outcome".into(),
        json!(if found.fault.is_some() {
            "failed"
        } else {
            "completed"
        }),
    );
    let class = found
        .class
        .or(found.fault.as_ref().map(|fault| fault.class.as_str()));
    result.insert("errorClass".into(), json!(class));
    result.insert("runOutcome".into(), json!(run_outcome(&found.delivered)));
    let delivered: Vec<Value> = found
        .delivered
        .iter()
        .map(|event| serde_json::from_str(&event.to_json()).unwrap())
        .collect();
    result.insert("delivered".into(), json!(delivered));
    let mut names = Names::default();
    let result = names.rename(&Value::Object(result), is_minted);
    let mut names = Names::default();
    let expected = names.rename(expected, |text| {
        text.starts_with("00000000-0000-4000-8000-")
    });

    let mut all = Vec::new();
    for field in ["outcome", "errorClass", "runOutcome", "delivered"] {
        if let Some(expected) = expected.get(field) {
            all.extend(differences(field, expected, &result[field]));
        }
    }
    if let (Some(Value::Array(paths)), Some(fault)) = (expected.get("errorPaths"), &found.fault) {
        // A parent is fine, and so is a more precise place than the recorded one.
        let within = |path: &str, other: &str| {
            path.strip_prefix(other)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let named = |path: &Value| {
            let path = path.as_str().unwrap_or_default();
            within(path, &fault.path) || within(&fault.path, path)
        };
        if fault.class == Class::Schema && !paths.iter().any(named) {
            all.push(format!(
                "errorPaths: expected one of {paths:?}, found {}",
                fault.path
            ));
        }
    }
    let warned = |text: &str| {
        [
            "[enforce]",
            "[compat]",
            "AG-UI is dropping",
            "protocolVersion",
        ]
        .iter()
        .any(|mark| text.contains(mark))
            && !text.contains("outgoing input")
            && !text.contains("Flattening")
    };
    let recorded = expected["warnings"].as_array();
    if found.fault.is_none()
        && recorded
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(warned)
        && found.warnings.is_empty()
    {
        all.push(format!(
            "warnings: expected some as {recorded:?}, found none"
        ));
    }
    if !all.is_empty() {
        all.push(format!(
            "fault: {:?}",
            found.fault.as_ref().map(ToString::to_string)
        ));
        all.push(format!("recorded: {}", expected["error"]));
    }
    all
}

fn run_outcome(delivered: &[Event]) -> &'static str {
    let last = delivered
        .iter()
        .rev()
        .find(|event| event.is_terminal() || matches!(event, Event::RunStarted(_)));
    match last {
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
        && text.bytes().filter(|b| *b == b'-').count() == 4
}

/// Renames invented ids by the order in which they occur.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn rename(&mut self, value: &Value, minted: fn(&str) -> bool) -> Value {
        match value {
            Value::String(text) if minted(text) => {
                let at = self
                    .0
                    .iter()
                    .position(|known| known == text)
                    .unwrap_or_else(|| {
                        self.0.push(text.clone());
                        self.0.len() - 1
                    });
                json!(format!("minted {at}"))
            }
            Value::Array(items) => items.iter().map(|item| self.rename(item, minted)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.rename(value, minted)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}
