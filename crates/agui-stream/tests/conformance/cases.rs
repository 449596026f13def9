//! The cases from public reports, where they are about parsed events.

use agui_stream::{Class, Ending, Pipeline};
use serde_json::{Value, json};

use crate::client::{Consumed, all_written, consume, conversation, state, written};
use crate::compare::{differences, lacking};
use crate::corpus::{self, Verdicts};

#[test]
fn cases() {
    let Some(cases) = corpus::cases() else { return };
    let mut verdicts = Verdicts::new("cases");
    let mut count = 0;
    for (name, case) in cases {
        if case["kind"] == "events" && case["input"].get("op").is_none() {
            verdicts.note(&name, &run(&case));
            count += 1;
        }
    }
    verdicts.settle();
    assert!(count >= 24, "{count} cases");
}

fn run(case: &Value) -> Vec<String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    let mut thread = conversation(&input["initialMessages"], input.get("initialState"));
    let found = consume(&input["events"], Pipeline::new(), &mut thread);
    let outcome = match (&found.fault, thread.end_exchange()) {
        (Some(fault), _) if fault.class == Class::Truncated => "truncated",
        (Some(_), _) => "rejected",
        (None, Ending::Failed) => "run-failed",
        (None, ending) => ending.as_str(),
    };
    let mut all = differences("outcome", &expect["outcome"], &json!(outcome));
    if let Some(types) = expect.get("delivered") {
        all.extend(differences("delivered", types, &json!(found.types())));
    }
    if let Some(messages) = expect.get("messages") {
        all.extend(lacking("messages", messages, &all_written(thread.messages().iter())));
    }
    if let Some(expected) = expect.get("state") {
        all.extend(differences("state", expected, &state(&thread)));
    }
    if let Some(error) = expect.get("error") {
        all.extend(lacking("error", error, &written(found.delivered.last().unwrap())));
    }
    let error = found.fault.as_ref().map(ToString::to_string).unwrap_or_default();
    for (key, text) in [("mentions", error.clone()), ("warn", found.warnings().join("\n"))] {
        let words = expect[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = words.filter(|word| !text.contains(word));
        all.extend(missing.map(|word| format!("{key}: {word:?} is not in {text:?}")));
    }
    all.extend(reason(expect, &found));
    all
}

fn reason(expect: &Value, found: &Consumed) -> Option<String> {
    let fault = found.fault.as_ref().filter(|fault| fault.class != Class::Truncated)?;
    let class = match expect["reason"].as_str()? {
        "lifecycle" => "sequence",
        class => class,
    };
    let path = expect["path"].as_str().unwrap_or_default();
    let right = fault.class.as_str() == class && fault.path.contains(path);
    (!right).then(|| format!("reason: expected {class} at {path:?}, found {fault}"))
}
