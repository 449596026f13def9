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
    // No run goes on that could have made them.
    assert!(snapshot.pending_of_run.is_empty());

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

/// P-14, C-54, C-85: whoever joins by a snapshot, at whatever place of a thread with interrupts, answers
/// to them, runs that answer nothing and calls that wait, sees in the end what the whole log says:
/// messages, state, open interrupts, pending calls. What they are shown keeps the rules.
pub async fn a_snapshot_at_every_place_folds_to_the_same(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    let mut snapshots = Vec::new();
    for (run, answers, events, end) in THREAD {
        let mut input = input("t", run, vec![user(&format!("{run}-user"), "Go on")]);
        let entry = |id: &&str| ResumeEntry::new(*id, ResumeStatus::Resolved);
        input.resume = (!answers.is_empty()).then(|| answers.iter().map(entry).collect());
        let begun = journal.begin(new_run(input)).await.unwrap();
        snapshots.push(journal.snapshot(&key("t")).await.unwrap());
        let mut steps = vec![started("t", run)];
        let lines = events.lines().map(str::trim).filter(|line| !line.is_empty());
        steps.extend(lines.map(|line| Event::from_json_exact(line).unwrap()));
        for event in steps {
            journal.append(&begun.lease, vec![event]).await.unwrap();
            snapshots.push(journal.snapshot(&key("t")).await.unwrap());
        }
        let end = match *end {
            "error" => RunError::new("no").into(),
            outcome => {
                let text =
                    format!(r#"{{"type":"RUN_FINISHED","threadId":"t","runId":"{run}"{outcome}}}"#);
                Event::from_json_exact(&text).unwrap()
            }
        };
        journal.finish(&begun.lease, vec![end]).await.unwrap();
        snapshots.push(journal.snapshot(&key("t")).await.unwrap());
    }
    let entries = log(&*journal, &key("t")).await;
    let whole: Vec<Event> = entries.iter().map(event).collect();
    let expected = folded(&whole);
    assert_eq!((expected.2.len(), expected.3.len()), (1, 2), "there is something to be told");
    assert!(snapshots.len() > 45);
    for snapshot in snapshots {
        let position = snapshot.position;
        let described = format!("{snapshot:#?}");
        let mut shown = snapshot.restated(&"t".into(), &"asked".into());
        let rest = entries.iter().filter(|entry| entry.position > position);
        shown.extend(rest.map(event));
        assert_eq!(folded(&shown), expected, "at {position}: {described}");
    }
}

type Folded = (Vec<Message>, Json, Vec<Interrupt>, Vec<String>);

/// What a stream comes to for somebody who has seen nothing else, if it keeps the rules.
fn folded(events: &[Event]) -> Folded {
    verify(events);
    let mut fold = crate::implement::Fold::new();
    for event in events {
        fold.push(event).unwrap();
    }
    let facts = fold.facts();
    let pending = facts.pending_tool_calls.iter().map(ToString::to_string).collect();
    (fold.conversation().messages().to_vec(), fold.state(), facts.open_interrupts, pending)
}

/// The runs of a thread: what they answer, what they say, how they end.
type Run = (&'static str, &'static [&'static str], &'static str, &'static str);

const THREAD: &[Run] = &[
    ("r1", &[], CALLS_1, r#","outcome":{"type":"success","pendingToolCallIds":["r1-b"]}"#),
    (
        "r2",
        &[],
        r#"{"type":"TOOL_CALL_START","toolCallId":"send","toolCallName":"send"}
           {"type":"TOOL_CALL_END","toolCallId":"send"}
           {"type":"TOOL_CALL_START","toolCallId":"r2-front","toolCallName":"pick"}
           {"type":"TOOL_CALL_END","toolCallId":"r2-front"}"#,
        r#","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_call","toolCallId":"send"},{"id":"i2","reason":"input"}]}"#,
    ),
    // Answers nothing, and fails.
    ("r3", &[], r#"{"type":"STEP_STARTED","stepName":"s"}"#, "error"),
    // Answers one of two, and asks again.
    (
        "r4",
        &["i1"],
        CALLS_4,
        r#","outcome":{"type":"interrupt","interrupts":[{"id":"i3","reason":"input"}]}"#,
    ),
    // Answers, and fails: they stay open.
    (
        "r5",
        &["i2", "i3"],
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/n","value":1}]}"#,
        "error",
    ),
    // Answers one of the two that are left.
    ("r6", &["i2"], "", ""),
    ("r7", &[], CALLS_7, ""),
];

const CALLS_1: &str = r#"
    {"type":"TOOL_CALL_START","toolCallId":"r1-a","toolCallName":"f"}
    {"type":"TOOL_CALL_END","toolCallId":"r1-a"}
    {"type":"TOOL_CALL_START","toolCallId":"r1-b","toolCallName":"f"}
    {"type":"TOOL_CALL_END","toolCallId":"r1-b"}
"#;

/// Takes up a call of an earlier run, and answers the one that it was asked about.
const CALLS_4: &str = r#"
    {"type":"TOOL_CALL_RESULT","messageId":"sent","toolCallId":"send","content":"ok"}
    {"type":"TOOL_CALL_START","toolCallId":"r2-front","toolCallName":"pick"}
    {"type":"TOOL_CALL_END","toolCallId":"r2-front"}
    {"type":"TOOL_CALL_RESULT","messageId":"picked","toolCallId":"r2-front","content":"blue"}
"#;

/// Calls that end, are open, answered, taken up again, and a subagent's: in another order than made.
const CALLS_7: &str = r#"
    {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}
    {"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"helper"}
    {"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"f","parentMessageId":"m"}
    {"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"f","subagentRunId":"s"}
    {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}
    {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
    {"type":"TOOL_CALL_END","toolCallId":"c"}
    {"type":"TOOL_CALL_END","toolCallId":"a"}
    {"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"f","parentMessageId":"m"}
    {"type":"TOOL_CALL_ARGS","toolCallId":"a","delta":"{}"}
    {"type":"TOOL_CALL_END","toolCallId":"b","subagentRunId":"s"}
    {"type":"TOOL_CALL_RESULT","messageId":"b-done","toolCallId":"b","content":"ok","subagentRunId":"s"}
    {"type":"SUBAGENT_FINISHED","subagentRunId":"s"}
    {"type":"TOOL_CALL_RESULT","messageId":"c-done","toolCallId":"c","content":"ok"}
    {"type":"TOOL_CALL_END","toolCallId":"a"}
    {"type":"TEXT_MESSAGE_END","messageId":"m"}
"#;
