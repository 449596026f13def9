//! What the published vectors and streams deliver, folded, against what they leave behind.
//!
//! The events are those that reached the application in the recording: verified and expanded. Where
//! they are read from, see `conformance/`.

#[path = "conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "conformance/corpus.rs"]
mod corpus;
mod shadow;

use agui_stream::Ending;
use agui_stream::fold::{Applied, Conversation};
use agui_types::{Event, EventReader, FromJson, Message, ResumeEntry, RunId, ToJson, json};
use compare::differences;
use corpus::Verdicts;
use serde_json::{Value, json};
use shadow::Shadow;

/// Each file with how many runs of it are folded.
const FILES: [(&str, usize); 12] = [
    ("valid-simple", 200),
    ("valid-rich", 180),
    ("json-patch", 200),
    ("turns", 453),
    ("subscribers", 11),
    ("invalid-order", 240),
    ("invalid-shape", 299),
    ("chunks", 177),
    ("http", 150),
    ("legacy-0x", 200),
    ("proto", 93),
    ("sse-framing", 236),
];

#[test]
fn recorded_runs_leave_what_they_left() {
    for (file, count) in FILES {
        let Some(path) = corpus::find(&format!("vectors/{file}.jsonl")) else {
            return;
        };
        let mut verdicts = Verdicts::new(&format!("{file}-fold"));
        let mut runs = 0;
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let vector = tree(line);
            if can_be_folded(&vector) {
                let (count, differences) = fold(&vector);
                runs += count;
                verdicts.note(vector["id"].as_str().unwrap(), &differences);
            }
        }
        verdicts.settle();
        assert_eq!(runs, count, "{file}");
    }
}

/// Not where a subscriber changed the conversation behind its back, nor where a string was cut
/// within a character, which the recording writes in a way that no longer tells.
fn can_be_folded(vector: &Value) -> bool {
    let script = vector["input"]["subscriberScript"].as_array();
    let scripted = script.into_iter().flatten().any(|step| step.get("return").is_some());
    let lone = vector["expect"]["flags"].to_string().contains("loneSurrogates");
    vector["kind"] == "run" && !scripted && !lone
}

/// Folds all runs of a line; how many, and what differs.
fn fold(vector: &Value) -> (usize, Vec<String>) {
    let runs = each_run(&vector["input"]);
    let mut expected = each_run(&vector["expect"]);
    for (expected, preferred) in expected.iter_mut().zip(each_run(&vector["preferred"])) {
        if let (Some(expected), Value::Object(preferred)) = (expected.as_object_mut(), preferred) {
            expected.extend(preferred);
        }
    }
    assert_eq!(runs.len(), expected.len());
    let initial = &vector["input"]["initial"];
    let state = initial.get("state").cloned().unwrap_or_else(|| json!({}));
    let mut conversation = Conversation::new(
        messages(&initial["messages"]),
        json::Value::parse(&state.to_string()).unwrap(),
    );
    let mut all = Vec::new();
    for (run, expected) in runs.iter().zip(&mut expected) {
        // As typed messages hold them: an absent member is never null.
        if let Some(held) = expected.get_mut("messages") {
            *held = messages(held).iter().map(written).collect();
        }
        messages(&run["addMessages"]).into_iter().for_each(|message| conversation.push(message));
        let resume = run["runInput"]["resume"].as_array().cloned().unwrap_or_default();
        let resume: Vec<ResumeEntry> = resume.iter().map(read).collect();
        let run = run["runInput"]["runId"].as_str().unwrap_or("run-1");
        conversation.begin_exchange(&RunId::from(run), &resume);
        let mut shadow = Shadow::new(&conversation);
        let mut applied = Applied::default();
        for event in expected["delivered"].as_array().into_iter().flatten() {
            let event: Event = EventReader::new().tolerant(&event.to_string()).unwrap().value;
            conversation.apply(&event, &mut applied);
            all.extend(shadow.follow(&conversation, &applied));
        }
        all.extend(compared(&mut conversation, expected));
    }
    (runs.len(), all)
}

/// The one run of a line, or each of several.
fn each_run(side: &Value) -> Vec<Value> {
    side["runs"].as_array().cloned().unwrap_or_else(|| vec![side.clone()])
}

fn compared(conversation: &mut Conversation, expected: &Value) -> Vec<String> {
    let mut found = json!({
        "messages": conversation.messages().iter().map(written).collect::<Vec<_>>(),
        "state": tree(conversation.state().to_json().as_str()),
        "pendingInterrupts": conversation.open_interrupts().iter().map(written).collect::<Vec<_>>(),
    });
    let mut fields = vec!["messages", "state", "pendingInterrupts"];
    // A call that fails returns nothing.
    if expected["outcome"] == "completed" {
        let new: Vec<_> = conversation.new_messages().map(|id| id.as_str()).collect();
        found["newMessages"] = json!(new);
        found["result"] = conversation.result().map_or(Value::Null, |json| tree(json.as_str()));
        fields.push("newMessages");
        let result = expected.get("result").unwrap_or(&Value::Null);
        let result = differences("result", result, &found["result"]);
        if !result.is_empty() {
            return result;
        }
    }
    found["runOutcome"] = json!(match conversation.end_exchange() {
        Ending::Completed => "success",
        Ending::Interrupted => "interrupt",
        Ending::Cancelled => "cancelled",
        Ending::Failed => "error",
        Ending::Truncated => "none",
    });
    fields.push("runOutcome");
    let fields = fields.into_iter().filter_map(|field| Some((field, expected.get(field)?)));
    fields.flat_map(|(field, expected)| differences(field, expected, &found[field])).collect()
}

#[test]
fn published_streams_leave_what_they_must() {
    let Some(folder) = corpus::find("streams") else {
        return;
    };
    let mut folded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let stream: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        if needs_other_stages(&stream) {
            continue;
        }
        let input = stream["input"].clone();
        let mut conversation =
            Conversation::new(messages(&input["messages"]), json::Value::parse("{}").unwrap());
        let mut shadow = Shadow::new(&conversation);
        let (mut applied, mut warnings) = (Applied::default(), Vec::new());
        for event in stream["stream"].as_array().unwrap() {
            let event = EventReader::new().tolerant(&event.to_string()).unwrap().value;
            conversation.apply(&event, &mut applied);
            assert_eq!(shadow.follow(&conversation, &applied), None, "{}", path.display());
            warnings.extend(applied.warnings.iter().map(ToString::to_string));
        }
        let mut expect = stream["expect"].clone();
        if let Some(more) = stream["expectOverrides"]["typescript"].as_object() {
            expect.as_object_mut().unwrap().extend(more.clone());
        }
        let held = conversation.messages().iter().map(written).collect::<Vec<_>>();
        let state = tree(conversation.state().to_json().as_str());
        let name = &stream["name"];
        if let Some(count) = expect.get("messageCount") {
            assert_eq!(count, held.len(), "{name}");
        }
        assert!(contains(&json!(held), &expect["messages"]), "{name}: {held:?}");
        assert!(contains(&state, &expect["state"]), "{name}: {state}");
        if expect["noWarnings"] == true {
            assert_eq!(warnings, Vec::<String>::new(), "{name}");
        }
        folded += 1;
    }
    assert!(folded >= 25, "{folded} streams were folded");
}

/// Fails on the way, or comes in a form that a stage before this one brings into shape.
fn needs_other_stages(stream: &Value) -> bool {
    let types = stream["stream"].as_array().unwrap().iter();
    let types: Vec<_> = types.filter_map(|event| event["type"].as_str()).collect();
    stream["expect"]["outcome"] != "completed"
        || stream.get("client").is_some()
        || types.iter().any(|name| name.ends_with("_CHUNK") || name.starts_with("THINKING"))
}

/// Whether a value has what is asked for: arrays of the same length, objects on the named keys.
fn contains(found: &Value, asked: &Value) -> bool {
    match (found, asked) {
        (_, Value::Null) => true,
        (Value::Array(found), Value::Array(asked)) => {
            found.len() == asked.len() && found.iter().zip(asked).all(|(a, b)| contains(a, b))
        }
        (Value::Object(found), Value::Object(asked)) => asked
            .iter()
            .all(|(key, asked)| found.get(key).is_some_and(|found| contains(found, asked))),
        (found, asked) => differences("", asked, found).is_empty(),
    }
}

fn messages(list: &Value) -> Vec<Message> {
    list.as_array().into_iter().flatten().map(read).collect()
}

fn read<T: FromJson>(value: &Value) -> T {
    T::from_json_tolerant(&value.to_string()).unwrap().value
}

fn written<T: ToJson>(value: &T) -> Value {
    tree(&value.to_json())
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
