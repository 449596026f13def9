//! Order, closures, stages, and chunks spelled out.

use std::sync::{Arc, Mutex};

use agui_agent::middleware::{EventLog, ExpandChunks, Next, Stage, each_event, staged};
use agui_agent::{
    Agent, AgentError, AgentExt, AgentResult, Delivered, DeliveryError, Run, RunContext, deliver,
};
use agui_types::event::Custom;
use agui_types::{AgentCapabilities, Context, Event, Reading, RunAgentInput};
use futures_util::StreamExt;

use super::{FINISHED, STARTED, Script, input, run, types};

async fn greeter(run: Run) -> AgentResult {
    let told: Vec<_> = run.input().context.iter().flatten().map(|it| it.value.clone()).collect();
    run.say(told.join(" ")).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_added_last_sees_the_input_first_and_the_events_last() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let layer = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move |mut input: RunAgentInput, context: RunContext, next: Next| {
            seen.lock().unwrap().push(name);
            input.context.get_or_insert_default().push(Context::new("layer", name));
            next.run(input, context)
        }
    };
    let shout = each_event(|event| {
        Some(match event {
            Event::TextMessageContent(mut event) => {
                event.delta.push('!');
                event.into()
            }
            other => other,
        })
    });
    let ask = each_event(|event| {
        Some(match event {
            Event::TextMessageContent(mut event) => {
                event.delta.push('?');
                event.into()
            }
            other => other,
        })
    });
    let agent = greeter.with(layer("inner")).with(shout).with(layer("outer")).with(ask);
    let (events, _) = run(&agent).await;
    assert_eq!(*seen.lock().unwrap(), ["outer", "inner"]);
    let Event::TextMessageContent(content) = &events[2] else { panic!("{events:?}") };
    assert_eq!(content.delta, "outer inner!?");
}

#[tokio::test]
async fn a_stage_keeps_what_it_needs_and_is_begun_for_each_run() {
    struct Count(u64);
    impl Stage for Count {
        fn push(
            &mut self,
            event: Reading<Event>,
            out: &mut Vec<Reading<Event>>,
        ) -> Result<(), AgentError> {
            if event.value.is_terminal() {
                let count = serde_json::Value::from(self.0);
                out.push(Event::from(Custom::new("app.count", count)).into());
            }
            self.0 += 1;
            out.push(event);
            Ok(())
        }
    }
    let agent = greeter.with(staged(|_| Count(0)));
    for _ in 0..2 {
        let (events, _) = run(&agent).await;
        let Event::Custom(custom) = &events[events.len() - 2] else { panic!("{events:?}") };
        assert_eq!(custom.value.as_str(), "4");
    }
}

#[tokio::test]
async fn a_stage_may_break_a_stream_off_behind_what_it_gave() {
    struct Once;
    impl Stage for Once {
        fn push(
            &mut self,
            event: Reading<Event>,
            out: &mut Vec<Reading<Event>>,
        ) -> Result<(), AgentError> {
            out.push(event);
            Err(AgentError::Cancelled)
        }
    }
    let (events, error) = run(&greeter.with(staged(|_| Once))).await;
    assert_eq!(types(&events), ["RUN_STARTED"]);
    assert!(matches!(error, Some(AgentError::Cancelled)));
}

#[tokio::test]
async fn what_was_not_recognised_is_still_judged_behind_middleware() {
    // C-23, C-24, C-27, C-32
    let script = || {
        Script(vec![
            STARTED,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"narrator","delta":"x","mood":1}"#,
            r#"{"type":"NEWS"}"#,
            FINISHED,
        ])
    };
    async fn warned(agent: impl Agent) -> Vec<&'static str> {
        let mut delivery = deliver(&agent, input(), RunContext::new());
        let mut rules = Vec::new();
        while let Some(item) = delivery.next().await {
            if let Delivered::Warning(warning) = item.unwrap() {
                rules.push(warning.rule);
            }
        }
        rules.sort_unstable();
        rules
    }
    let expected = ["C-22", "C-23", "C-24"];
    assert_eq!(warned(script()).await, expected);
    assert_eq!(warned(script().with(each_event(Some))).await, expected);
    assert_eq!(warned(script().with(ExpandChunks)).await, expected);
}

#[tokio::test]
async fn chunks_are_spelled_out_for_who_wants_that() {
    // C-34, C-43
    let script = || {
        Script(vec![
            STARTED,
            r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","delta":"{}"}"#,
            FINISHED,
        ])
    };
    assert_eq!(types(&run(&script().with(each_event(Some))).await.0)[1], "TOOL_CALL_CHUNK");
    let (events, _) = run(&script().with(ExpandChunks)).await;
    let expected =
        ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"];
    assert_eq!(types(&events), expected);
}

#[tokio::test]
async fn a_malformed_chunk_is_a_broken_rule_wherever_it_is_found() {
    // C-35, C-44
    let script = || Script(vec![STARTED, r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}"#, FINISHED]);
    let (events, error) = run(&script().with(ExpandChunks)).await;
    assert_eq!(types(&events), ["RUN_STARTED"]);
    let error = error.unwrap();
    assert_eq!(error.class(), "chunk");
    assert!(matches!(&error, AgentError::Rule(fault) if fault.rule == "C-44"));
    // An application is told the same with and without middleware.
    async fn told(agent: impl Agent) -> DeliveryError {
        let delivery = deliver(&agent, input(), RunContext::new());
        let errors = delivery.filter_map(|item| std::future::ready(item.err()));
        errors.collect::<Vec<_>>().await.remove(0)
    }
    let (plain, expanded) = (told(script()).await, told(script().with(ExpandChunks)).await);
    assert_eq!(plain.to_string(), expanded.to_string());
    assert!(matches!(expanded, DeliveryError::Fault(_)));
}

#[tokio::test]
async fn capabilities_and_attaching_go_through() {
    let agent = greeter.with_capabilities(AgentCapabilities::new()).with(EventLog::new());
    assert!(agent.capabilities().await.is_some());
    assert!(agent.connect(input(), RunContext::new()).is_none());

    let script = Script(vec![STARTED, FINISHED]).with(EventLog::new()).with(each_event(|event| {
        let seen = Event::from(Custom::new("app.seen", serde_json::Value::Null));
        if event.is_terminal() { vec![seen, event] } else { vec![event] }
    }));
    let attached = script.connect(input(), RunContext::new()).unwrap();
    let events: Vec<Event> = attached.map(|event| event.unwrap().value).collect().await;
    assert_eq!(types(&events), ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
}
