//! Hostile amounts cost by their number. Compared each with each, they would take minutes.

use agui_stream::fold::{Applied, Conversation};
use agui_types::event::{
    ActivitySnapshot, Event, MessagesSnapshot, RunFinished, RunStarted, TextMessageStart,
    ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::json::Value;
use agui_types::message::{ToolMessage, UserMessage};
use agui_types::{Interrupt, InterruptOutcome, Interrupts, JsonObject, Message};

const MANY: usize = 200_000;

fn fold(events: impl IntoIterator<Item = Event>) -> Conversation {
    let mut conversation = Conversation::new(Vec::new(), Value::Null);
    let mut applied = Applied::default();
    conversation.apply(&RunStarted::new("t", "r").into(), &mut applied);
    for event in events {
        conversation.apply(&event, &mut applied);
    }
    conversation
}

#[test]
fn interrupts_are_held_by_their_ids() {
    let asked: Vec<_> = (0..MANY).map(|n| Interrupt::new(n.to_string(), "why")).collect();
    let outcome = InterruptOutcome::new(Interrupts::try_from(asked).unwrap());
    let finished = RunFinished::new("t", "r").outcome(outcome);
    let conversation = fold([finished.clone().into(), finished.into()]);
    assert_eq!(conversation.open_interrupts().len(), MANY);
}

#[test]
fn calls_are_made_and_answered_first_come_first_served() {
    // C-54
    let starts = (0..MANY).map(|n| ToolCallStart::new(n.to_string(), "tool").into());
    let ends = (0..MANY).map(|n| ToolCallEnd::new(n.to_string()).into());
    let conversation = fold(starts.chain(ends));
    assert_eq!(conversation.pending_tool_calls().len(), MANY);

    let calls = (0..MANY).flat_map(|n| {
        let id = n.to_string();
        let start = ToolCallStart::new(id.as_str(), "tool").into();
        let result = ToolCallResult::new(format!("answer {id}"), id.as_str(), "done").into();
        [start, ToolCallEnd::new(id.as_str()).into(), result]
    });
    let conversation = fold(calls);
    assert_eq!(conversation.pending_tool_calls().len(), 0);
    assert_eq!(conversation.messages().len(), 2 * MANY);
}

#[test]
fn results_find_their_place_wherever_it_is() {
    // Behind one message, behind the results that are there; and far from the end.
    let starts = (0..MANY).map(|n| ToolCallStart::new(n.to_string(), "tool"));
    let starts = starts.map(|start| start.parent_message_id("m").into());
    let others = (0..MANY).map(|n| TextMessageStart::new(format!("other {n}")).into());
    let results =
        (0..MANY).map(|n| ToolCallResult::new(format!("result {n}"), n.to_string(), "").into());
    let conversation = fold(starts.chain(others).chain(results));
    let messages = conversation.messages();
    assert_eq!(messages.len(), 1 + 2 * MANY);
    let id = |position: usize| messages[position].id().unwrap();
    assert_eq!(id(1), "result 0");
    assert_eq!(id(MANY), format!("result {}", MANY - 1).as_str());
    assert_eq!(id(MANY + 1), "other 0");
    assert_eq!(conversation.pending_tool_calls().len(), 0);
}

#[test]
fn activities_take_the_place_of_messages_one_at_a_time() {
    let starts = (0..MANY).map(|n| ToolCallStart::new(n.to_string(), "tool").into());
    let activity = |n: usize| ActivitySnapshot::new(n.to_string(), "plan", JsonObject::empty());
    let conversation = fold(starts.chain((0..MANY).map(|n| activity(n).into())));
    assert_eq!(conversation.messages().len(), MANY);
    assert_eq!(conversation.pending_tool_calls().len(), 0);
    assert!(conversation.messages().find_call("0").is_none());
}

#[test]
fn an_id_used_again_and_again_costs_no_more_than_others() {
    const FEWER: usize = MANY / 4;
    // P-28 is broken, which is no reason to stand still. Of those with one id, a snapshot restates
    // the first; the others go.
    let call = ToolCallStart::new("c", "tool").parent_message_id("m").into();
    let result = |_| ToolCallResult::new("same", "c", "x").into();
    let message = |content: &str| Message::from(ToolMessage::new("same", content, "c"));
    let snapshots = (0..FEWER).map(|n| {
        let user = UserMessage::new("u", n.to_string()).into();
        MessagesSnapshot::new([message("y"), user]).into()
    });
    let conversation = fold([call].into_iter().chain((0..FEWER).map(result)).chain(snapshots));
    let messages: Vec<_> = conversation.messages().iter().cloned().collect();
    assert_eq!(messages, [message("y"), UserMessage::new("u", (FEWER - 1).to_string()).into()]);
}
