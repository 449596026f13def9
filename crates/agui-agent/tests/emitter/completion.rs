//! Providers' pieces become events.

use std::sync::Arc;

use agui_agent::emitter::{CallChunk, CompletedAnswer, CompletionChunk};
use agui_agent::{Agent, Run, RunContext};
use agui_types::{Event, Message, TokenUsage};

use super::{finished, folded, input, whole};

fn chunk() -> CompletionChunk {
    CompletionChunk::new()
}

fn part() -> CallChunk {
    CallChunk::new()
}

/// Streams the pieces. Gives the events in short, ids by their first occurrence, and the answer.
async fn streamed(chunks: Vec<CompletionChunk>) -> (Vec<String>, CompletedAnswer) {
    let answer = Arc::new(std::sync::Mutex::new(None));
    let (given, chunks) = (Arc::clone(&answer), Arc::new(chunks));
    let agent = move |run: Run| {
        let (given, chunks) = (Arc::clone(&given), Arc::clone(&chunks));
        async move {
            let mut completion = run.completion();
            for chunk in &*chunks {
                completion.push(chunk.clone()).await?;
            }
            *given.lock().unwrap() = Some(completion.finish().await?);
            Ok(())
        }
    };
    let input = input();
    let events = whole(agent.run(input.clone(), RunContext::new())).await;
    let answer = answer.lock().unwrap().take().unwrap();
    // All of it is one assistant message, and holds what was answered.
    let conversation = folded(&input, &events);
    let held = conversation.messages().iter().find_map(|message| match message {
        Message::Assistant(message) => Some(message.clone()),
        _ => None,
    });
    if let Some(held) = held {
        assert_eq!(held.id, answer.message_id);
        assert_eq!(held.content.unwrap_or_default(), answer.text);
        let calls: Vec<_> = held.tool_calls.unwrap_or_default();
        let calls: Vec<_> = calls
            .iter()
            .map(|call| (call.id.as_str(), &*call.function.name, &*call.function.arguments))
            .collect();
        let answered: Vec<_> =
            answer.calls.iter().map(|it| (it.id.as_str(), &*it.name, &*it.arguments)).collect();
        assert_eq!(calls, answered);
    }
    let short = events.iter().filter_map(|event| {
        Some(match event {
            Event::RunStarted(_) | Event::RunFinished(_) => return None,
            Event::TextMessageStart(_) => "text(".into(),
            Event::TextMessageContent(event) => event.delta.clone(),
            Event::TextMessageEnd(_) => ")text".into(),
            Event::ToolCallStart(event) => format!("{}(", event.tool_call_name),
            Event::ToolCallArgs(event) => event.delta.clone(),
            Event::ToolCallEnd(_) => ")call".into(),
            Event::ReasoningStart(_) => "span(".into(),
            Event::ReasoningMessageStart(_) => "thought(".into(),
            Event::ReasoningMessageContent(event) => event.delta.clone(),
            Event::ReasoningEncryptedValue(event) => format!("#{}", event.encrypted_value),
            Event::ReasoningMessageEnd(_) => ")thought".into(),
            Event::ReasoningEnd(_) => ")span".into(),
            other => other.type_name().into(),
        })
    });
    (short.collect(), answer)
}

#[tokio::test]
async fn text_ends_and_a_call_begins_in_one_piece() {
    // C-42, P-20, P-21
    let (events, answer) = streamed(vec![
        chunk().text("Let me "),
        chunk().text("see.").call(part().index(0).id("c1").name("look").arguments("{\"a\"")),
        chunk().text("").call(part().index(0).id("").name("").arguments(":1}")),
    ])
    .await;
    let expected = ["text(", "Let me ", "see.", ")text", "look(", "{\"a\"", ":1}", ")call"];
    assert_eq!(events, expected);
    assert_eq!(answer.calls[0].id, "c1");
    assert_eq!(answer.calls[0].arguments::<serde_json::Value>().unwrap()["a"], 1);
}

#[tokio::test]
async fn parallel_calls_come_mixed() {
    let (events, answer) = streamed(vec![
        chunk().call(part().index(0).id("c1").name("one")),
        chunk().call(part().index(1).id("c2").name("two").arguments("[")),
        chunk().call(part().index(0).arguments("{}")).call(part().index(1).arguments("]")),
        chunk().call(part().id("c1").arguments(" ")),
    ])
    .await;
    let expected = ["one(", "two(", "[", "{}", "]", " ", ")call", ")call"];
    assert_eq!(events, expected);
    let calls: Vec<_> = answer.calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("one", "{} "), ("two", "[]")]);
}

#[tokio::test]
async fn a_call_waits_for_its_name_and_makes_do_without_an_id() {
    let (events, answer) = streamed(vec![
        chunk().call(part().index(0).arguments("{")),
        chunk().call(part().index(0).arguments("\"x\":")),
        chunk().call(part().index(0).name("late").arguments("1}")),
        // Named again with every part, as some do.
        chunk().call(part().index(1).name("again").arguments("[1,")),
        chunk().call(part().index(1).name("again").arguments("2]")),
        // The next call, although it is counted as the same one, as some do.
        chunk().call(part().index(1).name("again").arguments("[3]")),
        chunk().call(part().name("other").arguments("{}")),
    ])
    .await;
    let expected = [
        "late(",
        "{\"x\":1}",
        "again(",
        "[1,",
        "2]",
        "again(",
        "[3]",
        "other(",
        "{}",
        ")call",
        ")call",
        ")call",
        ")call",
    ];
    assert_eq!(events, expected);
    let arguments: Vec<_> = answer.calls.iter().map(|call| &*call.arguments).collect();
    assert_eq!(arguments, ["{\"x\":1}", "[1,2]", "[3]", "{}"]);
}

#[tokio::test]
async fn another_id_at_the_same_index_is_another_call() {
    let (events, answer) = streamed(vec![
        chunk().call(part().index(0).id("c1").name("same").arguments("{}")),
        chunk().call(part().index(0).id("c2").name("same").arguments("[]")),
    ])
    .await;
    assert_eq!(events, ["same(", "{}", "same(", "[]", ")call", ")call"]);
    assert_eq!(answer.calls.len(), 2);
}

#[tokio::test]
async fn reasoning_ends_where_text_begins_and_text_may_come_again() {
    // C-41, C-58
    let (events, answer) = streamed(vec![
        chunk().reasoning("hm"),
        chunk().encrypted_reasoning("sig"),
        chunk().text("So"),
        chunk().call(part().index(0).id("c1").name("look")),
        chunk().text(" be it."),
        chunk().reasoning("done"),
    ])
    .await;
    let expected = [
        "span(", "thought(", "hm", "#sig", ")thought", ")span", "text(", "So", ")text", "look(",
        "text(", " be it.", ")text", "span(", "thought(", "done", ")thought", ")span", ")call",
    ];
    assert_eq!(events, expected);
    assert_eq!((&*answer.text, &*answer.reasoning), ("So be it.", "hmdone"));
    assert_eq!(answer.calls[0].arguments::<serde_json::Value>().unwrap(), serde_json::json!({}));
}

#[tokio::test]
async fn a_call_that_names_no_tool_is_none() {
    let (events, answer) = streamed(vec![chunk().call(part().index(0).arguments("{}"))]).await;
    assert!(events.is_empty());
    assert!(answer.calls.is_empty());
}

#[tokio::test]
async fn usage_counts_on_within_an_answer_and_adds_up_over_answers() {
    // P-85, P-87
    async fn agent(run: Run) -> agui_agent::AgentResult {
        for _ in 0..2 {
            let mut completion = run.completion();
            let begun = TokenUsage::new().model("m").input_tokens(10u32).output_tokens(1u32);
            completion.push(chunk().usage(begun)).await?;
            completion.push(chunk().text("x").usage(TokenUsage::new().output_tokens(7u32))).await?;
        }
        Ok(())
    }
    let events = whole(agent.run(input(), RunContext::new())).await;
    let usage = finished(&events).usage.as_ref().unwrap();
    let expected = TokenUsage::new().model("m").input_tokens(20u32).output_tokens(14u32);
    assert_eq!(usage, &[expected]);
}
