//! What reading and writing a token costs in allocations.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use agui_types::event::{ReasoningMessageContent, TextMessageContent, ToolCallArgs};
use agui_types::{Event, EventReader, FromJson, Timestamp, ToJson};

/// The system's allocator, counting what each thread takes from it.
struct Counting;

thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// How many bytes it holds, and the most it held.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn note(more: isize) {
    let held = HELD.get() + more;
    HELD.set(held);
    MOST.set(MOST.get().max(held));
}

// SAFETY: passes everything on to the system's allocator; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
        note(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        TAKEN.with(|taken| taken.set(taken.get() + 1));
        note(size.cast_signed() - layout.size().cast_signed());
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-layout.size().cast_signed());
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations something takes, beside what it gives.
fn counted<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = TAKEN.with(Cell::get);
    let result = work();
    (TAKEN.with(Cell::get) - before, result)
}

/// Tokens as they come, over two messages, a call and a subagent.
fn tokens() -> Vec<String> {
    let mut tokens = Vec::new();
    for turn in 0..100 {
        let delta = format!("token {turn} \"é\"\n");
        let at = Timestamp::new(1_757_000_000_000 + turn).unwrap();
        tokens.push(TextMessageContent::new("message-1", &*delta).to_json());
        tokens.push(TextMessageContent::new("message-2", &*delta).timestamp(at).to_json());
        tokens.push(ToolCallArgs::new("call-1", &*delta).subagent_run_id("subagent-1").to_json());
        tokens.push(ReasoningMessageContent::new("reasoning-1", &*delta).to_json());
    }
    tokens
}

#[test]
fn a_token_is_read_with_one_allocation() {
    let tokens = tokens();
    let mut reader = EventReader::new();
    for (turn, text) in tokens.iter().enumerate() {
        // The first four make the ids known.
        let ids = if turn < 4 { 2 } else { 0 };
        let (taken, reading) = counted(|| reader.tolerant(text).unwrap());
        assert!(taken <= 1 + ids, "{taken} for {text}");
        assert!(reading.findings.is_empty());
        let (taken, event) = counted(|| reader.exact(text).unwrap());
        assert_eq!(taken, 1, "for {text}");
        assert_eq!(event, reading.value);
    }
    // An empty delta takes none.
    let text = TextMessageContent::new("message-1", "").to_json();
    let (taken, _) = counted(|| reader.tolerant(&text).unwrap());
    assert_eq!(taken, 0);
}

#[test]
fn an_event_is_written_into_a_buffer_that_is_there_without_an_allocation() {
    let mut events: Vec<Event> =
        tokens().iter().map(|text| Event::from_json_exact(text).unwrap()).collect();
    for text in [
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":[1.0],"x":1},{"op":"merge"}]}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[{"inputTokens":9007199254740991}]}"#,
        r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user","id":"u","content":[{"type":"text","text":"\u0001"}]}]}"#,
    ] {
        events.push(Event::from_json_tolerant(text).unwrap().value);
    }
    let mut out = Vec::with_capacity(1_024);
    for event in events {
        out.clear();
        let (taken, ()) = counted(|| event.write_json(&mut out));
        assert_eq!(taken, 0, "{}", event.to_json());
        assert_eq!(out, event.to_json().into_bytes());
    }
}

#[test]
fn a_list_of_nothing_takes_no_multiple_of_its_text() {
    let list = |open: &str, entry: &str, close: &str| {
        let entries = vec![entry; 200_000].join(",");
        format!("{open}{entries}{close}")
    };
    let messages = r#"{"type":"MESSAGES_SNAPSHOT","messages":["#;
    let parts = r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":["#;
    let patch = r#"{"type":"STATE_DELTA","delta":["#;
    let usage = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":["#;
    for text in [
        list(messages, "{}", "]}"),
        list(messages, r#"{"role":""}"#, "]}"),
        list(parts, "{}", "]}"),
        list(patch, "{}", "]}"),
        list(patch, r#"{"op":""}"#, "]}"),
        list(usage, "{}", "]}"),
    ] {
        let before = HELD.get();
        MOST.set(before);
        let reading = Event::from_json_tolerant(&text);
        let most = MOST.get() - before;
        assert!(most < 1_000_000, "{most} for {} of text", text.len());
        drop(reading);
    }
}
