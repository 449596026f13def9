//! Hostile amounts cost by their number. Compared each with each, they would take minutes.

use agui_stream::fold::{Applied, Conversation};
use agui_types::event::{
    Event, RunFinished, RunStarted, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::json::Value;
use agui_types::{Interrupt, InterruptOutcome, Interrupts};

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
