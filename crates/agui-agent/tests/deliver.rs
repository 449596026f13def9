//! What an application gets of what an agent sends.

use agui_agent::{
    Agent, AgentError, AgentResult, Delivered, DeliveryError, EventStream, Run, RunContext, deliver,
};
use agui_types::{Event, FromJson, RunAgentInput};
use futures_util::{StreamExt, stream};

/// An agent that sends these events, and then an error if it has one.
struct Script {
    events: Vec<&'static str>,
    error: Option<fn() -> AgentError>,
}

impl Agent for Script {
    fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
        let events: Vec<_> =
            self.events.iter().map(|text| Event::from_json_tolerant(text).unwrap()).collect();
        let error = self.error.map(|error| Err(error()));
        Box::pin(stream::iter(events.into_iter().map(Ok).chain(error)))
    }
}

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

/// What came, as types and `!path` for warnings, and the error's class.
async fn delivered(agent: &impl Agent) -> (Vec<String>, Option<DeliveryError>) {
    let input = RunAgentInput::new("t", "r", Vec::new());
    let mut delivery = deliver(agent, input, RunContext::new());
    let mut seen = Vec::new();
    while let Some(item) = delivery.next().await {
        match item {
            Ok(Delivered::Event(event)) => seen.push(event.type_name().to_owned()),
            Ok(Delivered::Warning(warning)) => seen.push(format!("!{}", warning.path)),
            Err(error) => {
                assert!(delivery.next().await.is_none(), "an error is the last item");
                return (seen, Some(error));
            }
        }
    }
    (seen, None)
}

#[tokio::test]
async fn shorthand_is_expanded_and_what_is_not_described_is_stripped() {
    // C-22, C-23, C-43
    let agent = Script {
        events: vec![
            STARTED,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x","mood":1}"#,
            r#"{"type":"NEWS_FROM_THE_FUTURE"}"#,
            FINISHED,
        ],
        error: None,
    };
    let (seen, error) = delivered(&agent).await;
    let expected = [
        "RUN_STARTED",
        "!/mood",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "!",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(seen, expected);
    assert!(error.is_none());
}

#[tokio::test]
async fn everything_before_a_fault_is_delivered() {
    // C-12, C-38
    let content = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"ghost","delta":"x"}"#;
    let agent = Script { events: vec![STARTED, content, FINISHED], error: None };
    let (seen, error) = delivered(&agent).await;
    assert_eq!(seen, ["RUN_STARTED"]);
    match error {
        Some(DeliveryError::Fault(fault)) => {
            assert_eq!(
                (fault.rule, fault.event, fault.class.as_str()),
                ("C-38", Some(1), "sequence")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_stream_without_a_terminal_event_is_truncated() {
    // C-14, C-15, T-9
    let (seen, error) = delivered(&Script { events: vec![STARTED], error: None }).await;
    assert_eq!(seen, ["RUN_STARTED"]);
    assert_eq!(error.unwrap().class(), "truncated");
    let (seen, error) = delivered(&Script { events: vec![], error: None }).await;
    assert!(seen.is_empty());
    assert_eq!(error.unwrap().class(), "truncated");
}

#[tokio::test]
async fn an_agents_error_comes_after_its_events() {
    let refused = || AgentError::Status { status: 503, body: "later".into() };
    let agent = Script { events: vec![STARTED], error: Some(refused) };
    let (seen, error) = delivered(&agent).await;
    assert_eq!(seen, ["RUN_STARTED"]);
    let error = error.unwrap();
    assert_eq!((error.class(), error.to_string().as_str()), ("http", "HTTP 503: later"));
}

#[tokio::test]
async fn an_agent_in_this_process_is_judged_like_any_other() {
    // C-33
    async fn agent(run: Run) -> AgentResult {
        run.say("hi").await?;
        Ok(())
    }
    let (seen, error) = delivered(&agent).await;
    assert_eq!(seen.len(), 5);
    assert!(error.is_none());
}
