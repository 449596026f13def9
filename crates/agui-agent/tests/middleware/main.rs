//! What wraps an agent.

mod events;
mod headers;
mod input;
mod log;
#[path = "../logged/mod.rs"]
mod logged;
mod time;
mod tool_filter;

use agui_agent::{Agent, AgentError, EventStream, RunContext};
use agui_stream::Verifier;
use agui_types::message::UserMessage;
use agui_types::{Event, FromJson, Message, RunAgentInput};
use futures_util::{StreamExt, stream};

fn input() -> RunAgentInput {
    let hello = Message::from(UserMessage::new("u1", "hello"));
    RunAgentInput::new("t", "r", vec![hello])
}

/// The agent's events, which are in order, and its error.
async fn run(agent: &impl Agent) -> (Vec<Event>, Option<AgentError>) {
    run_on(agent, input()).await
}

async fn run_on(agent: &impl Agent, input: RunAgentInput) -> (Vec<Event>, Option<AgentError>) {
    let mut stream = agent.run(input, RunContext::new());
    let mut verifier = Verifier::new();
    let mut events = Vec::new();
    while let Some(next) = stream.next().await {
        match next {
            Ok(event) => {
                verifier.push(&event.value).unwrap_or_else(|fault| panic!("{fault}: {events:#?}"));
                events.push(event.value);
            }
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last item");
                return (events, Some(error));
            }
        }
    }
    assert!(stream.next().await.is_none());
    (events, None)
}

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::type_name).collect()
}

fn error_code(events: &[Event]) -> (&str, Option<&str>) {
    match events.last() {
        Some(Event::RunError(error)) => (&error.message, error.code.as_deref()),
        other => panic!("expected RUN_ERROR, found {other:?}"),
    }
}

/// An agent that sends these events as they were read.
struct Script(Vec<&'static str>);

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

impl Agent for Script {
    fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
        let events: Vec<_> =
            self.0.iter().map(|text| Ok(Event::from_json_tolerant(text).unwrap())).collect();
        Box::pin(stream::iter(events))
    }

    fn connect(&self, input: RunAgentInput, context: RunContext) -> Option<EventStream> {
        Some(self.run(input, context))
    }
}

#[test]
fn middleware_may_move_between_threads() {
    use agui_agent::middleware as m;
    fn sendable<T: Send + Sync + 'static>() {}
    sendable::<m::AgentHeaders>();
    sendable::<m::EventLog>();
    sendable::<m::ExpandChunks>();
    sendable::<m::HeaderPolicy>();
    sendable::<m::HistoryGuard>();
    sendable::<m::Next>();
    sendable::<m::RequestHeaders>();
    sendable::<m::Retry>();
    sendable::<m::Throttle>();
    sendable::<m::Timeout>();
    sendable::<m::ToolFilter>();
    sendable::<m::Wrapped<m::EventLog>>();
}
