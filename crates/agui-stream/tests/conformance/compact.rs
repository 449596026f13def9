//! Compaction: the vectors of kind `compact`, and the public report about it.

use agui_stream::{Class, Pipeline, compact};
use agui_types::Event;
use serde_json::{Value, json};

use crate::client::{all_written, consume, conversation, read, state};
use crate::compare::differences;
use crate::corpus::{self, Verdicts, vectors};

/// Lines without a quirk: what comes out, exactly. The others: it verifies, and reduces as is
/// preferred.
#[test]
fn lines() {
    let Some(vectors) = vectors("compact") else { return };
    let mut verdicts = Verdicts::new("compact");
    for vector in vectors.iter().filter(|vector| vector.kind == "compact") {
        let expected = vector.expected().remove(0);
        let events = events(&vector.input["events"]);
        let compacted = compact(events.clone());
        let differences = match (expected.get("reduced"), reduced(&compacted)) {
            (None, _) => {
                differences("emitted", &as_read(&expected["emitted"]), &all_written(&compacted))
            }
            (Some(reduced), Ok(found)) => differences("reduced", reduced, &found),
            (Some(_), Err(fault)) => vec![fault],
        };
        verdicts.note(&vector.id, &differences);
        // Also where a line deviates:
        assert_eq!(compact(compacted.clone()), compacted, "{}: twice", vector.id);
        if let Ok(before) = reduced(&events) {
            assert_eq!(reduced(&compacted), Ok(before), "{}", vector.id);
        }
    }
    verdicts.settle();
}

#[test]
fn cases() {
    let Some(cases) = corpus::cases() else { return };
    let mut count = 0;
    for (_, case) in cases {
        if case["input"]["op"] == "compact" {
            agrees(&case);
            count += 1;
        }
    }
    assert!(count > 0);
}

/// A stream that is compacted verifies, folds as before, and says what was said.
fn agrees(case: &Value) {
    let events = events(&case["input"]["events"]);
    let compacted = compact(events.clone());
    assert_eq!(reduced(&compacted).unwrap(), reduced(&events).unwrap());
    let deltas = all_written(&compacted);
    let deltas = deltas.as_array().unwrap().iter().filter(|event| event.get("delta").is_some());
    let id = |event: &Value| {
        [&event["messageId"], &event["toolCallId"]]
            .into_iter()
            .find_map(|id| id.as_str().map(str::to_owned))
    };
    let deltas: Value = deltas.map(|event| (id(event).unwrap(), event["delta"].clone())).collect();
    assert_eq!(deltas, case["expect"]["deltas"]);
}

/// What a stream comes to, cut off or not.
fn reduced(events: &[Event]) -> Result<Value, String> {
    let mut thread = conversation(&json!([]), None);
    let found = consume(&all_written(events), Pipeline::new(), &mut thread);
    match found.fault {
        Some(fault) if fault.class != Class::Truncated => Err(fault.to_string()),
        _ => Ok(json!({
            "messages": all_written(thread.messages().iter()),
            "state": state(&thread),
        })),
    }
}

fn events(frames: &Value) -> Vec<Event> {
    frames.as_array().unwrap().iter().map(read).collect()
}

/// Events without what a typed one cannot hold.
fn as_read(frames: &Value) -> Value {
    all_written(&events(frames))
}
