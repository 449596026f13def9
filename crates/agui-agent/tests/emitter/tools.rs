//! The front end's tools.

use agui_agent::{Agent, AgentResult, EmitError, Run, RunContext};
use agui_types::message::{AssistantMessage, FunctionCall, ToolMessage};
use agui_types::{Event, Message, ToJson, Tool, ToolCall};

use super::{finished, input, whole};

#[tokio::test]
async fn a_front_end_tool_is_called_and_left_for_the_front_end() {
    // P-31, P-32, P-37
    async fn agent(run: Run) -> AgentResult {
        assert_eq!(run.frontend_tools().len(), 1);
        assert_eq!(run.frontend_tool("pick").unwrap().description, "Picks a colour.");
        run.call_frontend_tool("pick", &serde_json::json!({ "from": ["teal"] })).await?;
        let unknown = run.call_frontend_tool("paint", &()).await.unwrap_err();
        assert!(matches!(unknown, EmitError::NoSuchTool { .. }));
        assert_eq!(
            unknown.to_string(),
            "the front end offers no tool named \"paint\"; it offers pick"
        );
        Ok(())
    }
    let input = input().tools(vec![Tool::new("pick", "Picks a colour.")]);
    let events = whole(agent.run(input, RunContext::new())).await;
    let Event::ToolCallStart(start) = &events[1] else { panic!("{events:?}") };
    let Event::ToolCallArgs(args) = &events[2] else { panic!("{events:?}") };
    assert_eq!(args.delta, r#"{"from":["teal"]}"#);
    assert_eq!(
        finished(&events).outcome.as_ref().unwrap().to_json(),
        format!(r#"{{"type":"success","pendingToolCallIds":["{}"]}}"#, start.tool_call_id)
    );
}

#[tokio::test]
async fn the_next_run_finds_the_results() {
    // P-69, P-77
    async fn agent(run: Run) -> AgentResult {
        assert_eq!(run.tool_message("c1").unwrap().content.text(), "old");
        assert_eq!(run.tool_message("c2").unwrap().content.text(), "teal");
        assert!(run.tool_message("c9").is_none());
        let new: Vec<_> = run.new_tool_messages().map(|it| it.tool_call_id.as_str()).collect();
        assert_eq!(new, ["c2", "c3"]);
        run.tool_call("sum").await?.result_json(&[1, 2]).await?;
        Ok(())
    }
    let call = |id: &str| ToolCall::new(id, FunctionCall::new("pick", "{}"));
    let mut input = input();
    input.messages.extend([
        Message::from(AssistantMessage::new("a1").tool_calls(vec![call("c1")])),
        ToolMessage::new("t1", "old", "c1").into(),
        AssistantMessage::new("a2").tool_calls(vec![call("c2"), call("c3")]).into(),
        ToolMessage::new("t2", "teal", "c2").into(),
        ToolMessage::new("t3", "", "c3").error("no such colour").into(),
    ]);
    let events = whole(agent.run(input, RunContext::new())).await;
    assert_eq!(finished(&events).outcome, None);
    let result = events.iter().find_map(|event| match event {
        Event::ToolCallResult(result) => Some(result.content.text().into_owned()),
        _ => None,
    });
    assert_eq!(result.as_deref(), Some("[1,2]"));
}
