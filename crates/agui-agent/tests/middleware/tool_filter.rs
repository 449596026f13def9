//! Calls that are kept away.

use agui_agent::middleware::ToolFilter;
use agui_agent::{AgentExt, AgentResult, Run};
use agui_stream::fold::{Applied, Conversation};
use agui_types::event::{
    EncryptedValueSubtype, ReasoningEncryptedValue, SubagentStarted, ToolCallStart,
};
use agui_types::message::{AssistantMessage, FunctionCall, ToolMessage};
use agui_types::{Event, Interrupt, Message, RunFinishedOutcome, ToJson, ToolCall};

use super::{FINISHED, STARTED, Script, input, run, types};

async fn both(run: Run) -> AgentResult {
    for (id, name) in [("c1", "look"), ("c2", "leap")] {
        let mut call = run.open_tool_call(ToolCallStart::new(id, name)).await?;
        call.args("{}").await?;
        call.end().await?;
        let call = EncryptedValueSubtype::ToolCall;
        run.encrypted_value(ReasoningEncryptedValue::new(call, id, "x")).await?;
        let start = SubagentStarted::new(format!("s-{id}"), "helper").parent_tool_call_id(id);
        run.open_subagent(start).await?.finish().await?;
    }
    run.tool_result("c2", "done").await?;
    Ok(())
}

#[tokio::test]
async fn all_of_a_call_goes() {
    // P-21, P-32
    for filter in [ToolFilter::deny(["leap"]), ToolFilter::allow(["look", "other"])] {
        let (events, _) = run(&both.with(filter)).await;
        let text: String = events.iter().map(|event| event.to_json() + "\n").collect();
        assert!(!text.contains("\"c2\"") && !text.contains("leap"), "{text}");
        assert_eq!(text.matches("SUBAGENT_STARTED").count(), 2);
        assert!(text.contains(r#""pendingToolCallIds":["c1"]"#));
        // What is left is a conversation without a seam.
        let mut conversation = Conversation::from_input(&input()).unwrap();
        let mut applied = Applied::default();
        for event in &events {
            conversation.apply(event, &mut applied);
            assert_eq!(applied.warnings, []);
        }
        assert_eq!(conversation.messages().len(), 2);
    }
}

#[tokio::test]
async fn snapshots_and_outcomes_say_nothing_of_it() {
    async fn agent(run: Run) -> AgentResult {
        let call = |id: &str, name: &str| ToolCall::new(id, FunctionCall::new(name, "{}"));
        run.messages_snapshot(vec![
            AssistantMessage::new("a1")
                .tool_calls(vec![call("c1", "look"), call("c2", "leap")])
                .into(),
            ToolMessage::new("t1", "seen", "c1").into(),
            ToolMessage::new("t2", "leapt", "c2").into(),
            AssistantMessage::new("a2").tool_calls(vec![call("c3", "leap")]).into(),
            AssistantMessage::new("a3")
                .content("Well.")
                .tool_calls(vec![call("c4", "leap")])
                .into(),
            AssistantMessage::new("a4").into(),
        ])
        .await?;
        run.interrupt(Interrupt::new("i1", "approval").tool_call_id("c4"))?;
        run.interrupt(Interrupt::new("i2", "approval").tool_call_id("c1"))?;
        Ok(())
    }
    let (events, _) = run(&agent.with(ToolFilter::deny(["leap"]))).await;
    let Event::MessagesSnapshot(snapshot) = &events[1] else { panic!("{events:?}") };
    let ids: Vec<_> = snapshot.messages.iter().filter_map(Message::id).collect();
    assert_eq!(ids, ["a1", "t1", "a3", "a4"]);
    let Some(Event::RunFinished(finished)) = events.last() else { panic!("{events:?}") };
    let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished.outcome else { panic!() };
    let about: Vec<_> = outcome.interrupts.iter().map(|it| it.tool_call_id.is_some()).collect();
    assert_eq!(about, [false, true]);
    assert!(!events.iter().any(|event| event.to_json().contains("leap")));
}

#[tokio::test]
async fn the_history_of_the_input_counts() {
    // A call of an earlier run is answered late.
    let call = ToolCall::new("c9", FunctionCall::new("leap", "{}"));
    let mut input = input();
    input.messages.push(AssistantMessage::new("a1").tool_calls(vec![call]).into());
    async fn agent(run: Run) -> AgentResult {
        run.tool_result("c9", "leapt at last").await?;
        Ok(())
    }
    let (events, _) = super::run_on(&agent.with(ToolFilter::deny(["leap"])), input).await;
    assert_eq!(types(&events), ["RUN_STARTED", "RUN_FINISHED"]);
}

#[tokio::test]
async fn calls_in_chunks_go_too() {
    // C-34, C-47
    let script = Script(vec![
        STARTED,
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"So"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c1","toolCallName":"leap","delta":"{"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","delta":"}"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c2","toolCallName":"look","delta":"{}"}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"t1","toolCallId":"c1","content":"x"}"#,
        FINISHED,
    ]);
    let (events, _) = run(&script.with(ToolFilter::deny(["leap"]))).await;
    let expected = [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&events), expected);
}
