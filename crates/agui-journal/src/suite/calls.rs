//! The calls of runs that were broken off.

use std::sync::Arc;
use std::time::Duration;

use agui_types::event::{Event, RunError, RunFinished};
use agui_types::{CancelledOutcome, FromJson, Interrupt, InterruptOutcome, Message, ToJson};

use super::kit::*;
use crate::{BusyPolicy, Journal, Lease};

/// P-11, P-12, C-9: however a run is broken off, by its runner as stopped or failed, by another run, or
/// since its lease lapsed, each of its calls that has no result gets one that says why, in the order
/// made, and what is open is closed. The log is a stream that a strict verifier accepts; nothing waits.
pub async fn a_run_that_is_broken_off_answers_its_calls(
    journal: Arc<dyn Journal>,
    clock: ManualClock,
) {
    let stopped = |call: &str| result(call, "stopped", "stop_requested", "was stopped");
    let failed = |call: &str| result(call, "error", "missing_terminal_event", "failed");
    let cancelled = || {
        let outcome = CancelledOutcome::new();
        Event::from(RunFinished::new("t", "r").outcome(outcome)).to_json()
    };
    for (at, (how, last)) in [
        ("cancelled", Some(cancelled())),
        ("superseded", Some(cancelled())),
        ("failed", Some(Event::from(RunError::new("no").code("MINE")).to_json())),
        ("released", None),
        ("lapsed", None),
        ("stopped too late", None),
    ]
    .into_iter()
    .enumerate()
    {
        let begun = begin(&*journal, "t", "r").await;
        let mut events = vec![started("t", "r")];
        events.extend(read(&at.to_string(), BROKEN_OFF));
        journal.append(&begun.lease, events).await.unwrap();
        let end = async |lease: &Lease, event: Event| {
            journal.finish(lease, vec![event]).await.unwrap();
        };
        match how {
            "cancelled" => end(&begun.lease, read_event(&cancelled())).await,
            "failed" => end(&begun.lease, RunError::new("no").code("MINE").into()).await,
            "superseded" => {
                let next = new_run(input("t", "next", Vec::new())).busy(BusyPolicy::Supersede);
                let next = journal.begin(next).await.unwrap();
                end(&next.lease, finished("t", "next")).await;
            }
            "released" => {
                journal.release(&begun.lease).await.unwrap();
                assert_eq!(journal.recover().await.unwrap().len(), 1);
            }
            "lapsed" => {
                clock.advance(Duration::from_secs(30));
                assert_eq!(journal.recover().await.unwrap().len(), 1);
            }
            _ => {
                clock.advance(Duration::from_secs(30));
                journal.request_stop(&key("t"), None).await.unwrap();
            }
        }
        let entries = log(&*journal, &key("t")).await;
        verify_log(&entries);
        let from = begun.from.position();
        let texts: Vec<&str> = entries
            .iter()
            .filter(|entry| entry.position > from && entry.run.as_str() == "r")
            .skip(1 + BROKEN_OFF.trim().lines().count())
            .map(|entry| entry.text())
            .collect();
        let no_result = |call: &str| {
            if last.as_deref() == Some(&*cancelled()) { stopped(call) } else { failed(call) }
        };
        let expected = [
            no_result("$-plain"),
            r#"{"type":"TOOL_CALL_END","toolCallId":"$-open","subagentRunId":"$-sub"}"#.into(),
            // Whose the call is, its result is as well.
            no_result("$-open").replace(r#""tool"}"#, r#""tool","subagentRunId":"$-sub"}"#),
            no_result("$-last").replace("\"$-last-result\"", "\"$-last-result-2\""),
            r#"{"type":"TEXT_MESSAGE_END","messageId":"$-text"}"#.into(),
            r#"{"type":"STEP_FINISHED","stepName":"plan"}"#.into(),
        ];
        let expected = expected.map(|text| text.replace('$', &at.to_string()));
        let [before @ .., subagent, end] = &texts[..] else { panic!("{texts:?}") };
        assert_eq!(before, expected, "{how}");
        assert!(subagent.starts_with(r#"{"type":"SUBAGENT_ERROR""#), "{subagent}");
        match &last {
            Some(last) => assert_eq!(end, last),
            None => assert!(end.contains("LEASE_LAPSED"), "{end}"),
        }
        // What a subagent left that is gone, or suspended, is not for this run to answer.
        let waiting = journal.facts(&key("t")).await.unwrap().pending_tool_calls;
        assert_eq!(waiting, [&*format!("{at}-left")]);
    }
}

/// C-54, C-55: what a run that finished in order leaves to its front end stays with it, whatever becomes
/// of the runs that follow.
pub async fn calls_of_earlier_runs_stay_open(journal: Arc<dyn Journal>, clock: ManualClock) {
    let begun = begin(&*journal, "t", "r1").await;
    let calls = r#"{"type":"TOOL_CALL_START","toolCallId":"pick","toolCallName":"pick"}
        {"type":"TOOL_CALL_END","toolCallId":"pick"}"#;
    let mut events = vec![started("t", "r1")];
    events.extend(read("", calls));
    journal.append(&begun.lease, events).await.unwrap();
    journal.finish(&begun.lease, vec![finished("t", "r1")]).await.unwrap();
    begin(&*journal, "t", "r2").await;
    clock.advance(Duration::from_secs(30));
    journal.recover().await.unwrap();
    let begun = begin(&*journal, "t", "r3").await;
    let cancelled = RunFinished::new("t", "r3").outcome(CancelledOutcome::new());
    journal.finish(&begun.lease, vec![cancelled.into()]).await.unwrap();
    let entries = log(&*journal, &key("t")).await;
    verify_log(&entries);
    let after = ["RUN_STARTED", "RUN_ERROR", "RUN_STARTED", "RUN_FINISHED"];
    assert_eq!(types(&entries)[4..], after);
    assert_eq!(journal.facts(&key("t")).await.unwrap().pending_tool_calls, ["pick"]);
}

/// C-89: a run that fails leaves the call of an open interrupt to the interrupt's answer, also where it
/// had taken the call up again; one that is cancelled closes the interrupt, and answers the call.
pub async fn a_call_that_an_interrupt_is_about_is_answered_with_it(
    journal: Arc<dyn Journal>,
    _: ManualClock,
) {
    let begun = begin(&*journal, "t", "r1").await;
    let call = r#"{"type":"TOOL_CALL_START","toolCallId":"send","toolCallName":"send"}
        {"type":"TOOL_CALL_END","toolCallId":"send"}"#;
    let mut events = vec![started("t", "r1")];
    events.extend(read("", call));
    journal.append(&begun.lease, events).await.unwrap();
    let interrupt = Interrupt::new("i", "tool_call").tool_call_id("send");
    let asks = RunFinished::new("t", "r1").outcome(InterruptOutcome::new(interrupt.clone()));
    journal.finish(&begun.lease, vec![asks.into()]).await.unwrap();

    let begun = begin(&*journal, "t", "r2").await;
    let mut events = vec![started("t", "r2")];
    events.extend(read("", call));
    journal.append(&begun.lease, events).await.unwrap();
    journal.finish(&begun.lease, vec![RunError::new("no").into()]).await.unwrap();
    let entries = log(&*journal, &key("t")).await;
    assert!(!types(&entries).contains(&"TOOL_CALL_RESULT".to_owned()));
    assert_eq!(journal.facts(&key("t")).await.unwrap().open_interrupts, [interrupt]);

    let begun = begin(&*journal, "t", "r3").await;
    journal.append(&begun.lease, vec![started("t", "r3")]).await.unwrap();
    let cancelled = RunFinished::new("t", "r3").outcome(CancelledOutcome::new());
    journal.finish(&begun.lease, vec![cancelled.into()]).await.unwrap();
    let entries = log(&*journal, &key("t")).await;
    verify_log(&entries);
    let answer = entries[entries.len() - 2].text();
    assert_eq!(answer, result("send", "stopped", "stop_requested", "was stopped"));
    assert_eq!(journal.facts(&key("t")).await.unwrap(), Default::default());
    let ids: Vec<_> = journal.snapshot(&key("t")).await.unwrap().messages;
    let ids: Vec<_> = ids.iter().filter_map(Message::id).map(|id| id.to_string()).collect();
    assert_eq!(ids, ["r1-user", "send", "send-result", "r2-user", "r3-user"]);
}

/// Calls of every kind: answered, by an event and by a snapshot, open, of a subagent that is there, of
/// one that is gone, whose result's id is taken, and one that a snapshot has dropped.
const BROKEN_OFF: &str = r#"
    {"type":"TOOL_CALL_START","toolCallId":"$-dropped","toolCallName":"f"}
    {"type":"TOOL_CALL_END","toolCallId":"$-dropped"}
    {"type":"TOOL_CALL_START","toolCallId":"$-told","toolCallName":"f","parentMessageId":"$-holder"}
    {"type":"TOOL_CALL_END","toolCallId":"$-told"}
    {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"$-holder","role":"assistant","toolCalls":[{"id":"$-told","type":"function","function":{"name":"f","arguments":""}}]},{"id":"$-tells","role":"tool","toolCallId":"$-told","content":"1"}]}
    {"type":"TOOL_CALL_START","toolCallId":"$-plain","toolCallName":"f"}
    {"type":"TOOL_CALL_END","toolCallId":"$-plain"}
    {"type":"TOOL_CALL_START","toolCallId":"$-done","toolCallName":"f"}
    {"type":"TOOL_CALL_END","toolCallId":"$-done"}
    {"type":"TOOL_CALL_RESULT","messageId":"$-last-result","toolCallId":"$-done","content":"2"}
    {"type":"SUBAGENT_STARTED","subagentRunId":"$-gone","name":"s"}
    {"type":"TOOL_CALL_START","toolCallId":"$-left","toolCallName":"f","subagentRunId":"$-gone"}
    {"type":"TOOL_CALL_END","toolCallId":"$-left","subagentRunId":"$-gone"}
    {"type":"SUBAGENT_FINISHED","subagentRunId":"$-gone","outcome":{"type":"suspended"}}
    {"type":"SUBAGENT_STARTED","subagentRunId":"$-sub","name":"s"}
    {"type":"STEP_STARTED","stepName":"plan"}
    {"type":"TOOL_CALL_START","toolCallId":"$-open","toolCallName":"f","subagentRunId":"$-sub"}
    {"type":"TOOL_CALL_ARGS","toolCallId":"$-open","delta":"{\"half","subagentRunId":"$-sub"}
    {"type":"TEXT_MESSAGE_START","messageId":"$-text","role":"assistant"}
    {"type":"TOOL_CALL_START","toolCallId":"$-last","toolCallName":"f","parentMessageId":"$-text"}
    {"type":"TOOL_CALL_END","toolCallId":"$-last"}
"#;

fn read(run: &str, text: &str) -> Vec<Event> {
    text.trim().lines().map(|line| read_event(&line.trim().replace('$', run))).collect()
}

fn read_event(text: &str) -> Event {
    Event::from_json_exact(text).expect("an event")
}

fn result(call: &str, status: &str, reason: &str, what: &str) -> String {
    let content = format!(
        r#"{{\"status\":\"{status}\",\"reason\":\"{reason}\",\"message\":\"The run {what} before the call had a result.\"}}"#
    );
    format!(
        r#"{{"type":"TOOL_CALL_RESULT","messageId":"{call}-result","toolCallId":"{call}","content":"{content}","role":"tool"}}"#
    )
}
