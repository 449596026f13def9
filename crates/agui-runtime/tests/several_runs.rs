//! Agents whose streams hold more than the run that was asked for, and run ids that come twice.

mod common;
#[path = "common/feed.rs"]
mod feed;

use agui_journal::{EntryKind, Tenant, ThreadKey};
use agui_runtime::codes;
use common::*;
use feed::{Feed, events};
use serde_json::{Value, json};

fn fed() -> (Fixture, Feed) {
    let feed = Feed::default();
    (fixture_of_one(feed.clone()), feed)
}

async fn run(fixture: &Fixture, run: &str) -> Answer {
    let mut body = input("t", run, &[("m1", "Go")]);
    body["protocolVersion"] = json!("1.0");
    ask(fixture, request("POST", "/agent/default/run", body)).await
}

fn texts(answer: &Answer) -> Vec<String> {
    let events = answer.events().into_iter();
    events.filter_map(|(_, event)| event["delta"].as_str().map(str::to_owned)).collect()
}

/// P-7: replayed runs, under ids of their own, come before the requested one: what they restate and
/// what they stream again is in the requested run, which is begun and ended once.
#[tokio::test]
async fn replayed_runs_are_taken_into_the_requested_one() {
    let (fixture, feed) = fed();
    feed.say(events(
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"old1"}
           {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"a","role":"assistant","content":"Before"}]}
           {"type":"RUN_FINISHED","threadId":"t","runId":"old1","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}
           {"type":"RUN_STARTED","threadId":"t","runId":"old2"}
           {"type":"TEXT_MESSAGE_START","messageId":"b","role":"assistant"}
           {"type":"TEXT_MESSAGE_CONTENT","messageId":"b","delta":"It br"}
           {"type":"RUN_ERROR","message":"it broke"}
           {"type":"RUN_STARTED","threadId":"t","runId":"r1"}
           {"type":"TEXT_MESSAGE_START","messageId":"c","role":"assistant"}
           {"type":"TEXT_MESSAGE_CONTENT","messageId":"c","delta":"Now"}
           {"type":"TEXT_MESSAGE_END","messageId":"c"}
           {"type":"RUN_FINISHED","threadId":"t","runId":"r1","result":1}
           {"type":"RUN_STARTED","threadId":"t","runId":"never read"}"#,
    ));
    let answer = run(&fixture, "r1").await;
    let expected = [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(answer.types(), expected);
    assert_eq!(texts(&answer), ["It br", "Now"]);
    let last = answer.events().pop().unwrap().1;
    assert_eq!((&last["runId"], &last["result"]), (&json!("r1"), &json!(1)));
    let entries = log(&fixture.journal, "t").await;
    assert!(entries.iter().all(|entry| entry.run.as_str() == "r1"));
    assert_eq!(entries.iter().filter(|entry| entry.kind == EntryKind::Started).count(), 1);
    assert_eq!(entries.iter().filter(|entry| entry.kind.is_terminal()).count(), 1);
    let thread = fixture.journal.thread(&ThreadKey::new(Tenant::default(), "t")).await.unwrap();
    assert_eq!((thread.runs, thread.finished_runs, thread.open_interrupts), (1, 1, 0));
}

/// An agent that calls the requested run as it likes is understood, where nothing follows.
#[tokio::test]
async fn a_run_by_another_name_is_the_requested_one() {
    let (fixture, feed) = fed();
    let theirs = r#"{"type":"RUN_STARTED","threadId":"t","runId":"theirs"}
           {"type":"RUN_FINISHED","threadId":"t","runId":"theirs","result":2}"#;
    feed.say(events(theirs));
    let answer = run(&fixture, "r1").await;
    let last = answer.events().pop().unwrap().1;
    assert_eq!((&last["runId"], &last["result"]), (&json!("r1"), &json!(2)));
    assert_eq!(answer.events()[0].1["input"]["messages"][0]["id"], "m1");
    // The agent keeps its stream open: it has had its time to go on.
    let sender = feed.next();
    events(theirs).into_iter().for_each(|event| sender.send(event).unwrap());
    assert_eq!(run(&fixture, "r2").await.events().pop().unwrap().1["runId"], "r2");
    drop(sender);
}

/// What cannot be one run is refused in a sentence that names the rule, and calls that are left without
/// an answer get one (P-2, P-6, P-9).
#[tokio::test]
async fn what_is_no_order_is_refused_by_name() {
    for (text, rule) in [
        (r#"{"type":"RUN_STARTED","threadId":"t","runId":"other"}"#, "P-2"),
        (r#"{"type":"RUN_FINISHED","threadId":"t","runId":"other"}"#, "C-"),
        (
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}
               {"type":"RUN_FINISHED","threadId":"t","runId":"r1"}"#,
            "C-",
        ),
        (r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#, "C-"),
    ] {
        let (fixture, feed) = fed();
        let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r1"}
            {"type":"TOOL_CALL_START","toolCallId":"call","toolCallName":"look"}
            {"type":"TOOL_CALL_END","toolCallId":"call"}"#;
        feed.say(events(&format!("{start}\n{text}")));
        let answer = run(&fixture, "r1").await;
        let last = answer.events().pop().unwrap().1;
        assert_eq!(last["code"], codes::RULE_BROKEN, "{last}");
        let message = last["message"].as_str().unwrap();
        assert!(message.contains(rule), "{message}");
        assert!(answer.types().contains(&"TOOL_CALL_RESULT".to_owned()));
        log(&fixture.journal, "t").await;
    }
}

/// P-8: front ends use a run id twice, to answer an interrupt or because they do not know better. Both
/// runs are taken, and nothing in the log is unclear: each is one piece, from its start to its end,
/// under places of its own; who follows one sees that one, and a stop means the one that goes on.
#[tokio::test]
async fn a_run_id_that_comes_twice_names_two_runs() {
    let (fixture, feed) = fed();
    let asks = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"TEXT_MESSAGE_START","messageId":"one","role":"assistant"}
        {"type":"TEXT_MESSAGE_END","messageId":"one"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r1","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}"#;
    feed.say(events(asks));
    let first = run(&fixture, "r1").await;
    let sender = feed.next();
    let mut body = input("t", "r1", &[("m1", "Go")]);
    body["resume"] = json!([{"interruptId": "i", "status": "resolved"}]);
    let second = open(&fixture, request("POST", "/agent/default/run", body)).await;
    let start = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r1"}
        {"type":"TEXT_MESSAGE_START","messageId":"two","role":"assistant"}"#;
    events(start).into_iter().for_each(|event| sender.send(event).unwrap());
    let (seen, second) = read_until(second, "two").await;
    assert!(!seen.contains("one"), "who follows one run sees that one");
    // The first one is over: only the second can be meant.
    let stop = request("POST", "/agent/default/stop/t", json!({"runId": "r1"}));
    assert_eq!(ask(&fixture, stop).await.json()["stopped"], true);
    assert_eq!(read(second).await.types().last().unwrap(), "RUN_FINISHED");

    let entries = log(&fixture.journal, "t").await;
    let edges: Vec<(u64, EntryKind)> = entries
        .iter()
        .filter(|entry| entry.kind != EntryKind::Event)
        .map(|entry| (entry.position, entry.kind))
        .collect();
    use EntryKind::{Finished, Started};
    assert_eq!(edges, [(1, Started), (4, Finished), (5, Started), (8, Finished)]);
    let places: Vec<_> = first.events().into_iter().map(|(place, _)| place.unwrap()).collect();
    assert_eq!(places, [1, 2, 3, 4]);
    let key = ThreadKey::new(Tenant::default(), "t");
    assert_eq!(fixture.journal.thread(&key).await.unwrap().runs, 2);
    let replay = connect(&fixture, "t").await;
    let runs: Vec<Value> =
        replay.events().into_iter().filter_map(|(_, it)| it.get("runId").cloned()).collect();
    assert_eq!(runs, vec![json!("r1"); 4], "52: as they were asked for");
}
