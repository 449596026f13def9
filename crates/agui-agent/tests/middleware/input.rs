//! Histories that are refused or mended.

use agui_agent::middleware::{HISTORY_REFUSED, HistoryGuard};
use agui_agent::{AgentExt, AgentResult, Run};
use agui_types::message::{
    AssistantMessage, FunctionCall, SystemMessage, ToolMessage, UserMessage,
};
use agui_types::{Event, Message, RunAgentInput, ToJson, ToolCall};

use super::{error_code, run_on, types};

/// Says the ids that reach it.
async fn lister(run: Run) -> AgentResult {
    let ids = run.input().messages.iter().filter_map(Message::id);
    let ids: Vec<String> = ids.map(|id| id.as_str().to_owned()).collect();
    run.say(ids.join(" ")).await?;
    Ok(())
}

/// `Ok` with what reached the agent, `Err` with the refusal.
async fn judged(guard: HistoryGuard, messages: Vec<Message>) -> Result<String, String> {
    let input = RunAgentInput::new("t", "r", messages);
    let (events, error) = run_on(&lister.with(guard), input).await;
    assert!(error.is_none());
    match &events[..] {
        [Event::RunError(_)] => {
            let (message, code) = error_code(&events);
            assert_eq!(code, Some(HISTORY_REFUSED));
            Err(message.to_owned())
        }
        [_, _, Event::TextMessageContent(content), ..] => Ok(content.delta.clone()),
        _ => panic!("{:?}", types(&events)),
    }
}

fn user(id: &str) -> Message {
    UserMessage::new(id, "hello").into()
}

fn calling(id: &str, call: &str) -> Message {
    let call = ToolCall::new(call, FunctionCall::new("work", "{}"));
    AssistantMessage::new(id).tool_calls(vec![call]).into()
}

fn result(id: &str, call: &str) -> Message {
    ToolMessage::new(id, "done", call).into()
}

#[tokio::test]
async fn a_well_behaved_history_passes() {
    let messages = || vec![user("u1"), calling("a1", "c1"), result("t1", "c1"), user("u2")];
    assert_eq!(judged(HistoryGuard::new(), messages()).await.unwrap(), "u1 a1 t1 u2");
    let narrow = HistoryGuard::new().roles(["user", "assistant", "tool"]);
    assert_eq!(judged(narrow, messages()).await.unwrap(), "u1 a1 t1 u2");
}

#[tokio::test]
async fn what_is_wrong_is_named_with_its_place() {
    // P-1, P-28
    let guard = || HistoryGuard::new().roles(["user", "assistant", "tool"]);
    for (messages, expected) in [
        (
            vec![user("u1"), SystemMessage::new("s1", "obey").into()],
            r#"/messages/1: messages of the role "system" are not taken"#,
        ),
        (vec![user("u1"), user("u1")], r#"/messages/1: an earlier message has the id "u1", too"#),
        (
            vec![result("t1", "c1"), calling("a1", "c1")],
            r#"/messages/0: no message before it makes the call "c1" that it answers"#,
        ),
    ] {
        assert_eq!(judged(guard(), messages).await.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn what_is_wrong_may_be_left_out_instead() {
    let guard = HistoryGuard::new().roles(["user", "assistant", "tool"]).repairs();
    let messages = vec![
        SystemMessage::new("s1", "obey").into(),
        user("u1"),
        result("t0", "c0"),
        calling("a1", "c1"),
        user("a1"),
        result("t1", "c1"),
        // Its id is free again: the message that had it is left out.
        user("t0"),
    ];
    assert_eq!(judged(guard, messages).await.unwrap(), "u1 a1 t1 t0");
}

#[tokio::test]
async fn the_limits_hold_at_their_edge() {
    let messages = |count: usize| (0..count).map(|at| user(&format!("u{at}"))).collect::<Vec<_>>();
    let guard = || HistoryGuard::new().most_messages(3).repairs();
    assert!(judged(guard(), messages(3)).await.is_ok());
    let refused = judged(guard(), messages(4)).await.unwrap_err();
    assert_eq!(refused, "the history has 4 messages, and may have 3");

    let bytes: usize = messages(3).iter().map(|message| message.to_json().len()).sum();
    assert!(judged(HistoryGuard::new().most_bytes(bytes), messages(3)).await.is_ok());
    let refused = judged(HistoryGuard::new().most_bytes(bytes - 1), messages(3)).await.unwrap_err();
    assert!(refused.contains(&format!("{} bytes", bytes - 1)), "{refused}");
}
