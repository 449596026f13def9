//! Each rule with what keeps it and what breaks it.

use agui_types::event::EncryptedValueSubtype;
use agui_types::event::{
    ActivityDelta, ActivitySnapshot, Custom, Event, MessagesSnapshot, Raw, ReasoningEncryptedValue,
    ReasoningEnd, ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart,
    ReasoningStart, RunError, RunFinished, RunStarted, StepFinished, StepStarted, SubagentError,
    SubagentFinished, SubagentStarted, TextMessageChunk, TextMessageContent, TextMessageEnd,
    TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::message::{ActivityMessage, AssistantMessage, FunctionCall, ReasoningMessage};
use agui_types::{
    FromJson, Interrupt, InterruptOutcome, Interrupts, Json, JsonObject, JsonPatch, Message,
    RunAgentInput, RunFinishedOutcome, ToolCall,
};
use proptest::prelude::*;

use super::{OpenItem, RunState, Verifier};
use crate::{Class, Fault};

fn start(run: &str) -> Event {
    RunStarted::new("t", run).into()
}

fn finish(run: &str) -> Event {
    RunFinished::new("t", run).into()
}

fn error() -> Event {
    RunError::new("broken").into()
}

fn null() -> Json {
    Json::parse("null").unwrap()
}

/// An event attributed to `owner`, where that is not empty.
macro_rules! tagged {
    ($event:expr, $owner:expr) => {{
        let mut event = $event;
        event.subagent_run_id = (!$owner.is_empty()).then(|| $owner.into());
        Event::from(event)
    }};
}

fn text(id: &str, owner: &str) -> Event {
    tagged!(TextMessageStart::new(id), owner)
}

fn content(id: &str, owner: &str) -> Event {
    tagged!(TextMessageContent::new(id, ""), owner)
}

fn text_end(id: &str, owner: &str) -> Event {
    tagged!(TextMessageEnd::new(id), owner)
}

fn call(id: &str, parent: &str, owner: &str) -> Event {
    let mut call = ToolCallStart::new(id, "f");
    call.parent_message_id = (!parent.is_empty()).then(|| parent.into());
    tagged!(call, owner)
}

fn args(id: &str, owner: &str) -> Event {
    tagged!(ToolCallArgs::new(id, "{}"), owner)
}

fn call_end(id: &str, owner: &str) -> Event {
    tagged!(ToolCallEnd::new(id), owner)
}

fn reasoning(id: &str, owner: &str) -> Event {
    tagged!(ReasoningMessageStart::new(id), owner)
}

fn reasoning_end(id: &str, owner: &str) -> Event {
    tagged!(ReasoningMessageEnd::new(id), owner)
}

fn span(id: &str, owner: &str) -> Event {
    tagged!(ReasoningStart::new(id), owner)
}

fn span_end(id: &str, owner: &str) -> Event {
    tagged!(ReasoningEnd::new(id), owner)
}

fn step(name: &str, owner: &str) -> Event {
    tagged!(StepStarted::new(name), owner)
}

fn step_end(name: &str, owner: &str) -> Event {
    tagged!(StepFinished::new(name), owner)
}

fn subagent(id: &str, parent: &str) -> Event {
    let mut started = SubagentStarted::new(id, "name");
    started.parent_subagent_run_id = (!parent.is_empty()).then(|| parent.into());
    started.into()
}

fn subagent_dropped(id: &str) -> Event {
    let message = "the subagent stopped before it said how it ended";
    SubagentError::new(id, message).code("SUBAGENT_DROPPED").into()
}

fn subagent_end(id: &str) -> Event {
    SubagentFinished::new(id).into()
}

fn activity(id: &str, owner: &str, replace: bool) -> Event {
    tagged!(ActivitySnapshot::new(id, "plan", JsonObject::empty()).replace(replace), owner)
}

fn activity_delta(id: &str, owner: &str) -> Event {
    tagged!(ActivityDelta::new(id, "plan", JsonPatch::default()), owner)
}

fn snapshot(messages: Vec<Message>) -> Event {
    MessagesSnapshot::new(messages).into()
}

/// A stream that keeps every rule.
#[track_caller]
fn accepts(events: &[Event]) {
    let mut verifier = Verifier::new();
    for event in events {
        verifier.push(event).unwrap();
    }
    verifier.finish().unwrap();
}

/// A run of these events that keeps every rule.
#[track_caller]
fn accepts_run(events: &[Event]) {
    let run = [&[start("r")], events, &[finish("r")]].concat();
    accepts(&run);
}

/// A stream whose last event breaks a rule.
#[track_caller]
fn rejects(rule: &str, events: &[Event]) -> Fault {
    let mut verifier = Verifier::new();
    let (last, before) = events.split_last().unwrap();
    for event in before {
        verifier.push(event).unwrap();
    }
    let fault = verifier.push(last).unwrap_err();
    assert_eq!(fault.rule, rule, "{fault}");
    assert_eq!(fault.class, Class::Sequence);
    assert_eq!(fault.event, Some(before.len() as u64));
    assert!(!fault.fix.is_empty());
    fault
}

/// A run whose last event breaks a rule.
#[track_caller]
fn rejects_run(rule: &str, events: &[Event]) -> Fault {
    rejects(rule, &[&[start("r")], events].concat())
}

#[test]
fn a_stream_opens_with_a_run_or_an_error() {
    // C-1, C-2, P-1
    rejects("C-1", &[text("m", "")]);
    rejects("C-1", &[finish("r")]);
    rejects("C-1", &[Raw::new(null()).into()]);
    rejects("C-1", &[Event::from_json_tolerant(r#"{"type":"NEW"}"#).unwrap().value]);
    accepts(&[error()]);
    accepts(&[error(), start("r"), finish("r")]);
}

#[test]
fn nothing_follows_a_closed_run_but_a_late_error_or_another_run() {
    // C-3, C-4, C-5, P-3, P-4
    rejects("C-3", &[start("r"), finish("r"), Raw::new(null()).into()]);
    rejects("C-3", &[start("r"), finish("r"), finish("r")]);
    rejects("C-3", &[start("r"), error(), finish("r")]);
    rejects("C-3", &[start("r"), finish("r"), error(), error()]);
    rejects("C-3", &[error(), text("m", "")]);
    accepts(&[start("r"), finish("r"), error()]);
    accepts(&[start("r"), finish("r"), error(), start("s"), finish("s")]);
    accepts(&[start("r"), finish("r"), start("s"), error()]);
}

#[test]
fn a_run_does_not_start_inside_another() {
    // C-6, P-2
    let fault = rejects("C-6", &[start("r"), start("s")]);
    assert!(fault.to_string().contains("run 'r' is open"), "{fault}");
}

#[test]
fn everything_is_closed_before_a_run_finishes() {
    // C-7, P-9
    for (open, name) in [
        (text("m", ""), "text messages are still active: m"),
        (call("c", "", ""), "tool calls are still active: c"),
        (reasoning("q", ""), "reasoning messages are still active: q"),
        (span("s", ""), "reasoning spans are still active: s"),
        (step("fetch", ""), "steps are still active: fetch"),
        (subagent("a", ""), "subagents are still active: a"),
    ] {
        let fault = rejects_run("C-7", &[open, finish("r")]);
        assert!(fault.message.contains(name), "{fault}");
    }
    let fault = rejects_run("C-7", &[text("m", ""), step("s", ""), text("n", ""), finish("r")]);
    assert_eq!(&*fault.found, "text message 'm', step 's', text message 'n'");
}

#[test]
fn an_error_abandons_what_is_open() {
    // C-9, C-5, P-12
    accepts(&[
        start("r"),
        text("m", "a"),
        step("s", ""),
        subagent("a", ""),
        error(),
        start("s"),
        subagent("a", ""),
        text("m", ""),
        text_end("m", ""),
        subagent_end("a"),
        finish("s"),
    ]);
}

#[test]
fn boundary_events_agree() {
    // C-17, P-5, P-6
    let fault = rejects("C-17", &[start("r"), finish("s")]);
    assert_eq!(&*fault.path, "/runId");
    let fault = rejects("C-17", &[start("r"), RunFinished::new("u", "r").into()]);
    assert_eq!(&*fault.path, "/threadId");
    rejects("C-17", &[start("r"), finish("r"), RunStarted::new("u", "s").into()]);
}

#[test]
fn the_requested_thread_is_the_thread_of_every_run() {
    // C-17, P-5, P-7: a replayed run comes under its own id.
    let mut verifier = Verifier::for_run("t".into(), "r".into());
    for event in [start("earlier"), finish("earlier"), start("r"), finish("r")] {
        verifier.push(&event).unwrap();
    }
    verifier.finish().unwrap();
    let mut verifier = Verifier::for_run("elsewhere".into(), "r".into());
    assert_eq!(verifier.push(&start("r")).unwrap_err().rule, "C-17");
}

#[test]
fn a_stream_that_stops_is_truncated() {
    // C-15, T-9
    let mut verifier = Verifier::for_run("t".into(), "r".into());
    let fault = verifier.clone().finish().unwrap_err();
    assert_eq!((fault.rule, fault.class, fault.event), ("T-9", Class::Truncated, None));
    assert!(fault.message.contains("run 'r'"), "{fault}");
    for event in [start("r"), text("m", "")] {
        verifier.push(&event).unwrap();
    }
    let fault = verifier.finish().unwrap_err();
    assert!(fault.message.contains("ended without a terminal event: 'RUN_FINISHED'"), "{fault}");
    assert!(fault.message.contains("text message 'm'"), "{fault}");
    assert_eq!(verifier.push(&text_end("m", "")), Err(fault));
}

#[test]
fn a_fault_stays() {
    let mut verifier = Verifier::new();
    let fault = verifier.push(&text("m", "")).unwrap_err();
    assert_eq!(verifier.push(&start("r")), Err(fault.clone()));
    assert_eq!(verifier.finish(), Err(fault));
}

#[test]
fn what_is_not_open_is_neither_continued_nor_closed() {
    // C-38, P-21
    let continued: [Event; 7] = [
        content("x", ""),
        text_end("x", ""),
        args("x", ""),
        call_end("x", ""),
        ReasoningMessageContent::new("x", "").into(),
        reasoning_end("x", ""),
        span_end("x", ""),
    ];
    for event in continued {
        let fault = rejects_run("C-38", &[event]);
        assert!(fault.message.contains("'x'"), "{fault}");
    }
    rejects_run("C-38", &[text("m", ""), text_end("m", ""), content("m", "")]);
    rejects_run("C-38", &[call("m", "", ""), call_end("m", ""), call_end("m", "")]);
    rejects("C-38", &[start("r"), error(), start("s"), text_end("m", "")]);
}

#[test]
fn an_open_id_is_not_opened_again() {
    // C-39, P-20, P-40
    for event in [text("x", ""), call("x", "", ""), reasoning("x", ""), span("x", "")] {
        rejects_run("C-39", &[event.clone(), event]);
    }
}

#[test]
fn a_closed_item_is_opened_again() {
    // C-41
    accepts_run(&[text("m", ""), text_end("m", ""), text("m", ""), text_end("m", "")]);
    accepts_run(&[
        call("c", "", ""),
        call_end("c", ""),
        call("c", "", ""),
        args("c", ""),
        call_end("c", ""),
    ]);
    let other_values = TextMessageStart::new("m").name("other");
    accepts_run(&[text("m", ""), text_end("m", ""), other_values.into(), text_end("m", "")]);
}

#[test]
fn items_interleave() {
    // C-42, C-58: spans, reasoning messages, texts and calls have a namespace each.
    accepts_run(&[
        text("x", ""),
        span("x", "a"),
        reasoning("x", "b"),
        call("x", "", ""),
        content("x", ""),
        span_end("x", "a"),
        args("x", ""),
        text_end("x", ""),
        reasoning_end("x", "b"),
        call_end("x", ""),
    ]);
    rejects_run("C-38", &[span("x", ""), reasoning_end("x", "")]);
    rejects_run("C-38", &[reasoning("x", ""), span_end("x", "")]);
}

#[test]
fn steps_balance_per_owner() {
    // C-8, P-19, P-62
    accepts_run(&[
        step("s", ""),
        step("s", "a"),
        step("u", ""),
        step_end("s", ""),
        step_end("u", ""),
        step_end("s", "a"),
    ]);
    rejects_run("C-8", &[step_end("s", "")]);
    rejects_run("C-8", &[step("s", "a"), step("s", "a")]);
    rejects_run("P-62", &[step("s", "a"), step_end("s", "")]);
    rejects_run("P-62", &[step("s", ""), step_end("s", "a")]);
    rejects_run("C-8", &[step("s", ""), step_end("s", ""), step_end("s", "")]);
}

#[test]
fn a_continuation_names_no_other_owner() {
    // C-77, P-61
    accepts_run(&[text("m", "a"), content("m", ""), content("m", "a"), text_end("m", "")]);
    rejects_run("C-77", &[text("m", "a"), content("m", "b")]);
    rejects_run("C-77", &[text("m", ""), text_end("m", "a")]);
    rejects_run("C-77", &[call("c", "", "a"), args("c", "b")]);
    rejects_run("C-77", &[reasoning("q", "a"), reasoning_end("q", "b")]);
    rejects_run("C-77", &[span("q", "a"), span_end("q", "b")]);
}

#[test]
fn an_owner_once_established_stands() {
    // C-41, C-77, P-27
    accepts_run(&[
        text("m", "a"),
        text_end("m", ""),
        text("m", ""),
        content("m", "a"),
        text_end("m", ""),
    ]);
    rejects_run("C-77", &[text("m", ""), text_end("m", ""), text("m", "a")]);
    rejects_run("C-77", &[text("m", "a"), text_end("m", ""), text("m", "b")]);
    rejects_run("C-77", &[call("c", "", "a"), call_end("c", ""), call("c", "", "b")]);
    // C-5: ownership ends with the run.
    accepts(&[
        start("r"),
        text("m", "a"),
        text_end("m", ""),
        finish("r"),
        start("s"),
        text("m", "b"),
        text_end("m", ""),
        finish("s"),
    ]);
}

#[test]
fn a_call_belongs_to_the_owner_of_its_message() {
    // P-63
    accepts_run(&[text("m", "a"), text_end("m", ""), call("c", "m", "a"), call_end("c", "a")]);
    accepts_run(&[text("m", "a"), text_end("m", ""), call("c", "m", ""), call_end("c", "a")]);
    rejects_run("P-63", &[text("m", "a"), call("c", "m", "b")]);
    rejects_run("C-77", &[text("m", "a"), call("c", "m", ""), args("c", "b")]);
    accepts_run(&[call("c", "elsewhere", "a"), call_end("c", "")]);
    // One that starts again, in a message of another owner, tagged or not.
    let before = [text("m", "a"), text_end("m", ""), call("c", "", "b"), call_end("c", "")];
    let again = |call: Event| [&before[..], &[call]].concat();
    accepts_run(&[&again(call("c", "", ""))[..], &[call_end("c", "")]].concat());
    rejects_run("P-63", &again(call("c", "m", "")));
    rejects_run("P-63", &again(call("c", "m", "b")));
    rejects_run("C-77", &again(call("c", "m", "a")));
}

#[test]
fn restated_messages_say_whose_they_are() {
    // C-77, C-71
    let tool_call = ToolCall::new("c", FunctionCall::new("f", ""));
    let held: Message =
        AssistantMessage::new("m").tool_calls(vec![tool_call]).subagent_run_id("a").into();
    rejects_run("P-63", &[snapshot(vec![held.clone()]), call("d", "m", "b")]);
    rejects_run("C-77", &[snapshot(vec![held.clone()]), call("c", "", "b")]);
    rejects_run("C-77", &[snapshot(vec![held.clone()]), text("m", "b")]);
    rejects_run("C-77", &[text("m", ""), snapshot(vec![held.clone()]), content("m", "b")]);
    accepts_run(&[text("m", ""), snapshot(vec![held.clone()]), text_end("m", "a")]);
    let thought: Message = ReasoningMessage::new("q", "").subagent_run_id("a").into();
    rejects_run("C-77", &[snapshot(vec![thought]), reasoning("q", "b")]);
    let progress: Message =
        ActivityMessage::new("p", "plan", JsonObject::empty()).subagent_run_id("a").into();
    rejects_run("C-77", &[snapshot(vec![progress]), activity_delta("p", "b")]);

    let input = RunAgentInput::new("t", "r", vec![held]);
    let echo = RunStarted::new("t", "r").input(input);
    rejects("P-63", &[echo.into(), call("d", "m", "b")]);
}

#[test]
fn results_activities_and_values_have_owners() {
    // C-72, C-77
    let result = tagged!(ToolCallResult::new("m", "c", ""), "a");
    rejects_run("P-63", &[result.clone(), call("d", "m", "b")]);
    // C-52: a result needs no call and reopens none.
    accepts_run(&[result]);

    rejects_run("C-77", &[activity("p", "a", true), activity_delta("p", "b")]);
    accepts_run(&[activity("p", "a", true), activity("p", "b", true), activity_delta("p", "b")]);
    rejects_run(
        "C-77",
        &[activity("p", "a", false), activity("p", "b", false), activity_delta("p", "b")],
    );
    // C-73: a delta without its activity is no fault.
    accepts_run(&[activity_delta("p", "b")]);

    let value =
        |subtype, owner: &str| tagged!(ReasoningEncryptedValue::new(subtype, "x", "opaque"), owner);
    let of_message = value(EncryptedValueSubtype::Message, "b");
    let of_call = value(EncryptedValueSubtype::ToolCall, "b");
    rejects_run("C-77", &[text("x", "a"), of_message.clone()]);
    rejects_run("C-77", &[reasoning("x", "a"), of_message.clone()]);
    rejects_run("C-77", &[call("x", "", "a"), of_call.clone()]);
    // C-60: an unknown target is no fault.
    accepts_run(&[of_message, of_call]);
}

#[test]
fn subagents_are_announced_once_and_end_once() {
    // C-79, P-55, P-58, P-59, P-64
    accepts_run(&[
        subagent("a", ""),
        subagent("b", "a"),
        subagent_end("a"),
        subagent("c", "a"),
        SubagentError::new("b", "broken").into(),
        subagent_end("c"),
    ]);
    rejects_run("P-58", &[subagent("a", ""), subagent("a", "")]);
    rejects_run("P-55", &[subagent("a", ""), subagent_end("a"), subagent("a", "")]);
    rejects_run("P-64", &[subagent("a", "ghost")]);
    rejects_run("P-64", &[subagent("a", "a")]);
    rejects_run("C-79", &[subagent_end("a")]);
    rejects_run("C-79", &[SubagentError::new("a", "").into()]);
    rejects_run("C-79", &[subagent("a", ""), subagent_end("a"), subagent_end("a")]);
    rejects_run("C-79", &[text("m", "a"), text_end("m", "a"), subagent_end("a")]);
    // P-55: a later run may continue a suspended invocation.
    accepts(&[
        start("r"),
        subagent("a", ""),
        subagent_end("a"),
        finish("r"),
        start("s"),
        subagent("a", ""),
        subagent_end("a"),
        finish("s"),
    ]);
}

#[test]
fn attribution_needs_no_announcement() {
    // C-78, P-60
    accepts_run(&[text("m", "a"), text_end("m", "a"), subagent("a", ""), subagent_end("a")]);
    accepts_run(&[subagent("a", ""), text("m", "a"), subagent_end("a"), text_end("m", "a")]);
}

#[test]
fn interrupt_ids_are_unique_in_an_outcome() {
    // P-68
    let outcome = |ids: [&str; 2]| {
        let interrupts = ids.map(|id| Interrupt::new(id, "why")).to_vec();
        let interrupts = Interrupts::try_from(interrupts).unwrap();
        let outcome = RunFinishedOutcome::from(InterruptOutcome::new(interrupts));
        Event::from(RunFinished::new("t", "r").outcome(outcome))
    };
    accepts(&[start("r"), outcome(["i", "j"])]);
    let fault = rejects("P-68", &[start("r"), outcome(["i", "i"])]);
    assert_eq!(&*fault.path, "/outcome/interrupts/1/id");
    assert!(fault.message.contains("two interrupts carrying the id 'i'"), "{fault}");
}

#[test]
fn what_the_rules_of_order_do_not_name_passes_within_a_run() {
    // C-21, C-31
    accepts_run(&[
        Raw::new(null()).into(),
        Custom::new("anything", null()).into(),
        Event::from_json_tolerant(r#"{"type":"NEW"}"#).unwrap().value,
        TextMessageChunk::new().into(),
    ]);
}

#[test]
fn a_fault_shows_a_hostile_name_shortened_and_escaped() {
    let id = format!("\u{1b}[2J{}", "x".repeat(1_000_000));
    let fault = rejects_run("C-38", &[content(&id, "")]);
    assert!(fault.to_string().len() < 1_000);
    assert!(fault.message.contains("\\u{1b}[2J"), "{fault}");
    let open: Vec<Event> = (0..1_000).map(|at| text(&at.to_string(), "")).collect();
    let fault = rejects_run("C-7", &[open, vec![finish("r")]].concat());
    assert!(fault.message.contains("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 990 more"), "{fault}");
}

#[test]
fn open_items_are_told_in_the_order_opened_and_closed_innermost_first() {
    // P-9, P-59
    let mut verifier = Verifier::new();
    assert_eq!(verifier.run(), RunState::NotStarted);
    for event in [
        start("r"),
        step("s", ""),
        subagent("a", ""),
        span("q", "a"),
        subagent("b", "a"),
        reasoning("q", "b"),
        text("m", ""),
        call("c", "", "a"),
    ] {
        verifier.push(&event).unwrap();
    }
    let (thread_id, run_id) = ("t".into(), "r".into());
    assert_eq!(verifier.run(), RunState::Active { thread_id, run_id });
    let open = verifier.open_items();
    let names: Vec<String> = open.iter().map(ToString::to_string).collect();
    assert_eq!(
        names.join(", "),
        "step 's', subagent 'a', reasoning span 'q', subagent 'b', reasoning message 'q', \
         text message 'm', tool call 'c'"
    );
    let owners: Vec<_> =
        open.iter().map(|item| item.owner().map_or("", |id| id.as_str())).collect();
    assert_eq!(owners, ["", "", "a", "a", "b", "", "a"]);
    assert_eq!(open[0], OpenItem::Step { name: "s".into(), owner: None });
    assert_eq!(
        verifier.closing_events(),
        [
            call_end("c", "a"),
            text_end("m", ""),
            reasoning_end("q", "b"),
            span_end("q", "a"),
            step_end("s", ""),
            subagent_dropped("b"),
            subagent_dropped("a"),
        ]
    );
    for event in verifier.closing_events() {
        verifier.push(&event).unwrap();
    }
    assert!(verifier.open_items().is_empty());
    verifier.push(&finish("r")).unwrap();
    assert_eq!(verifier.run(), RunState::Finished);
    verifier.push(&error()).unwrap();
    assert_eq!(verifier.run(), RunState::Failed);
}

fn any_event() -> impl Strategy<Value = Event> {
    let id = || prop::sample::select(vec!["x", "y", ""]);
    let owner = || prop::sample::select(vec!["", "", "a", "b"]);
    (0..24_usize, id(), owner(), id()).prop_map(|(kind, id, owner, other)| match kind {
        0 => start("r"),
        1 => finish("r"),
        2 => error(),
        3 | 4 => text(id, owner),
        5 => content(id, owner),
        6 => text_end(id, owner),
        7 | 8 => call(id, other, owner),
        9 => args(id, owner),
        10 => call_end(id, owner),
        11 => reasoning(id, owner),
        12 => reasoning_end(id, owner),
        13 => span(id, owner),
        14 => span_end(id, owner),
        15 | 16 => step(id, owner),
        17 => step_end(id, owner),
        18 | 19 => subagent(if id.is_empty() { "a" } else { id }, owner),
        20 => subagent_end(if id.is_empty() { "a" } else { id }),
        21 => snapshot(vec![AssistantMessage::new(id).subagent_run_id(owner).into()]),
        22 => activity_delta(id, owner),
        _ => activity(id, owner, true),
    })
}

proptest! {
    /// Whatever is open, its closing events and a `RUN_FINISHED` end the run in order (P-9). Events
    /// that break a rule are left out, as a producer would.
    #[test]
    fn what_is_open_can_be_closed(events in prop::collection::vec(any_event(), 0..60)) {
        let mut verifier = Verifier::new();
        verifier.push(&start("r")).unwrap();
        for event in &events {
            let mut next = verifier.clone();
            match next.push(event) {
                Ok(()) => verifier = next,
                Err(fault) => prop_assert_eq!(next.push(event), Err(fault)),
            }
        }
        if verifier.run() == (RunState::Active { thread_id: "t".into(), run_id: "r".into() }) {
            for order in [
                verifier.closing_events(),
                verifier.open_items().iter().map(OpenItem::closing_event).collect(),
            ] {
                let mut closing = verifier.clone();
                for event in &order {
                    closing.push(event).unwrap();
                }
                closing.push(&finish("r")).unwrap();
                closing.finish().unwrap();
            }
        } else {
            verifier.finish().unwrap();
        }
    }
}
