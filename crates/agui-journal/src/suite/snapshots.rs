//! A thread folded.

use std::sync::Arc;

use agui_types::event::{
    Event, MessagesSnapshot, RunError, RunFinished, StateSnapshot, StepFinished, StepStarted,
    ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart,
};
use agui_types::{FromJson, Interrupt, InterruptOutcome, Json, Message, ResumeEntry, ResumeStatus};

use super::kit::*;
use crate::{Cursor, Journal, ReadLimit};

/// In the middle of a message: the snapshot, the events that opened what is open, and the rest of
/// the log are a stream that keeps the rules and folds to the same.
pub async fn a_snapshot_in_the_middle_goes_on(journal: Arc<dyn Journal>, _: ManualClock) {
    say(&*journal, "t", "r1").await;
    let begun = begin(&*journal, "t", "r2").await;
    let state = Json::parse(r#"{"deep":{"n":[1,2.50]}}"#).unwrap();
    let events = vec![
        started("t", "r2"),
        StateSnapshot::new(state.clone()).into(),
        StepStarted::new("think").into(),
        open("gone"),
        close("gone"),
        open("m"),
        text("m", "half a "),
        ToolCallStart::new("c", "search").parent_message_id("m").into(),
        ToolCallArgs::new("c", "{\"q\":").into(),
    ];
    let head = journal.append(&begun.lease, events).await.unwrap();
    let snapshot = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!((snapshot.position, snapshot.running), (head, Some("r2".into())));
    assert_eq!(snapshot.state, state);
    let ids: Vec<_> = snapshot.messages.iter().filter_map(Message::id).collect();
    let ids: Vec<_> = ids.iter().map(|id| id.as_str()).collect();
    assert_eq!(ids, ["r1-user", "r1-answer", "r2-user", "gone", "m"]);
    let opened: Vec<_> = snapshot.open.iter().map(Event::type_name).collect();
    assert_eq!(opened, ["STEP_STARTED", "TEXT_MESSAGE_START", "TOOL_CALL_START"]);

    let rest = vec![
        text("m", "sentence"),
        ToolCallArgs::new("c", "1}").into(),
        ToolCallEnd::new("c").into(),
        close("m"),
        StepFinished::new("think").into(),
    ];
    journal.append(&begun.lease, rest).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r2")]).await.unwrap();
    let mut shown = vec![
        started("t", "r2"),
        MessagesSnapshot::new(snapshot.messages).into(),
        StateSnapshot::new(snapshot.state).into(),
    ];
    shown.extend(snapshot.open);
    let from = Cursor::after(snapshot.position);
    let tail = journal.read(&key("t"), from, ReadLimit::default()).await.unwrap();
    shown.extend(tail.entries.iter().map(event));
    verify(&shown);

    let mut newcomer = crate::implement::Fold::new();
    for event in &shown {
        newcomer.push(event).unwrap();
    }
    let after = journal.snapshot(&key("t")).await.unwrap();
    assert_eq!(newcomer.conversation().messages().to_vec(), after.messages);
    assert_eq!(newcomer.state(), after.state);
    assert_eq!(after.running, None);
    assert!(after.open.is_empty());
}

/// What a finished run leaves open can be asked for, and is closed by its answers.
pub async fn interrupts_and_calls_are_facts(journal: Arc<dyn Journal>, _: ManualClock) {
    let thread = key("t");
    let begun = begin(&*journal, "t", "r1").await;
    assert_eq!(journal.facts(&thread).await.unwrap(), Default::default());
    let events = vec![
        started("t", "r1"),
        ToolCallStart::new("ask", "send").into(),
        ToolCallEnd::new("ask").into(),
        ToolCallStart::new("front", "pick").into(),
        ToolCallEnd::new("front").into(),
        ToolCallStart::new("done", "look").into(),
        ToolCallEnd::new("done").into(),
        ToolCallResult::new("done-result", "done", "ok").into(),
    ];
    journal.append(&begun.lease, events).await.unwrap();
    assert_eq!(journal.facts(&thread).await.unwrap(), Default::default());
    let interrupt = Interrupt::new("i1", "tool_call").tool_call_id("ask").message("Send?");
    let outcome = InterruptOutcome::new(interrupt.clone());
    let end = RunFinished::new("t", "r1").outcome(outcome);
    journal.finish(&begun.lease, vec![end.into()]).await.unwrap();

    let facts = journal.facts(&thread).await.unwrap();
    assert_eq!(facts.open_interrupts, [interrupt]);
    assert_eq!(facts.pending_tool_calls, ["front"]);
    let info = journal.thread(&thread).await.unwrap();
    assert_eq!((info.open_interrupts, info.pending_tool_calls), (1, 1));
    let snapshot = journal.snapshot(&thread).await.unwrap();
    assert_eq!(snapshot.open_interrupts, facts.open_interrupts);
    assert_eq!(snapshot.pending_tool_calls, facts.pending_tool_calls);

    let result = r#"{"id":"front-result","role":"tool","toolCallId":"front","content":"blue"}"#;
    let mut answer = input("t", "r1", vec![Message::from_json_exact(result).unwrap()]);
    answer.resume = Some(vec![ResumeEntry::new("i1", ResumeStatus::Resolved)]);
    let begun = journal.begin(new_run(answer)).await.unwrap();
    journal.append(&begun.lease, vec![started("t", "r1")]).await.unwrap();
    // Until the run has ended nothing is answered.
    assert_eq!(journal.facts(&thread).await.unwrap(), facts);
    journal.finish(&begun.lease, vec![finished("t", "r1")]).await.unwrap();
    assert_eq!(journal.facts(&thread).await.unwrap(), Default::default());
    let info = journal.thread(&thread).await.unwrap();
    assert_eq!((info.open_interrupts, info.pending_tool_calls), (0, 0));
}

/// A run that fails answers no interrupt.
pub async fn a_failed_run_leaves_what_was_open(journal: Arc<dyn Journal>, _: ManualClock) {
    let begun = begin(&*journal, "t", "r1").await;
    journal.append(&begun.lease, vec![started("t", "r1")]).await.unwrap();
    let outcome = InterruptOutcome::new(Interrupt::new("i1", "input"));
    let end = RunFinished::new("t", "r1").outcome(outcome);
    journal.finish(&begun.lease, vec![end.into()]).await.unwrap();
    let mut answer = input("t", "r2", Vec::new());
    answer.resume = Some(vec![ResumeEntry::new("i1", ResumeStatus::Cancelled)]);
    let begun = journal.begin(new_run(answer)).await.unwrap();
    journal.finish(&begun.lease, vec![RunError::new("no").into()]).await.unwrap();
    let facts = journal.facts(&key("t")).await.unwrap();
    assert_eq!(facts.open_interrupts, [Interrupt::new("i1", "input")]);
}
