//! Whatever an agent does, its stream is valid and ends with one terminal event.

#[cfg(feature = "schemars")]
mod asking;
mod completion;
mod life;
#[cfg(feature = "schemars")]
#[path = "../logged/mod.rs"]
mod logged;
mod refusals;
mod state;
mod tools;

use agui_agent::{Agent, EventStream, RunContext};
use agui_stream::Verifier;
use agui_stream::fold::{Applied, Conversation};
use agui_types::event::RunFinished;
use agui_types::message::UserMessage;
use agui_types::{Event, FromJson, Message, RunAgentInput};
use futures_util::StreamExt;

fn input() -> RunAgentInput {
    let hello = Message::from(UserMessage::new("u1", "hello"));
    RunAgentInput::new("thread", "run", vec![hello])
}

fn start(agent: &impl Agent) -> EventStream {
    agent.run(input(), RunContext::new())
}

/// Takes the whole stream, which must verify, end once, and end with its last event.
async fn whole(stream: EventStream) -> Vec<Event> {
    let events: Vec<Event> = stream.map(|event| event.unwrap().value).collect().await;
    let mut verifier = Verifier::for_run("thread".into(), "run".into());
    for event in &events {
        verifier.push(event).unwrap_or_else(|fault| panic!("{fault}: {events:#?}"));
    }
    verifier.finish().unwrap();
    for event in &events {
        Event::from_json_exact(&agui_types::ToJson::to_json(event)).unwrap();
    }
    assert!(matches!(events[0], Event::RunStarted(_)), "P-1");
    assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1);
    assert!(events.last().unwrap().is_terminal());
    events
}

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::type_name).collect()
}

fn finished(events: &[Event]) -> &RunFinished {
    match events.last() {
        Some(Event::RunFinished(finished)) => finished,
        other => panic!("expected RUN_FINISHED, found {other:?}"),
    }
}

fn error_code(events: &[Event]) -> (&str, Option<&str>) {
    match events.last() {
        Some(Event::RunError(error)) => (&error.message, error.code.as_deref()),
        other => panic!("expected RUN_ERROR, found {other:?}"),
    }
}

/// The conversation that the stream leads to, which a consumer holds without a warning.
fn folded(input: &RunAgentInput, events: &[Event]) -> Conversation {
    let mut conversation = Conversation::from_input(input).unwrap();
    let mut applied = Applied::default();
    for event in events {
        conversation.apply(event, &mut applied);
        assert_eq!(applied.warnings, [], "{event:?}");
    }
    conversation
}
