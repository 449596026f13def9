//! The published streams, with the result a client must reach.

use agui_stream::{Outgoing, PeerVersion, Pipeline};
use agui_types::{Event, ProtocolVersion, RunAgentInput};
use serde_json::{Value, json};

use crate::client::{Consumed, all_written, consume, conversation, read, state, written};
use crate::compare::lacking;
use crate::corpus::{Verdicts, find};

#[test]
fn published_streams() {
    let Some(folder) = find("streams") else {
        return;
    };
    let mut verdicts = Verdicts::new("streams");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let case: Value = serde_json::from_str(&text).unwrap();
            let name = case["name"].as_str().unwrap().to_owned();
            verdicts.note(&name, &run(case));
            count += 1;
        }
    }
    verdicts.settle();
    assert!(count >= 56, "{count} streams");
}

fn run(mut case: Value) -> Vec<String> {
    fill_gaps(&mut case);
    spell_versions(&mut case);
    let peer = case["client"]["maxProtocolVersion"].as_str();
    let peer = peer.map_or(PeerVersion::CURRENT, |peer| peer.parse().unwrap());
    let mut warnings = Vec::new();
    let input = Outgoing::new().to_peer(peer).prepare(input(&case), &[], &mut warnings).unwrap();
    let mut thread = conversation(&json!([]), None);
    thread.set_messages(input.messages.clone());
    thread.begin_exchange(&input.run_id, &[]);
    let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
    let mut consumed = consume(&case["stream"], pipeline.from_peer(peer), &mut thread);
    consumed.warnings.append(&mut warnings);
    let result = Result {
        error: consumed.fault.as_ref().map(ToString::to_string),
        delivered: all_written(&consumed.delivered),
        messages: all_written(thread.messages().iter()),
        state: state(&thread),
        request: written(&input),
        consumed,
    };
    judge(&case["expect"], &result)
}

/// What a client came to.
struct Result {
    consumed: Consumed,
    error: Option<String>,
    delivered: Value,
    messages: Value,
    state: Value,
    request: Value,
}

fn judge(expect: &Value, result: &Result) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in expect.as_object().unwrap() {
        all.extend(judge_key(key, value, result).into_iter().map(|it| format!("{key}: {it}")));
    }
    all
}

fn judge_key(key: &str, value: &Value, result: &Result) -> Vec<String> {
    let (types, warnings) = (result.consumed.types(), result.consumed.warnings());
    let texts = || value.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    let wrong = |found: String| vec![format!("expected {value}, found {found}")];
    let paths = || {
        value
            .as_object()
            .unwrap()
            .iter()
            .map(|(path, value)| (at(&result.delivered, path), path, value))
    };
    match key {
        "outcome" if value == "completed" && result.error.is_none() => Vec::new(),
        "outcome" if value == "failed" && result.error.is_some() => Vec::new(),
        "outcome" => wrong(format!("{:?}", result.error)),
        "errorContains" => {
            // Quotes are escaped where the recorded client prints JSON in its error.
            let part = value.as_str().unwrap().replace('\\', "");
            let error = result.error.as_deref().unwrap_or_default();
            if error.contains(&part) { Vec::new() } else { wrong(error.into()) }
        }
        "runError" => {
            let part = value.as_str().unwrap_or_default();
            let found = result.consumed.delivered.iter().any(
                |event| matches!(event, Event::RunError(event) if event.message.contains(part)),
            );
            if found { Vec::new() } else { wrong(format!("{types:?}")) }
        }
        "eventTypes" if texts().eq(types.iter().copied()) => Vec::new(),
        "eventTypesAbsent" if texts().all(|text| !types.contains(&text)) => Vec::new(),
        "eventTypes" | "eventTypesAbsent" => wrong(format!("{types:?}")),
        "eventPaths" => paths()
            .filter(|(found, _, value)| found.as_ref() != Some(*value))
            .map(|(found, path, value)| format!("{path}: expected {value}, found {found:?}"))
            .collect(),
        "eventAbsentPaths" => texts()
            .filter(|path| at(&result.delivered, path).is_some())
            .map(|path| format!("{path} is there"))
            .collect(),
        "warnings" => texts()
            .filter(|text| !warnings.iter().any(|warning| warning.contains(text)))
            .map(|text| format!("expected {text:?}, found {warnings:?}"))
            .collect(),
        "noWarnings" if warnings.is_empty() => Vec::new(),
        "noWarnings" => wrong(format!("{warnings:?}")),
        "messageCount" if result.messages.as_array().is_some_and(|it| *value == it.len()) => {
            Vec::new()
        }
        "messageCount" => wrong(result.messages.to_string()),
        "messages" => lacking("messages", value, &result.messages),
        "state" => lacking("state", value, &result.state),
        "request" => lacking("request", value, &result.request),
        "requestAbsentPaths" => texts()
            .filter(|path| at(&result.request, path).is_some())
            .map(|path| format!("{path} is there"))
            .collect(),
        other => vec![format!("an expectation nobody knows: {other}")],
    }
}

/// The value at a dotted path; numbers are indices.
fn at(value: &Value, path: &str) -> Option<Value> {
    path.split('.')
        .try_fold(value, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            value => value.get(step),
        })
        .cloned()
}

fn input(case: &Value) -> RunAgentInput {
    let started =
        case["stream"].as_array().unwrap().iter().find(|event| event["type"] == "RUN_STARTED");
    let id = |name: &str| started.map_or(json!("unknown"), |started| started[name].clone());
    let mut input = json!({ "threadId": id("threadId"), "runId": id("runId"), "messages": [] });
    if let Some(given) = case["input"].as_object() {
        input.as_object_mut().unwrap().extend(given.clone());
    }
    read(&input)
}

/// Two files pin what the first-party clients do against the rule, as their README says; here the
/// rule is followed. What holds for a client that expands chunks is overlaid everywhere.
fn fill_gaps(case: &mut Value) {
    let overrides = case["expectOverrides"]["typescript"].clone();
    let name = case["name"].as_str().unwrap().to_owned();
    let expect = case["expect"].as_object_mut().unwrap();
    if let Value::Object(overrides) = overrides {
        expect.extend(overrides);
    }
    match &*name {
        "unknown-enum-value-role-fatal" => {
            let deltas: String = case["stream"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|event| event["delta"].as_str())
                .collect();
            case["expect"] = json!({
                "outcome": "completed",
                "warnings": ["/role"],
                "messageCount": 1,
                "messages": [{ "role": "assistant", "content": deltas }],
            });
        }
        "truncated-run-reported-as-completed" => {
            expect.insert("outcome".into(), json!("failed"));
            expect.insert("errorContains".into(), json!("RUN_FINISHED"));
            expect.remove("noWarnings");
        }
        _ => {}
    }
}

/// The files spell the version this client speaks as 1.1, and one minor newer as 1.2.
fn spell_versions(case: &mut Value) {
    let ours = ProtocolVersion::DECLARED;
    let newer = format!("{}.{}", ours.major, ours.minor + 1);
    for part in ["/stream", "/expect/request", "/expect/warnings"] {
        if let Some(part) = case.pointer_mut(part) {
            respell(part, &ours.to_string(), &newer);
        }
    }
}

fn respell(value: &mut Value, ours: &str, newer: &str) {
    match value {
        Value::String(text) if text == "1.1" => *text = ours.into(),
        Value::String(text) if text == "1.2" => *text = newer.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| respell(item, ours, newer)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(_, member)| respell(member, ours, newer));
        }
        _ => {}
    }
}
