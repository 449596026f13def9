//! What folding allocates, counted for the thread that runs the test: what an event brings, and
//! nothing for what is there already.

mod counting;

use std::fmt::Write;

use agui_stream::fold::{Applied, Conversation};
use agui_types::event::{
    ActivityDelta, ActivitySnapshot, Event, MessagesSnapshot, ReasoningMessageStart, RunFinished,
    RunStarted, StateDelta, TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallResult,
    ToolCallStart,
};
use agui_types::json::Value;
use agui_types::message::UserMessage;
use agui_types::{
    Interrupt, InterruptOutcome, Interrupts, JsonObject, JsonPatch, Message, ToJson, TokenUsage,
};
use counting::{Count, counted};

/// A conversation with so many messages.
fn conversation(messages: usize) -> Conversation {
    let message =
        |at: usize| Message::from(UserMessage::new(format!("h{at}"), "a line of history"));
    Conversation::new((0..messages).map(message).collect(), Value::parse("{}").unwrap())
}

/// What it takes to fold an event so many times, after a few to warm up.
fn cost(conversation: &mut Conversation, event: &Event, times: usize) -> Count {
    let mut applied = Applied::default();
    for _ in 0..4 {
        conversation.apply(event, &mut applied);
        assert_eq!(applied.warnings, []);
    }
    let run = || (0..times).for_each(|_| conversation.apply(event, &mut applied));
    counted(run).1
}

fn apply(conversation: &mut Conversation, event: impl Into<Event>) {
    conversation.apply(&event.into(), &mut Applied::default());
}

#[test]
fn a_token_allocates_the_growth_of_its_text_and_nothing_else() {
    for history in [10, 10_000] {
        let mut conversation = conversation(history);
        apply(&mut conversation, TextMessageStart::new("m"));
        let token = TextMessageContent::new("m", "word ").into();
        let count = cost(&mut conversation, &token, 20_000);
        // The text comes to 100 kB; it doubles its room from tens of bytes on.
        assert!(count.calls <= 13, "{history}: {count:?}");
        assert!(count.bytes <= 400_000, "{history}: {count:?}");

        apply(&mut conversation, ToolCallStart::new("c", "tool"));
        let fragment = ToolCallArgs::new("c", "[1,2]").into();
        let count = cost(&mut conversation, &fragment, 20_000);
        assert!(count.calls <= 13, "{history}: {count:?}");
        assert!(count.bytes <= 400_000, "{history}: {count:?}");
    }
}

#[test]
fn a_result_copies_no_history() {
    let cost_at = |history| {
        let mut conversation = conversation(history);
        apply(&mut conversation, ToolCallStart::new("c", "tool"));
        apply(&mut conversation, TextMessageStart::new("m"));
        let mut most = 0;
        for at in 0..50 {
            let event = ToolCallResult::new(format!("r{at}"), "done", "c").into();
            let mut applied = Applied::default();
            let ((), count) = counted(|| conversation.apply(&event, &mut applied));
            most = most.max(count.calls);
        }
        most
    };
    // A few for the message itself, a few for the tables that it is entered into.
    let (few, many) = (cost_at(10), cost_at(10_000));
    assert!(few <= 10 && many <= 10, "{few} {many}");
}

/// An object of so many members, about 20 bytes each.
fn object(members: usize) -> String {
    let mut text = String::from("{\"n\":0");
    for at in 0..members {
        write!(text, ",\"member {at:06}\":{at:03}").unwrap();
    }
    text.replace(":0", ":10") + "}"
}

fn patch() -> JsonPatch {
    serde_json::from_str(r#"[{"op":"replace","path":"/n","value":7}]"#).unwrap()
}

#[test]
fn a_small_patch_costs_the_same_on_a_large_state() {
    let cost_at = |members| {
        let state = Value::parse(&object(members)).unwrap();
        let mut conversation = Conversation::new(Vec::new(), state);
        cost(&mut conversation, &StateDelta::new(patch()).into(), 100)
    };
    let (small, large) = (cost_at(10), cost_at(500_000));
    assert_eq!(small, large);
    assert!(large.bytes < 100 * 1000, "{large:?}");
}

#[test]
fn a_small_patch_costs_the_same_on_a_large_activity() {
    let cost_at = |members| {
        let mut conversation = conversation(0);
        let content = JsonObject::parse(&object(members)).unwrap();
        apply(&mut conversation, ActivitySnapshot::new("a", "plan", content));
        let delta = ActivityDelta::new("a", "plan", patch()).into();
        let count = cost(&mut conversation, &delta, 100);
        // Read once, the text is there.
        let text = serde_json::to_string(&conversation.messages()[0]).unwrap();
        assert!(text.contains("\"n\":7,"), "{}", &text[..100]);
        count
    };
    let (small, large) = (cost_at(10), cost_at(100_000));
    assert_eq!(small, large);
    assert!(large.bytes < 100 * 1000, "{large:?}");
}

#[test]
fn metadata_costs_what_comes() {
    // C-76
    let cost_at = |held| {
        let mut conversation = conversation(0);
        let all = JsonObject::parse(&object(held)).unwrap();
        apply(&mut conversation, TextMessageStart::new("m").metadata(all.clone()));
        apply(&mut conversation, ToolCallStart::new("c", "tool").metadata(all));
        let newer = JsonObject::parse(r#"{"n":11,"text":"new"}"#).unwrap();
        let event = TextMessageContent::new("m", "").metadata(newer.clone());
        let text = cost(&mut conversation, &event.into(), 1000);
        let event = ToolCallArgs::new("c", "").metadata(newer);
        let call = cost(&mut conversation, &event.into(), 1000);
        // Read once, the text is there.
        let text_of = serde_json::to_string(&conversation.messages()[0]).unwrap();
        assert!(text_of.contains("{\"n\":11,") && text_of.contains("\"text\":\"new\"}"));
        (text, call)
    };
    let (small, large) = (cost_at(10), cost_at(100_000));
    assert_eq!(small, large);
    assert!(large.0.bytes < 1000 * 200, "{large:?}");
}

#[test]
fn a_snapshot_costs_what_it_says_and_not_what_stays() {
    // C-71: reasoning stays where the snapshot has none.
    let cost_at = |held| {
        let mut conversation = conversation(0);
        for at in 0..held {
            apply(&mut conversation, ReasoningMessageStart::new(format!("r{at}")));
        }
        let snapshot = MessagesSnapshot::new([UserMessage::new("u", "hello").into()]).into();
        let count = cost(&mut conversation, &snapshot, 100);
        assert_eq!(conversation.messages().len(), held + 1);
        count
    };
    assert_eq!(cost_at(10), cost_at(50_000));
}

#[test]
fn a_run_costs_what_it_reports() {
    let cost_at = |models: u32| {
        let mut conversation = conversation(0);
        let usage = |model: u32| TokenUsage::new().model(model.to_string()).input_tokens(1u32);
        let interrupt = |at: u32| Interrupt::new(at.to_string(), "why");
        let open: Vec<_> = (0..models).map(interrupt).collect();
        let outcome = InterruptOutcome::new(Interrupts::try_from(open).unwrap());
        let all: Vec<_> = (0..models).map(usage).collect();
        apply(&mut conversation, RunFinished::new("t", "r").usage(all).outcome(outcome));

        let again = InterruptOutcome::new(Interrupts::try_from(vec![interrupt(3)]).unwrap());
        let finished = RunFinished::new("t", "r").usage([usage(7)]).outcome(again).into();
        let mut applied = Applied::default();
        let mut run = |conversation: &mut Conversation| {
            conversation.apply(&RunStarted::new("t", "r").into(), &mut applied);
            conversation.apply(&finished, &mut applied);
        };
        (0..4).for_each(|_| run(&mut conversation));
        let ((), count) = counted(|| (0..100).for_each(|_| run(&mut conversation)));
        assert_eq!(conversation.usage()[7].input_tokens, Some(105u32.into()));
        assert_eq!(conversation.open_interrupts().len(), models as usize);
        count
    };
    assert_eq!(cost_at(10), cost_at(50_000));
}

#[test]
fn patches_that_fail_cost_what_was_received() {
    // C-67: each copies a large value, and takes it back.
    let state = Value::parse(&format!(r#"{{"a":["{}"]}}"#, "x".repeat(1_000_000))).unwrap();
    let mut conversation = Conversation::new(Vec::new(), state);
    let text = concat!(
        r#"[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/a/0","value":1},"#,
        r#"{"op":"remove","path":"/a/1"},{"op":"test","path":"/n","value":0}]"#
    );
    let event: Event = StateDelta::new(serde_json::from_str::<JsonPatch>(text).unwrap()).into();
    let mut applied = Applied::default();
    // The state was received too, and what it has earned is used up.
    for _ in 0..100 {
        conversation.apply(&event, &mut applied);
    }
    let ((), count) = counted(|| {
        for _ in 0..10_000 {
            conversation.apply(&event, &mut applied);
            assert_eq!(applied.warnings.len(), 1);
        }
    });
    let received = 10_000 * event.to_json().len();
    assert!(count.bytes < 80 * received, "{count:?} for {received}");
}
