//! Stages by themselves: the vectors of kind `verify`, `chunks` and `enforce`.

use agui_stream::{ChunkExpander, Class, Fault, Verifier, enforce_outgoing};
use agui_types::{Event, EventReader, FromJson, RunAgentInput, ToJson};
use serde_json::{Value, json};

use crate::compare::differences;
use crate::corpus::{Vector, Verdicts, vectors};

#[test]
fn verify() {
    run("verify", verified);
}

#[test]
fn chunks() {
    run("chunks", expanded);
}

#[test]
fn outgoing() {
    let Some(vectors) = vectors("outgoing") else {
        return;
    };
    let mut verdicts = Verdicts::new("outgoing");
    for vector in vectors.iter().filter(|vector| vector.kind == "enforce") {
        let expected = vector.expected().remove(0);
        verdicts.note(&vector.id, &enforced(vector, &expected));
    }
    verdicts.settle();
}

fn enforced(vector: &Vector, expected: &Value) -> Vec<String> {
    let text = vector.input["runAgentInput"].to_string();
    let mut warnings = Vec::new();
    let verdict = RunAgentInput::from_json_tolerant(&text)
        .map_err(|error| Fault::from(&error))
        .map(|reading| enforce_outgoing(reading, &mut warnings));
    match verdict {
        Ok(input) => {
            let found: Value = serde_json::from_str(&input.to_json()).unwrap();
            let mut all = differences("outcome", &expected["outcome"], &json!("completed"));
            all.extend(differences("input", &expected["input"], &found));
            let warned =
                expected["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty());
            if warned && warnings.is_empty() {
                all.push(format!("warnings: expected some as {}", expected["warnings"]));
            }
            all
        }
        Err(fault) => {
            let mut all =
                differences("errorClass", &expected["errorClass"], &json!(fault.class.as_str()));
            let paths = expected["errorPaths"].as_array().into_iter().flatten();
            if !paths.filter_map(Value::as_str).any(|path| fault.path.starts_with(path)) {
                all.push(format!("errorPaths: expected {}, found {fault}", expected["errorPaths"]));
            }
            all
        }
    }
}

fn run(kind: &str, stage: fn(&Vector) -> Value) {
    let Some(vectors) = vectors(kind) else { return };
    let mut verdicts = Verdicts::new(&format!("{kind}-stage"));
    for vector in vectors.iter().filter(|vector| vector.kind == kind) {
        let mut expected = vector.expected().remove(0);
        for event in expected.get_mut("emitted").and_then(Value::as_array_mut).into_iter().flatten()
        {
            *event = as_read(event);
        }
        let found = stage(vector);
        let mut all = Vec::new();
        for field in ["outcome", "errorClass", "accepted", "emitted"] {
            if let Some(expected) = expected.get(field) {
                all.extend(differences(field, expected, &found[field]));
            }
        }
        verdicts.note(&vector.id, &all);
    }
    verdicts.settle();
}

fn verified(vector: &Vector) -> Value {
    let mut verifier = Verifier::new();
    let mut accepted = 0;
    for frame in frames(vector) {
        let verdict = match attributable(frame) {
            Some(event) => verifier.push(&event).map_err(|fault| fault.class),
            None => Err(Class::Sequence),
        };
        if let Err(class) = verdict {
            return json!({"outcome": "failed", "errorClass": class.as_str(), "accepted": accepted});
        }
        accepted += 1;
    }
    json!({"outcome": "completed", "errorClass": null, "accepted": accepted})
}

/// The event in a frame, or `None` where its owner is spelled `null` (P-66) or a required one is
/// missing. The recorded checker was given such frames past the stages that refuse them, and refused
/// them itself; here events are typed and cannot hold them.
fn attributable(frame: &Value) -> Option<Event> {
    let reading = EventReader::new().tolerant(&frame.to_string());
    let null = frame.get("subagentRunId").is_some_and(Value::is_null);
    reading.ok().map(|reading| reading.value).filter(|_| !null)
}

fn expanded(vector: &Vector) -> Value {
    let mut expander = ChunkExpander::new();
    let mut out = Vec::new();
    let verdict = frames(vector).iter().try_for_each(|frame| {
        let event = EventReader::new().tolerant(&frame.to_string()).map_err(|_| Class::Schema)?;
        expander.push(event.value, &mut out).map_err(|fault| fault.class)
    });
    let (outcome, class) = match verdict {
        Ok(()) => ("completed", None),
        Err(class) => ("failed", Some(class.as_str())),
    };
    let emitted: Vec<Value> = out.iter().map(written).collect();
    json!({"outcome": outcome, "errorClass": class, "emitted": emitted})
}

/// An event without what a typed one cannot hold: undescribed members, `null` for absent.
fn as_read(event: &Value) -> Value {
    let reading = EventReader::new().tolerant(&event.to_string());
    reading.map_or_else(|_| event.clone(), |reading| written(&reading.value))
}

fn written(event: &Event) -> Value {
    serde_json::from_str(&event.to_json()).unwrap()
}

fn frames(vector: &Vector) -> &[Value] {
    vector.input["events"].as_array().unwrap()
}
