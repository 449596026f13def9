//! Recorded conversations of the reference client, through a session: several runs of one thread,
//! with interrupts, resumptions and refusals; and connecting.
//!
//! The vectors are read from `AGUI_CORPUS`, or from `../shared/conformance` beside the repository.
#![cfg(feature = "session")]

#[path = "../../agui-stream/tests/conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;

use std::sync::{Arc, Mutex};

use agui_agent::session::{Finished, Request, Session, SessionError, Update};
use agui_agent::{Agent, AgentError, EventStream, RunContext};
use agui_stream::observe::{Mutation, Observer, Reaction, Scene};
use agui_stream::{Ending, PeerVersion};
use agui_types::json::Value as Tree;
use agui_types::{Event, FromJson, Json, Message, ResumeEntry, RunAgentInput, ToJson};
use agui_wire::{Decoder, Limits, WireForm};
use compare::differences;
use corpus::{Vector, Verdicts, vectors};
use futures_util::stream;
use serde_json::{Value, json};

#[tokio::test]
async fn turns() {
    assert_eq!(file("turns", |_| true).await, Some(150));
}

/// With a history that was held before, what is connected to takes its place; the recordings begin
/// with nothing.
#[tokio::test]
async fn connecting() {
    file("http", |vector| {
        let input = &vector.input;
        input.get("mode").is_some() && input.get("events").is_some() && input.get("http").is_none()
    })
    .await;
}

async fn file(name: &str, wanted: fn(&Vector) -> bool) -> Option<usize> {
    let vectors = vectors(name)?;
    let mut verdicts = Verdicts::new(&format!("{name}-session"));
    let mut compared = 0;
    for vector in vectors.iter().filter(|vector| wanted(vector)) {
        verdicts.note(&vector.id, &play(vector).await);
        compared += 1;
    }
    verdicts.settle();
    assert!(compared > 0, "{name}");
    Some(compared)
}

/// Sends the bytes that a run is to be answered with, one frame an event, through the reader of the
/// wire.
#[derive(Clone, Default)]
struct Recorded {
    frames: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<Option<RunAgentInput>>>,
}

impl Agent for Recorded {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        *self.asked.lock().unwrap() = Some(input);
        let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
        let mut items: Vec<Result<_, AgentError>> = Vec::new();
        for frame in self.frames.lock().unwrap().drain(..) {
            let mut read = frame.as_bytes();
            loop {
                match decoder.decode(&mut read) {
                    Ok(None) => break,
                    Ok(Some(decoded)) => items.extend(decoded.event.map(Ok)),
                    Err(error) => {
                        items.push(Err(error.into()));
                        return Box::pin(stream::iter(items));
                    }
                }
            }
        }
        Box::pin(stream::iter(items))
    }

    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        Some(self.run(input, context))
    }
}

/// Writes down what is delivered.
struct Delivered(Arc<Mutex<Vec<Value>>>);

impl Observer for Delivered {
    fn on_event(&mut self, event: &Event, _: &Scene<'_>) -> Reaction {
        self.0.lock().unwrap().push(decoded(&event.to_json()));
        Ok(Mutation::new())
    }
}

/// Plays all runs of a line; what differs.
async fn play(vector: &Vector) -> Vec<String> {
    let initial = &vector.input["initial"];
    let state = initial.get("state").cloned().unwrap_or_else(|| json!({}));
    let agent = Recorded::default();
    let delivered: Arc<Mutex<Vec<Value>>> = Arc::default();
    let peer = vector.input["maxProtocolVersion"].as_str();
    let mut session = Session::new(agent.clone())
        .with_thread_id("thread-1")
        .with_messages(messages(&initial["messages"]))
        .with_state(Tree::parse(&state.to_string()).unwrap())
        .with_peer(peer.map_or(PeerVersion::CURRENT, |version| version.parse().unwrap()))
        .with_observer(Delivered(Arc::clone(&delivered)));

    let mut all = Vec::new();
    let connects = vector.input.get("mode").is_some();
    for (at, (run, expected)) in vector.runs().iter().zip(vector.expected()).enumerate() {
        let events = run["events"].as_array().unwrap();
        *agent.frames.lock().unwrap() =
            events.iter().map(|event| format!("data: {event}\n\n")).collect();
        delivered.lock().unwrap().clear();
        messages(&run["addMessages"]).into_iter().for_each(|message| session.push(message));
        let run_id = run["runInput"]["runId"].as_str().unwrap_or("run-1");
        let mut request = Request::new().run_id(run_id);
        if let Some(answers) = run["runInput"]["resume"].as_array() {
            request = request.resume(answers.iter().map(answer));
        }
        let before = session.conversation().clone();
        let mut turn = if connects { session.connect() } else { session.start(request) };
        let mut warnings = Vec::new();
        while let Some(update) = turn.next().await {
            if let Update::Warning(warning) = update {
                warnings.push(warning);
            }
        }
        let ended = turn.finish().await;
        let sent = agent.asked.lock().unwrap().take();
        if sent.is_none() {
            // Nothing was sent, so nothing has changed.
            assert_eq!(before.messages().to_vec(), session.messages().to_vec());
        }
        let mut found = found(&ended, &session, sent.as_ref());
        found["delivered"] = std::mem::take(&mut *delivered.lock().unwrap()).into();
        if connects {
            // Which run it asks for means nothing.
            found["request"] = expected["request"].clone();
        }
        let mut fields =
            vec!["outcome", "errorClass", "runOutcome", "delivered", "messages", "state"];
        fields.extend(["pendingInterrupts", "request"]);
        if expected["outcome"] == "completed" {
            fields.extend(["newMessages", "result"]);
        }
        let mut expected = expected;
        if let Some(held) = expected.get_mut("messages") {
            // As typed messages hold them: what is absent is never null.
            *held = messages(held).iter().map(|message| decoded(&message.to_json())).collect();
        }
        for field in fields {
            let said = expected.get(field).is_some() || matches!(field, "errorClass" | "result");
            if said {
                let differ = differences(field, &expected[field], &found[field]);
                all.extend(differ.into_iter().map(|it| format!("run {at}: {it}")));
            }
        }
        let recorded = expected["warnings"].as_array().map_or(0, Vec::len);
        if recorded > 0 && warnings.is_empty() && found["outcome"] == "completed" {
            all.push(format!("run {at}: expected a warning as {}", expected["warnings"][0]));
        }
    }
    all
}

fn found(
    ended: &Result<Finished, SessionError>,
    session: &Session,
    sent: Option<&RunAgentInput>,
) -> Value {
    let class = match ended {
        Ok(finished) => finished.cut_off.as_ref().map(|error| error.class()),
        Err(error) => Some(error.class()),
    };
    let conversation = session.conversation();
    let list = |items: &mut dyn Iterator<Item = String>| -> Value {
        items.map(|text| decoded(&text)).collect()
    };
    json!({
        "outcome": if class.is_some() { "failed" } else { "completed" },
        "errorClass": class,
        "runOutcome": match conversation.ending().filter(|_| sent.is_some()) {
            Some(Ending::Completed) => "success",
            Some(Ending::Interrupted) => "interrupt",
            Some(Ending::Cancelled) => "cancelled",
            Some(Ending::Failed) => "error",
            _ => "none",
        },
        "messages": list(&mut session.messages().iter().map(ToJson::to_json)),
        "state": decoded(session.state().to_json().as_str()),
        "pendingInterrupts": list(&mut session.open_interrupts().iter().map(ToJson::to_json)),
        "newMessages": match ended {
            Ok(finished) => {
                finished.new_messages.iter().map(|id| id.as_str().into()).collect::<Vec<Value>>()
            }
            Err(_) => Vec::new(),
        },
        "result": ended.as_ref().ok().and_then(|it| it.result.as_ref()).map(|it| decoded(it.as_str())),
        "request": sent.map(|input| decoded(&input.to_json())),
    })
}

fn messages(list: &Value) -> Vec<Message> {
    let read = |message: &Value| Message::from_json_tolerant(&message.to_string()).unwrap().value;
    list.as_array().into_iter().flatten().map(read).collect()
}

fn answer(entry: &Value) -> ResumeEntry {
    ResumeEntry::from_json_tolerant(&entry.to_string()).unwrap().value
}

fn decoded(text: &str) -> Value {
    Json::parse(text).unwrap().decode().unwrap()
}
