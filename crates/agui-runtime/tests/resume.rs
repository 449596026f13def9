//! Viewers that are cut off and come back: nothing twice, nothing missing, wherever it was.

mod common;
#[path = "common/feed.rs"]
mod feed;

use std::sync::Arc;
use std::time::Duration;

use agui_journal::{Journal, Tenant, ThreadKey};
use agui_runtime::Agents;
use agui_stream::fold::Applied;
use agui_stream::{Conversation, RunState, Verifier};
use agui_types::json::Value as Tree;
use agui_types::{Event, FromJson, ToJson};
use common::*;
use feed::{FAILURE, Feed, INTERRUPT, SUCCESS, events, everything};
use http::Request;
use http_body_util::Full;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A runtime whose only agent is fed by the test.
fn fed(journal: Arc<dyn Journal>) -> (Fixture, Feed) {
    let feed = Feed::default();
    let mut agents = Agents::new();
    agents.add("default", feed.clone()).unwrap();
    (fixture_on(agents, journal, |builder| builder), feed)
}

/// What somebody asks for who understands today's protocol.
fn asking(path: &str, run: &str) -> Request<Full<bytes::Bytes>> {
    let mut body = input("t", run, &[(&format!("{run}-user"), "Go")]);
    body["protocolVersion"] = json!("1.0");
    request("POST", &format!("/agent/default/{path}"), body)
}

fn connecting(place: Option<&str>) -> Request<Full<bytes::Bytes>> {
    let mut request = asking("connect", "asked");
    if let Some(place) = place {
        request.headers_mut().insert("last-event-id", place.parse().unwrap());
    }
    request
}

/// The frames of an answer, each with its place.
fn frames(body: &str) -> Vec<(Option<&str>, &str)> {
    let frames = body.split_inclusive("\n\n").filter(|frame| frame.contains("data: "));
    frames.map(|frame| (frame.lines().find_map(|line| line.strip_prefix("id: ")), frame)).collect()
}

fn event(frame: &str) -> Event {
    let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    Event::from_json_exact(data).unwrap()
}

/// Folds an answer that a strict verifier accepts by itself: messages, state, open interrupts, pending
/// calls.
fn folded(body: &str) -> (Value, Value, Value, Vec<String>) {
    let mut verifier = Verifier::new();
    let mut conversation = Conversation::new(Vec::new(), Tree::Object(Default::default()));
    let mut applied = Applied::default();
    for (_, frame) in frames(body) {
        let event = event(frame);
        verifier.push(&event).unwrap_or_else(|fault| panic!("{fault}\n{body}"));
        conversation.apply(&event, &mut applied);
    }
    if !matches!(verifier.run(), RunState::NotStarted) {
        verifier.finish().unwrap_or_else(|fault| panic!("{fault}\n{body}"));
    }
    let parsed = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let messages = conversation.messages().to_vec();
    let messages: Vec<Value> = messages.iter().map(|it| parsed(&it.to_json())).collect();
    let open = serde_json::to_value(conversation.open_interrupts()).unwrap();
    let pending = conversation.pending_tool_calls().map(ToString::to_string).collect();
    (messages.into(), parsed(conversation.state().to_json().as_str()), open, pending)
}

fn is_restated(body: &str) -> bool {
    body.starts_with(": the position is unknown")
}

/// Every index of a thread of several runs, one that failed in the middle, one that asks at the end:
/// by header and by body, in both dialects, what follows is byte for byte what a viewer sees that was
/// never cut off.
#[tokio::test]
async fn the_rest_is_the_rest_at_every_index() {
    for (journal, _folder) in journals().await {
        for last in [INTERRUPT, FAILURE, SUCCESS] {
            let (fixture, feed) = fed(Arc::clone(&journal));
            for (run, end) in [("r1", SUCCESS), ("r2", FAILURE), ("r3", last)] {
                feed.say(everything(run, end));
                ask(&fixture, asking("run", run)).await;
            }
            log(&fixture.journal, "t").await;
            for early in [false, true] {
                let connecting = |place: Option<&str>, in_body: bool| {
                    let mut body = input("t", "asked", &[]);
                    if !early {
                        body["protocolVersion"] = json!("1.0");
                    }
                    if in_body {
                        body["lastSeenEventId"] = json!(place);
                    }
                    let mut request = request("POST", "/agent/default/connect", body);
                    if let (Some(place), false) = (place, in_body) {
                        request.headers_mut().insert("last-event-id", place.parse().unwrap());
                    }
                    request
                };
                let whole = ask(&fixture, connecting(None, false)).await.body;
                let expected = folded(&whole);
                assert_eq!(expected.2.as_array().unwrap().len(), usize::from(last == INTERRUPT));
                assert_eq!(expected.0.as_array().unwrap().len(), 3 * 6);
                assert_eq!(ask(&fixture, connecting(None, true)).await.body, whole);
                let frames = frames(&whole);
                assert!(frames.len() > 80);
                for (at, (place, _)) in frames.iter().enumerate() {
                    let rest: String = frames[at + 1..].iter().map(|(_, frame)| *frame).collect();
                    for in_body in [false, true] {
                        let answer = ask(&fixture, connecting(*place, in_body)).await;
                        assert_eq!(answer.body, rest, "behind {place:?}");
                    }
                }
            }
            fixture.journal.delete(&ThreadKey::new(Tenant::default(), "t")).await.unwrap();
        }
    }
}

/// While a run goes on, at every index of it: who comes back reads on, who comes sees all from the
/// beginning, and whose place is unknown is shown the thread, what is open opened again, and the rest.
/// All of them see the same conversation, and the end of the run once.
#[tokio::test]
async fn a_run_is_joined_at_every_index() {
    for (journal, _folder) in journals().await {
        let (fixture, feed) = fed(journal);
        feed.say(everything("r1", FAILURE));
        ask(&fixture, asking("run", "r1")).await;
        let sender = feed.next();
        let first = open(&fixture, asking("run", "r2")).await;
        let mut joined = Vec::new();
        let mut watching = open(&fixture, connecting(None)).await;
        let mut seen = String::new();
        let script = everything("r2", INTERRUPT);
        let (last, script) = script.split_last().unwrap();
        // Before the run has said anything, too.
        joined.push((None, open(&fixture, connecting(Some("garbage"))).await));
        for event in script {
            sender.send(event.clone()).unwrap();
            let (more, response) = read_until(watching, &event_text(event)).await;
            seen.push_str(&more);
            watching = response;
            let place = frames(&seen).last().unwrap().0.unwrap().to_owned();
            joined.push((Some(place.clone()), open(&fixture, connecting(Some(&place))).await));
            joined.push((None, open(&fixture, connecting(Some("garbage"))).await));
            joined.push((None, open(&fixture, connecting(None)).await));
        }
        sender.send(last.clone()).unwrap();
        drop(sender);
        seen.push_str(&read(watching).await.body);
        let expected = folded(&seen);
        assert_eq!(expected.2[0]["id"], "r2-ask");
        // Two see the same bytes, whoever started what they see.
        assert!(seen.ends_with(&read(first).await.body));
        for (place, response) in joined {
            let body = read(response).await.body;
            assert_eq!(body.matches("RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r2").count(), 1);
            match place {
                Some(place) => {
                    let frames = frames(&seen);
                    let at = frames.iter().position(|(it, _)| *it == Some(&place)).unwrap();
                    let rest: String = frames[at + 1..].iter().map(|(_, frame)| *frame).collect();
                    assert_eq!(body, rest);
                }
                None if is_restated(&body) => {
                    assert_eq!(folded(&body), expected, "{body}");
                }
                None => assert_eq!(body, seen),
            }
        }
    }
}

/// As it stands in a frame, up to where the log adds something.
fn event_text(event: &Event) -> String {
    match event {
        Event::RunStarted(started) => format!("\"runId\":\"{}\"", started.run_id),
        event => event.to_json(),
    }
}

/// P-14: a viewer whose place the log does not have is shown the thread restated, once, with a warning;
/// cut off inside of that, it has no place yet.
#[tokio::test]
async fn an_unknown_place_gets_the_thread_as_it_is() {
    for (journal, _folder) in journals().await {
        let (fixture, feed) = fed(journal);
        for (run, end) in [("r1", SUCCESS), ("r2", INTERRUPT)] {
            feed.say(everything(run, end));
            ask(&fixture, asking("run", run)).await;
        }
        let whole = ask(&fixture, connecting(None)).await.body;
        let expected = folded(&whole);
        let places: Vec<&str> = frames(&whole).iter().map(|(place, _)| place.unwrap()).collect();
        let mark = &places[0][1..];
        let future = format!("{}{mark}", places.len() + 1);
        let elsewhere = "1-00000000";
        fixture.journal.compact(Duration::ZERO).await.unwrap();
        let mut lost = 0;
        for place in [&future, elsewhere, "x", "-1", "1.5", "99999999999999999999"] {
            let body = ask(&fixture, connecting(Some(place))).await.body;
            assert!(is_restated(&body), "{place}: {body}");
        }
        for (at, place) in places.iter().enumerate() {
            let body = ask(&fixture, connecting(Some(place))).await.body;
            if !is_restated(&body) {
                let ends = [0, places.len() / 2 - 1, places.len() / 2, places.len() - 1];
                assert!(ends.contains(&at), "{place} is inside of a compacted run");
                continue;
            }
            lost += 1;
            assert_eq!(folded(&body), expected);
            let frames = frames(&body);
            let types: Vec<String> =
                frames.iter().map(|it| event(it.1).type_name().to_owned()).collect();
            let restated = ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"];
            assert_eq!(types, restated);
            let (last, before) = frames.split_last().unwrap();
            assert!(before.iter().all(|(place, _)| place.is_none()));
            assert_eq!(ask(&fixture, connecting(last.0)).await.body, "");
        }
        assert!(lost > 50, "{lost}");

        // Nothing is left of a thread that was removed; who has never been there sees nothing.
        fixture.journal.delete(&ThreadKey::new(Tenant::default(), "t")).await.unwrap();
        let body = ask(&fixture, connecting(Some(places[3]))).await.body;
        assert!(is_restated(&body));
        assert_eq!(folded(&body), (json!([]), json!({}), json!([]), Vec::new()));
        assert_eq!(ask(&fixture, connecting(None)).await.body, "");
    }
}

/// A viewer that takes nothing while much is said costs one page, misses nothing, and is told the end
/// once. One whose place is gone meanwhile is cut off without an end, and may come back.
#[tokio::test]
async fn a_slow_viewer_is_never_told_a_false_end() {
    for (journal, _folder) in journals().await {
        let (fixture, feed) = fed(journal);
        let sender = feed.next();
        let run = open(&fixture, asking("run", "r")).await;
        for event in events(
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
               {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
        ) {
            sender.send(event).unwrap();
        }
        let (mut seen, run) = read_until(run, "TEXT_MESSAGE_START").await;
        let stalled = open(&fixture, connecting(None)).await;
        let catching_up = open(&fixture, connecting(None)).await;
        let (before, catching_up) = read_until(catching_up, "RUN_STARTED").await;
        const DELTAS: usize = 5_000;
        for number in 0..DELTAS {
            let delta = format!("{number} ");
            sender.send(agui_types::event::TextMessageContent::new("m", delta).into()).unwrap();
        }
        for event in events(
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}
               {"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        ) {
            sender.send(event).unwrap();
        }
        let late = read(run).await.body;
        seen.push_str(&late);
        assert_eq!(frames(&seen).len(), DELTAS + 4);
        // It ends while this one catches up.
        assert_eq!(before + &read(catching_up).await.body, seen);

        let (first, stalled) = read_until(stalled, "TEXT_MESSAGE_START").await;
        fixture.journal.compact(Duration::ZERO).await.unwrap();
        let rest = read(stalled).await.body;
        assert!(!rest.contains("RUN_FINISHED") && !rest.contains("RUN_ERROR"), "no false end");
        let cut = first + &rest;
        assert!(seen.starts_with(&cut) && cut.len() < seen.len());
        let place = frames(&cut).last().unwrap().0;
        let back = ask(&fixture, connecting(place)).await.body;
        assert!(is_restated(&back));
        assert_eq!(folded(&back), folded(&seen));
    }
}

/// Something an agent may do, sound or not where it comes; what is not sound is left out.
type Move = (u8, u8);

fn candidate(run: &str, (kind, item): Move) -> Event {
    let (id, tag) = (item % 3, if item >= 3 { r#","subagentRunId":"$-s""# } else { "" });
    let text = match kind % 16 {
        0 => format!(
            r#"{{"type":"TEXT_MESSAGE_START","messageId":"$-m{id}","role":"assistant"{tag}}}"#
        ),
        1..4 => format!(
            r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"$-m{id}","delta":"word "{tag}}}"#
        ),
        4 => format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"$-m{id}"{tag}}}"#),
        5 => format!(
            r#"{{"type":"TOOL_CALL_START","toolCallId":"$-c{id}","toolCallName":"look"{tag}}}"#
        ),
        6 => format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"$-c{id}","delta":"1"{tag}}}"#),
        7 => format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"$-c{id}"{tag}}}"#),
        8 => format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"$-r{id}","toolCallId":"$-c{id}","content":"ok"{tag}}}"#
        ),
        9 => format!(
            r#"{{"type":"REASONING_MESSAGE_START","messageId":"$-t{id}","role":"reasoning"{tag}}}"#
        ),
        10 => format!(
            r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"$-t{id}","delta":"hm"{tag}}}"#
        ),
        11 => format!(r#"{{"type":"REASONING_MESSAGE_END","messageId":"$-t{id}"{tag}}}"#),
        12 => format!(r#"{{"type":"STEP_STARTED","stepName":"s{id}"{tag}}}"#),
        13 => format!(
            r#"{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"/k{id}","value":{item}}}]{tag}}}"#
        ),
        14 => r#"{"type":"SUBAGENT_STARTED","subagentRunId":"$-s","name":"helper"}"#.into(),
        _ => format!(
            r#"{{"type":"ACTIVITY_SNAPSHOT","messageId":"$-a{id}","activityType":"plan","content":{{"n":{item}}}{tag}}}"#
        ),
    };
    Event::from_json_exact(&text.replace('$', run)).unwrap()
}

/// The sound ones of these, between a start and an end.
fn sound(run: &str, moves: &[Move], end: u8) -> Vec<Event> {
    let mut verifier = Verifier::new();
    let started = format!(r#"{{"type":"RUN_STARTED","threadId":"t","runId":"{run}"}}"#);
    let mut out = events(&started);
    verifier.push(&out[0]).unwrap();
    for event in moves.iter().map(|it| candidate(run, *it)) {
        if verifier.try_push(&event).is_ok() {
            out.push(event);
        }
    }
    if end % 3 != 1 {
        out.extend(verifier.closing_events());
    }
    let end = [SUCCESS, FAILURE, INTERRUPT][usize::from(end % 3)];
    out.extend(events(&end.replace('$', run)));
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// C-54, C-85: runs by chance, answers to interrupts by chance, cut by chance, compacted or not, in both journals: pieces that follow each other
    /// are the whole, pieces that restate it fold to the same, and every one is accepted by a strict
    /// verifier, as a continuation or by itself.
    #[test]
    fn pieces_are_the_whole(
        runs in prop::collection::vec((prop::collection::vec((any::<u8>(), 0..6_u8), 0..40), any::<u8>()), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        live_at in any::<prop::sample::Index>(),
        answered in any::<u8>(),
        compacted in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (journal, _folder) in journals().await {
                let (fixture, feed) = fed(journal);
                let (last, before) = runs.split_last().unwrap();
                for (at, (moves, end)) in before.iter().enumerate() {
                    let run = format!("r{at}");
                    feed.say(sound(&run, moves, *end));
                    ask(&fixture, asking("run", &run)).await;
                }
                if compacted {
                    fixture.journal.compact(Duration::ZERO).await.unwrap();
                }
                // The last one goes on while somebody joins it.
                let script = sound("last", &last.0, last.1);
                let at = live_at.index(script.len());
                let sender = feed.next();
                let mut asked = input("t", "last", &[("last-user", "Go")]);
                asked["protocolVersion"] = json!("1.0");
                let answers = (0..before.len()).filter(|at| answered >> at & 1 == 1);
                let answers = answers.map(|at| json!({"interruptId": format!("r{at}-ask"), "status": "resolved"}));
                asked["resume"] = answers.collect();
                let run = open(&fixture, request("POST", "/agent/default/run", asked)).await;
                script[..at].iter().for_each(|event| sender.send(event.clone()).unwrap());
                let run = match at {
                    0 => run,
                    _ => read_until(run, &event_text(&script[at - 1])).await.1,
                };
                let joins = open(&fixture, connecting(Some("garbage"))).await;
                script[at..].iter().for_each(|event| sender.send(event.clone()).unwrap());
                drop((sender, read(run).await));

                let whole = ask(&fixture, connecting(None)).await.body;
                let expected = folded(&whole);
                prop_assert_eq!(folded(&read(joins).await.body), expected.clone());
                let frames = frames(&whole);
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(frames.len())).collect();
                cuts.sort_unstable();
                for cut in cuts {
                    let body = ask(&fixture, connecting(frames[cut].0)).await.body;
                    if is_restated(&body) {
                        prop_assert!(compacted);
                        prop_assert_eq!(&folded(&body), &expected);
                    } else {
                        let rest: String = frames[cut + 1..].iter().map(|it| it.1).collect();
                        prop_assert_eq!(body, rest);
                    }
                }
                log(&fixture.journal, "t").await;
            }
            Ok(())
        })?;
    }
}
