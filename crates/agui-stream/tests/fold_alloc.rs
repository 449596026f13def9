//! What folding allocates, counted for the thread that runs the test: what an event brings, and
//! nothing for what is there already.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write;

use agui_stream::fold::{Applied, Conversation};
use agui_types::event::{
    ActivityDelta, ActivitySnapshot, Event, StateDelta, TextMessageContent, TextMessageStart,
    ToolCallArgs, ToolCallResult, ToolCallStart,
};
use agui_types::json::Value;
use agui_types::message::UserMessage;
use agui_types::{JsonObject, JsonPatch, Message};

struct Counting;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    calls: usize,
    /// Bytes asked for, growth of existing blocks included.
    bytes: usize,
}

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(Count { calls: 0, bytes: 0 }) };
}

fn note(bytes: usize) {
    // Threads that are being torn down are of no interest.
    let _ = COUNT.try_with(|cell| {
        let Count { calls, bytes: before } = cell.get();
        cell.set(Count { calls: calls + 1, bytes: before + bytes });
    });
}

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    COUNT.set(Count::default());
    for _ in 0..times {
        conversation.apply(event, &mut applied);
    }
    COUNT.get()
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
            COUNT.set(Count::default());
            conversation.apply(&event, &mut applied);
            most = most.max(COUNT.get().calls);
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
