//! What would break the stream, or have a consumer warn, is refused, and the run goes on.

use agui_agent::{Agent, AgentResult, EmitError, Run, RunContext};
use agui_stream::patch::PatchErrorKind;
use agui_types::event::{
    ActivityDelta, ActivitySnapshot, EncryptedValueSubtype, Raw, ReasoningEncryptedValue,
    ReasoningMessageStart, TextMessageStart, TextRole, ToolCallResult, ToolCallStart,
};
use agui_types::message::{AssistantMessage, TextPart, UserMessage};
use agui_types::{
    ContentPart, Event, FromJson, Json, JsonObject, JsonPatch, Message, MessageContent,
    RunAgentInput, ToJson, Tool,
};

use super::{finished, folded, input, start, whole};

/// Runs an agent that has to end well, on an input, and holds its stream to a consumer.
async fn run_on(agent: impl Agent, input: RunAgentInput) -> Vec<Event> {
    let events = whole(agent.run(input.clone(), RunContext::new())).await;
    finished(&events);
    folded(&input, &events);
    events
}

#[track_caller]
fn rule<T: std::fmt::Debug>(result: Result<T, EmitError>) -> (&'static str, String) {
    match result {
        Err(EmitError::Rule(fault)) => (fault.rule, fault.path.into()),
        other => panic!("expected a broken rule, found {other:?}"),
    }
}

#[track_caller]
fn undescribed<T: std::fmt::Debug>(result: Result<T, EmitError>) -> String {
    match result {
        Err(EmitError::Undescribed(warning)) => warning.path,
        other => panic!("expected something undescribed, found {other:?}"),
    }
}

#[tokio::test]
async fn what_the_protocol_does_not_describe() {
    // P-16
    async fn agent(run: Run) -> AgentResult {
        let narrator = TextRole::from("narrator");
        let text = run.open_text(TextMessageStart::new("m1").role(narrator)).await;
        assert_eq!(undescribed(text), "/role");

        let patch = JsonPatch::from_json_tolerant(r#"[{"op":"merge","path":"/a"}]"#)?.value;
        assert_eq!(undescribed(run.state_delta(patch.clone()).await), "/delta/0");
        let mut activity = run.activity("plan", &serde_json::json!({})).await?;
        assert_eq!(undescribed(activity.patch(patch).await), "/patch/0");

        let call = run.tool_call("work").await?.end().await?;
        let parts = r#"[{"type":"text","text":"x"},{"type":"hologram"}]"#;
        let parts = serde_json::from_str::<Vec<ContentPart>>(parts)?;
        let result = run.tool_result(&call, MessageContent::from(parts)).await;
        assert_eq!(undescribed(result), "/content/1");

        let robot = Message::from_json_tolerant(r#"{"role":"robot","id":"x"}"#)?.value;
        assert_eq!(undescribed(run.messages_snapshot(vec![robot]).await), "/messages/0");

        let subtype = EncryptedValueSubtype::from("dream");
        let value = ReasoningEncryptedValue::new(subtype, "m1", "x");
        assert_eq!(undescribed(run.encrypted_value(value).await), "");

        let unknown = Event::from_json_tolerant(r#"{"type":"NEWS"}"#)?.value;
        assert!(matches!(run.emit(unknown).await, Err(EmitError::Reserved(_))));
        run.tool_result(call, "").await?;
        Ok(())
    }
    run_on(agent, input()).await;
}

#[tokio::test]
async fn a_patch_that_does_not_apply() {
    // C-67, C-73, P-47, P-49, P-50
    async fn agent(run: Run) -> AgentResult {
        let patch = |text| JsonPatch::from_json_exact(text);
        let lost = run.state_delta(patch(r#"[{"op":"replace","path":"/n","value":1}]"#)?).await;
        assert!(
            matches!(&lost, Err(EmitError::Patch(e)) if e.kind == PatchErrorKind::NoMember),
            "{lost:?}"
        );
        run.state_delta(patch(r#"[{"op":"add","path":"/n","value":1}]"#)?).await?;
        run.state_delta(patch(r#"[{"op":"replace","path":"/n","value":2}]"#)?).await?;
        run.state_snapshot(&[1]).await?;
        run.state_delta(patch(r#"[{"op":"add","path":"/-","value":2}]"#)?).await?;

        let mut activity = run.activity("plan", &serde_json::json!({"a": 1})).await?;
        for not_an_object in [
            r#"[{"op":"replace","path":"","value":[]}]"#,
            r#"[{"op":"move","from":"/a","path":""}]"#,
        ] {
            let refused = activity.patch(patch(not_an_object)?).await;
            let Err(EmitError::Patch(error)) = refused else { panic!("{refused:?}") };
            assert_eq!(error.kind, PatchErrorKind::NotAnObject);
        }
        activity.patch(patch(r#"[{"op":"test","path":"/a","value":1}]"#)?).await?;

        let ghost = ActivityDelta::new("ghost", "plan", JsonPatch::default());
        assert_eq!(rule(run.emit(ghost).await), ("P-47", "/messageId".into()));
        Ok(())
    }
    run_on(agent, input()).await;
}

#[tokio::test]
async fn an_activity_stays_whose_it_is() {
    // P-52, C-77
    async fn agent(run: Run) -> AgentResult {
        let activity = run.activity("plan", &serde_json::json!({"n": 0})).await?;
        let subagent = run.subagent("helper").await?;
        let change = r#"[{"op":"replace","path":"/n","value":1}]"#;
        let delta = ActivityDelta::new(activity.id(), "plan", JsonPatch::from_json_exact(change)?);
        assert_eq!(rule(subagent.emit(delta).await).0, "C-77");
        let again =
            ActivitySnapshot::new(activity.id(), "plan", JsonObject::empty()).replace(false);
        assert_eq!(rule(subagent.emit(again).await).0, "P-52");
        // What was refused has changed nothing.
        let mut activity = activity;
        let test = r#"[{"op":"test","path":"/n","value":0}]"#;
        activity.patch(JsonPatch::from_json_exact(test)?).await?;
        subagent.finish().await?;
        Ok(())
    }
    run_on(agent, input()).await;
}

#[tokio::test]
async fn an_id_that_is_taken() {
    // P-28
    async fn agent(run: Run) -> AgentResult {
        let activity = run.activity("plan", &serde_json::json!({})).await?;
        let id = activity.id();
        assert_eq!(rule(run.open_text(TextMessageStart::new(id)).await).0, "P-28");
        assert_eq!(rule(run.emit(ReasoningMessageStart::new(id)).await).0, "P-28");
        let held = ToolCallStart::new("c1", "work").parent_message_id(id);
        let parent = ("P-28", "/parentMessageId".to_owned());
        assert_eq!(rule(run.open_tool_call(held).await), parent);
        let held = ToolCallStart::new("u1", "work");
        assert_eq!(rule(run.open_tool_call(held).await), ("P-28", "/toolCallId".into()));

        let said = run.say("hello").await?;
        let call = run.tool_call("work").await?.end().await?;
        let result = ToolCallResult::new(&said, &call, "");
        assert_eq!(rule(run.emit(result).await).0, "P-28");
        let taken = ActivitySnapshot::new(&said, "plan", JsonObject::empty());
        assert_eq!(rule(run.emit(taken).await).0, "P-28");

        let twice = || Message::from(UserMessage::new("u1", "hello"));
        let snapshot = run.messages_snapshot(vec![twice(), twice()]).await;
        assert_eq!(rule(snapshot), ("P-28", "/messages/1/id".into()));
        Ok(())
    }
    run_on(agent, input()).await;
}

#[tokio::test]
async fn an_item_is_reopened_as_it_was_opened() {
    // P-27, C-41, C-49
    async fn agent(run: Run) -> AgentResult {
        let system = || TextMessageStart::new("m1").role(TextRole::System).name("clock");
        run.open_text(system()).await?.end().await?;
        let plain = run.open_text(TextMessageStart::new("m1")).await;
        assert_eq!(rule(plain), ("P-27", "/role".into()));
        let renamed = run.open_text(system().name("watch")).await;
        assert_eq!(rule(renamed), ("P-27", "/name".into()));
        run.open_text(system()).await?.end().await?;
        // The user's own message is not the agent's to go on with.
        assert_eq!(rule(run.open_text(TextMessageStart::new("u1")).await).0, "P-27");

        let said = run.say("so").await?;
        let call = || ToolCallStart::new("c1", "work").parent_message_id(&said);
        run.open_tool_call(call()).await?.end().await?;
        let other = ToolCallStart::new("c1", "play");
        assert_eq!(rule(run.open_tool_call(other).await), ("P-27", "/toolCallName".into()));
        let moved = call().parent_message_id("m9");
        assert_eq!(rule(run.open_tool_call(moved).await), ("P-27", "/parentMessageId".into()));
        let mut again = run.open_tool_call(ToolCallStart::new("c1", "work")).await?;
        again.args("{}").await?;
        again.result("done").await?;
        // Reopened after its answer, a call is still answered.
        run.open_tool_call(call()).await?.end().await?;
        Ok(())
    }
    let events = run_on(agent, input()).await;
    assert_eq!(finished(&events).outcome, None);
}

#[tokio::test]
async fn a_result_that_is_the_front_ends_to_give() {
    // P-30
    async fn agent(run: Run) -> AgentResult {
        let call = run.call_frontend_tool("pick", &serde_json::json!({})).await?;
        assert_eq!(rule(run.tool_result(call, "made up").await).0, "P-30");
        Ok(())
    }
    let events = run_on(agent, input().tools(vec![Tool::new("pick", "Picks.")])).await;
    assert!(finished(&events).outcome.is_some());
}

#[tokio::test]
async fn an_encrypted_value_that_nothing_could_keep() {
    // C-60
    async fn agent(run: Run) -> AgentResult {
        let value = |subtype, id: &str| ReasoningEncryptedValue::new(subtype, id, "x");
        let (message, call) = (EncryptedValueSubtype::Message, EncryptedValueSubtype::ToolCall);
        assert_eq!(rule(run.encrypted_value(value(message.clone(), "m9")).await).0, "C-60");
        assert_eq!(rule(run.encrypted_value(value(call.clone(), "u1")).await).0, "C-60");
        run.encrypted_value(value(message, "u1")).await?;
        run.open_tool_call(ToolCallStart::new("c1", "work")).await?.end().await?;
        run.encrypted_value(value(call, "c1")).await?;
        Ok(())
    }
    run_on(agent, input()).await;
}

#[tokio::test]
async fn a_snapshot_that_leaves_out_what_is_open() {
    // P-53, C-71
    async fn agent(run: Run) -> AgentResult {
        let mut text = run.text().await?;
        let refused = run.messages_snapshot(vec![]).await;
        assert_eq!(rule(refused), ("P-53", "/messages".into()));
        let restated = AssistantMessage::new(text.id()).content("restated");
        run.messages_snapshot(vec![restated.into()]).await?;
        text.push(" and gone on with").await?;
        text.end().await?;
        let call = run.tool_call("work").await?;
        assert_eq!(rule(run.messages_snapshot(vec![]).await).0, "P-53");
        call.end().await?;
        // The call is gone with its message: nothing waits for its result.
        run.messages_snapshot(vec![]).await?;
        Ok(())
    }
    let events = run_on(agent, input()).await;
    assert_eq!(finished(&events).outcome, None);
}

#[tokio::test]
async fn a_null_in_an_optional_place_is_left_out() {
    // P-17
    async fn agent(run: Run) -> AgentResult {
        let null = || Json::parse("null").unwrap();
        run.emit(Raw::new(null()).raw_event(null())).await?;
        run.subagent("helper").await?.finish_with(&()).await?;
        let call = run.tool_call("work").await?.end().await?;
        let part = ContentPart::from(TextPart::new("x").metadata(null()));
        run.tool_result(call, vec![part]).await?;
        Ok(())
    }
    // `whole` reads each event back by the schema.
    let events = whole(start(&agent)).await;
    assert_eq!(events[1].to_json(), r#"{"type":"RAW","event":null}"#);
    assert!(!events.iter().skip(2).any(|event| event.to_json().contains("null")));
}
