//! The recorded runs with a subscriber, through the whole pipeline and with an observer that does
//! what the script says: which callbacks are called, in which order, with what, and what is left.
//!
//! Where they are read from, see `conformance/`.

#[path = "conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "conformance/corpus.rs"]
mod corpus;
#[path = "conformance/recorder.rs"]
mod recorder;

use agui_stream::fold::Applied;
use agui_stream::observe::Observers;
use agui_stream::{Conversation, Fault, Outgoing, Pipeline};
use agui_types::event::Event;
use agui_types::{EventReader, Json, RunAgentInput, RunFinishedOutcome, ToJson};
use corpus::{Vector, vectors};
use recorder::{Judge, Recorder, compared, messages, tree, value};
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

/// Runs the lines of a file that have a script, or recorded calls.
fn file(name: &str, count: usize) {
    let Some(vectors) = vectors(name) else { return };
    let mut judge = Judge::new(name, &format!("{name}-observed"));
    for vector in &vectors {
        let expected = vector.expected().remove(0);
        let scripted = vector.input.get("subscriberScript").is_some();
        if !scripted && expected.get("subscriberCalls").is_none() {
            continue;
        }
        let recorder = Recorder::new(&vector.input["subscriberScript"], |failure| {
            failure.downcast_ref::<Fault>().map(|fault| fault.class.as_str())
        });
        let calls = recorder.calls.clone();
        let differences = run(vector, &expected, recorder);
        judge.note(vector, &expected, differences, &calls.lock().unwrap());
    }
    judge.settle(count);
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
    compared(input, expected, &found, &errors, thrown)
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

fn written<T: ToJson>(it: &T) -> Value {
    value(&it.to_json())
}
