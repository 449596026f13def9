//! What compaction makes of a stream.

use agui_stream::fold::Applied;
use agui_stream::{ChunkExpander, Compactor, Conversation, Fault, Verifier, compact};
use agui_types::json::Value as Tree;
use agui_types::message::AssistantMessage;
use agui_types::{Event, EventReader, ToJson};
use serde_json::{Value, json};

/// The public report: a run fails while a message and a call are open, then comes another run. What
/// was open comes before the event that ended its run (C-9), and nothing is lost.
#[test]
fn open_items_stay_inside_their_run() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"par"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"tial"}
        {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"a\""}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":":"}
        {"type":"RUN_ERROR","message":"aborted"}
        {"type":"RUN_STARTED","threadId":"t","runId":"r2"}
        {"type":"TEXT_MESSAGE_START","messageId":"m2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"ok"}
        {"type":"TEXT_MESSAGE_END","messageId":"m2"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r2"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"partial"}
        {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"a\":"}
        {"type":"RUN_ERROR","message":"aborted"}
        {"type":"RUN_STARTED","threadId":"t","runId":"r2"}
        {"type":"TEXT_MESSAGE_START","messageId":"m2","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"ok"}
        {"type":"TEXT_MESSAGE_END","messageId":"m2"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r2"}
        "#,
    );
    assert_eq!(compact(run), expected);
}

/// C-40, C-41, C-76: a delta of deltas, each time the message is open.
#[test]
fn deltas_become_one_with_their_metadata() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"a":0},"timestamp":1}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e\u0301","metadata":{"a":1,"b":{"x":1}}}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"","timestamp":2,"rawEvent":7}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"!","metadata":{"b":{"y":2},"c":null}}
        {"type":"TEXT_MESSAGE_END","messageId":"m","rawEvent":8}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"?"}
        {"type":"TEXT_MESSAGE_END","messageId":"m"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"a":0},"timestamp":1}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e\u0301!","metadata":{"a":1,"b":{"y":2},"c":null}}
        {"type":"TEXT_MESSAGE_END","messageId":"m","rawEvent":8}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"?"}
        {"type":"TEXT_MESSAGE_END","messageId":"m"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(compact(run), expected);
}

/// C-66, C-67: one snapshot a run where there is one, else the patches, which go on from the real
/// state. A patch that does not apply changes nothing.
#[test]
fn the_state_of_a_run_is_told_once_and_carries_over() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/lost","value":1}],"metadata":{"a":1}}
        {"type":"STATE_SNAPSHOT","snapshot":{"n":1.0},"timestamp":1}
        {"type":"CUSTOM","name":"c","value":1}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/m","value":2}],"metadata":{"a":2}}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/m","value":3},{"op":"remove","path":"/x"}]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r1"}
        {"type":"RUN_STARTED","threadId":"t","runId":"r2"}
        {"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":4}],"timestamp":2}
        {"type":"CUSTOM","name":"c","value":2}
        {"type":"STATE_DELTA","delta":[]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r2"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"CUSTOM","name":"c","value":1}
        {"type":"STATE_SNAPSHOT","snapshot":{"n":1.0,"m":2},"metadata":{"a":2}}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r1"}
        {"type":"RUN_STARTED","threadId":"t","runId":"r2"}
        {"type":"CUSTOM","name":"c","value":2}
        {"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":4}],"timestamp":2}
        {"type":"STATE_DELTA","delta":[]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r2"}
        "#,
    );
    assert_eq!(fold(&expected).unwrap()["state"], json!({"n": 4, "m": 2}));
    assert_eq!(compact(run), expected);
}

/// C-42: what interrupts an item goes behind it, where nothing can tell.
#[test]
fn an_item_is_drawn_together() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"CUSTOM","name":"c","value":1}
        {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}
        {"type":"TEXT_MESSAGE_END","messageId":"m"}
        {"type":"TOOL_CALL_END","toolCallId":"c"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"ab"}
        {"type":"TEXT_MESSAGE_END","messageId":"m"}
        {"type":"CUSTOM","name":"c","value":1}
        {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
        {"type":"TOOL_CALL_END","toolCallId":"c"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(compact(run), expected);
}

/// C-42, C-71: where something could tell, everything stays in its place, in as few events.
#[test]
fn an_item_stays_apart_where_the_order_of_messages_shows_it() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m1"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"a"}
        {"type":"TEXT_MESSAGE_START","messageId":"m2"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"b"}
        {"type":"TEXT_MESSAGE_END","messageId":"m2"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"c"}
        {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"assistant","content":"all: "},{"id":"m2","role":"assistant"}]}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"d"}
        {"type":"TEXT_MESSAGE_END","messageId":"m1"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m1"}
        {"type":"TEXT_MESSAGE_START","messageId":"m2"}
        {"type":"TEXT_MESSAGE_END","messageId":"m2"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"abc"}
        {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"assistant","content":"all: "},{"id":"m2","role":"assistant"}]}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"d"}
        {"type":"TEXT_MESSAGE_END","messageId":"m1"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(compact(run), expected);
}

/// C-42: what is there already decides what may move.
#[test]
fn what_may_move_depends_on_what_is_continued() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m1"}
        {"type":"TEXT_MESSAGE_START","messageId":"m2"}
        {"type":"TEXT_MESSAGE_END","messageId":"m2"}
        {"type":"TEXT_MESSAGE_END","messageId":"m1"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(compact(run.clone()), run, "both are new, so their order shows");
    let history = vec![AssistantMessage::new("m1").content("so far: ").into()];
    let before = Conversation::new(history, Tree::parse("{}").unwrap());
    let mut compactor = Compactor::after(before);
    run.into_iter().for_each(|event| compactor.push(event));
    let types: Vec<_> = compactor.finish().into_iter().map(|event| written_id(&event)).collect();
    assert_eq!(types[1..5], ["START m2", "END m2", "START m1", "END m1"]);
}

/// C-77: whose an item is stays with its start, through all that is merged and moved.
#[test]
fn ownership_stays() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}
        {"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"s"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","subagentRunId":"s"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b"}
        {"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"s"}
        {"type":"SUBAGENT_FINISHED","subagentRunId":"s"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let compacted = compact(run.clone());
    assert_eq!(compacted.len(), run.len() - 1);
    assert_eq!(
        fold(&compacted).unwrap()["messages"],
        json!([{"id": "m", "role": "assistant", "content": "ab", "subagentRunId": "s"}])
    );
}

/// C-47: with chunks about, what comes between says where one ends. Two that would be told apart no
/// longer stay as they are.
#[test]
fn chunks_keep_what_ends_them() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"STATE_SNAPSHOT","snapshot":1}
        {"type":"STATE_SNAPSHOT","snapshot":2}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}
        {"type":"STATE_SNAPSHOT","snapshot":3}
        {"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"b","name":"again"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let mut expected = run.clone();
    expected.remove(1);
    assert_eq!(compact(run), expected);
}

/// Reasoning stays as it came, unless it is asked for.
#[test]
fn reasoning_is_merged_where_it_is_asked_for() {
    let run = stream(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"a"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"b"}
        {"type":"REASONING_MESSAGE_END","messageId":"m"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(compact(run.clone()), run);
    let mut compactor = Compactor::new().merge_reasoning();
    run.iter().cloned().for_each(|event| compactor.push(event));
    let compacted = compactor.finish();
    assert_eq!(compacted.len(), run.len() - 1);
    assert_eq!(fold(&compacted), fold(&run));
}

/// A stream that breaks the rules comes out whole.
#[test]
fn a_broken_stream_loses_nothing() {
    let run = stream(
        r#"
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"never opened"}
        {"type":"TOOL_CALL_END","toolCallId":"c"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        "#,
    );
    let expected = stream(
        r#"
        {"type":"TOOL_CALL_END","toolCallId":"c"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_START","messageId":"m"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"never opened"}
        "#,
    );
    assert_eq!(compact(run), expected);
    assert_eq!(compact([]), []);
}

/// The events of a text that holds one a line.
fn stream(lines: &str) -> Vec<Event> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            EventReader::new().exact(line).unwrap_or_else(|error| panic!("{line}: {error}"))
        })
        .collect()
}

fn written_id(event: &Event) -> String {
    match event {
        Event::TextMessageStart(event) => format!("START {}", event.message_id),
        Event::TextMessageEnd(event) => format!("END {}", event.message_id),
        other => other.type_name().to_owned(),
    }
}

/// Expands, verifies and folds into an empty conversation.
fn fold(events: &[Event]) -> Result<Value, Fault> {
    let mut expander = ChunkExpander::new();
    let mut verifier = Verifier::new();
    let state = Tree::parse("{}").unwrap();
    let mut conversation = Conversation::new(Vec::new(), state);
    let mut applied = Applied::default();
    let mut expanded = Vec::new();
    for event in events {
        expander.push(event.clone(), &mut expanded)?;
        for event in expanded.drain(..) {
            verifier.push(&event)?;
            conversation.apply(&event, &mut applied);
        }
    }
    let messages = conversation.messages().iter().map(ToJson::to_json);
    let messages = messages.map(|message| serde_json::from_str(&message).unwrap());
    let state: Value = serde_json::from_str(&conversation.state().to_string()).unwrap();
    Ok(json!({"messages": messages.collect::<Vec<Value>>(), "state": state}))
}
