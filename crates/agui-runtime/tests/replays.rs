//! What a page sees that is loaded with a thread.

mod common;

use std::sync::Arc;
use std::time::Duration;

use agui_agent::{AgentResult, Run};
use agui_journal::ReadLimit;
use agui_runtime::Agents;
use agui_stream::Conversation;
use agui_stream::fold::Applied;
use agui_types::{Event, FromJson};
use common::*;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What a client holds after these events, from nothing.
fn folded(answer: &Answer) -> Conversation {
    let mut conversation =
        Conversation::new(Vec::new(), agui_types::json::Value::parse("{}").unwrap());
    let mut applied = Applied::default();
    for (_, event) in answer.events() {
        let event = Event::from_json_exact(&event.to_string()).unwrap();
        conversation.apply(&event, &mut applied);
    }
    conversation
}

/// checklist 49, 52; deviate 8.4-state
#[tokio::test]
async fn a_replay_ends_in_the_state_that_was_seen() {
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/$run", "value": true}]},
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/not/there"}]},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/last", "value": "$run"}]},
        {"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"},
    ])));
    // What the front end brings is part of it.
    let mut first = input("t", "r1", &[("m1", "Hello")]);
    first["state"] = json!({"mine": 1});
    let live = run(&fixture, "default", first).await;
    assert_eq!(live.types().last().unwrap(), "RUN_FINISHED", "{}", live.body);
    let mut second = input("t", "r2", &[]);
    second["state"] = json!({"mine": 1, "r1": true, "last": "r1"});
    run(&fixture, "default", second).await;

    let replayed = connect(&fixture, "t").await;
    let state = json!({"mine": 1, "r1": true, "r2": true, "last": "r2"});
    let shown = serde_json::to_value(folded(&replayed).state()).unwrap();
    assert_eq!(shown, state, "{}", replayed.body);
    let inspected = get(&fixture, "/threads/t/state").await.json();
    assert_eq!(inspected["state"], state);
}

/// checklist 49, 51; drift replay, tool-calls
#[tokio::test]
async fn runs_replay_in_order_with_their_own_ids() {
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "TOOL_CALL_START", "toolCallId": "one-$run", "toolCallName": "pick"},
        {"type": "TOOL_CALL_END", "toolCallId": "one-$run"},
        {"type": "TOOL_CALL_START", "toolCallId": "two-$run", "toolCallName": "pick"},
        {"type": "TOOL_CALL_END", "toolCallId": "two-$run"},
        {"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"},
    ])));
    let mut seen = Vec::new();
    for (number, message) in [("r1", "m1"), ("r2", "m2"), ("r1", "m3")] {
        let body = input("t", number, &[(message, "Hello")]);
        seen.extend(run(&fixture, "default", body).await.events());
    }
    let replayed = connect(&fixture, "t").await.events();
    assert_eq!(replayed, seen);
    let runs = |name: &str| -> Vec<Value> {
        let of = replayed.iter().filter(|(_, event)| event["type"] == name);
        of.map(|(_, event)| event["runId"].clone()).collect()
    };
    assert_eq!(runs("RUN_STARTED"), ["r1", "r2", "r1"]);
    assert_eq!(runs("RUN_FINISHED"), ["r1", "r2", "r1"]);
    let calls: Vec<&Value> = replayed
        .iter()
        .filter(|(_, event)| event["type"] == "TOOL_CALL_START")
        .map(|(_, event)| &event["toolCallId"])
        .collect();
    assert_eq!(calls, ["one-r1", "two-r1", "one-r2", "two-r2", "one-r1", "two-r1"]);
    let restored: Vec<&Value> = replayed
        .iter()
        .filter(|(_, event)| event["type"] == "RUN_STARTED")
        .map(|(_, event)| &event["input"]["messages"][0]["id"])
        .collect();
    assert_eq!(restored, ["m1", "m2", "m3"]);
}

/// checklist 53
#[tokio::test]
async fn open_interrupts_are_replayed_and_answered() {
    let asking = |run: Run| async move {
        if run.answer("i-1").is_none() {
            let ask = agui_types::Interrupt::new("i-1", "approval");
            run.interrupt(ask)?;
        }
        AgentResult::Ok(())
    };
    let fixture = fixture_of_one(asking);
    run(&fixture, "default", input("t", "r1", &[("m1", "Send it")])).await;
    let outcome = |answer: &Answer| answer.events().pop().unwrap().1["outcome"].clone();
    let replayed = outcome(&connect(&fixture, "t").await);
    assert_eq!(replayed["type"], "interrupt");
    assert_eq!(replayed["interrupts"][0]["id"], "i-1");
    // The answer comes with the id of the run that asked.
    let mut resume = input("t", "r1", &[("m1", "Send it")]);
    resume["resume"] = json!([{"interruptId": "i-1", "status": "resolved", "payload": true}]);
    let resumed = run(&fixture, "default", resume).await;
    assert_eq!(outcome(&resumed), Value::Null);
    assert_eq!(outcome(&connect(&fixture, "t").await), Value::Null);
}

/// checklist 50, 54; deviate 8.6-live
#[tokio::test]
async fn live_events_follow_whatever_ids_they_use() {
    let go = Arc::new(Notify::new());
    let waits = Arc::clone(&go);
    let agent = move |run: Run| {
        let go = Arc::clone(&waits);
        async move {
            let activity = |count: usize| {
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "plan", "activityType": "plan",
                       "content": {"count": count}, "replace": true})
            };
            let event = |count| Event::from_json_exact(&activity(count).to_string()).unwrap();
            run.emit(event(1)).await?;
            if run.input().run_id.as_str() == "r2" {
                go.notified().await;
            }
            run.emit(event(2)).await?;
            AgentResult::Ok(())
        }
    };
    let fixture = fixture_of_one(agent);
    run(&fixture, "default", input("t", "r1", &[])).await;
    let path = "/agent/default/run";
    let running = open(&fixture, request("POST", path, input("t", "r2", &[]))).await;
    let (_, running) = read_until(running, "ACTIVITY_SNAPSHOT").await;
    let path = "/agent/default/connect";
    let viewer = open(&fixture, request("POST", path, input("t", "x", &[]))).await;
    let (before, viewer) = read_until(viewer, "r2").await;
    go.notify_one();
    let mut answer = read(viewer).await;
    answer.body.insert_str(0, &before);
    assert_eq!(answer.types().iter().filter(|it| *it == "ACTIVITY_SNAPSHOT").count(), 4);
    assert_eq!(answer.types().iter().filter(|it| *it == "RUN_FINISHED").count(), 2);
    drop(running);
}

/// deviate 8.4-order
#[tokio::test]
async fn a_messages_snapshot_stays_where_it_was() {
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "One"},
        {"type": "TEXT_MESSAGE_END", "messageId": "a"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [
            {"id": "a", "role": "assistant", "content": "One"},
        ]},
        {"type": "TEXT_MESSAGE_START", "messageId": "b", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "b", "delta": "Two"},
        {"type": "TEXT_MESSAGE_END", "messageId": "b"},
        {"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"},
    ])));
    let live = run(&fixture, "default", input("t", "r", &[])).await;
    let shown = folded(&live).messages().to_vec();
    assert_eq!(shown.len(), 2);
    assert_eq!(folded(&connect(&fixture, "t").await).messages().to_vec(), shown);
    // Also where the log was shortened.
    fixture.journal.compact(std::time::Duration::ZERO).await.unwrap();
    let compacted = connect(&fixture, "t").await;
    assert_eq!(folded(&compacted).messages().to_vec(), shown, "{}", compacted.body);
}

/// checklist 55
#[tokio::test]
async fn viewers_come_many_at_a_time_and_leave_at_once() {
    let fixture = fixture();
    let path = "/agent/waiting/run";
    let running = open(&fixture, request("POST", path, input("t", "r", &[("m1", "Go")]))).await;
    let (_, running) = read_until(running, "One").await;
    let connect = || request("POST", "/agent/waiting/connect", input("t", "x", &[]));
    // Some leave before they read, some in the middle.
    for _ in 0..20 {
        drop(open(&fixture, connect()).await);
        let (_, left) = read_until(open(&fixture, connect()).await, "RUN_STARTED").await;
        drop(left);
    }
    let mut viewers = Vec::new();
    for _ in 0..20 {
        viewers.push(open(&fixture, connect()).await);
    }
    drop(running);
    fixture.go.notify_one();
    let mut seen = Vec::new();
    for viewer in viewers {
        seen.push(read(viewer).await.events());
    }
    assert!(seen.iter().all(|events| events == &seen[0]));
    assert_eq!(seen[0].last().unwrap().1["type"], "RUN_FINISHED");
}

/// checklist 56; drift short-history
#[tokio::test]
async fn what_else_a_connect_sends_changes_nothing() {
    let fixture = fixture();
    let mut body = input("t", "r1", &[("m1", "Hello")]);
    body["state"] = json!({"kept": true});
    run(&fixture, "default", body).await;
    let before = (
        get(&fixture, "/threads/t/events").await.body,
        get(&fixture, "/threads/t/state").await.body,
        get(&fixture, "/threads/t/messages").await.body,
    );
    let mut body = input("t", "r9", &[("m9", "not said")]);
    body["state"] = json!({"kept": false});
    body["tools"] = json!([{"name": "pick", "description": "", "parameters": {}}]);
    body["context"] = json!([{"description": "a", "value": "b"}]);
    body["forwardedProps"] = json!({"x": 1});
    let path = "/agent/default/connect";
    let first = ask(&fixture, request("POST", path, body)).await;
    let after = (
        get(&fixture, "/threads/t/events").await.body,
        get(&fixture, "/threads/t/state").await.body,
        get(&fixture, "/threads/t/messages").await.body,
    );
    assert_eq!(before, after);
    assert_eq!(connect(&fixture, "t").await.events(), first.events());

    // A run that is sent with less than there is takes nothing away.
    run(&fixture, "default", input("t", "r2", &[("m2", "More")])).await;
    let messages = get(&fixture, "/threads/t/messages").await.json();
    let ids: Vec<&Value> =
        messages["messages"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(ids.len(), 4, "{messages}");
    assert_eq!((ids[0], ids[2]), (&json!("m1"), &json!("m2")));
}

/// checklist 49; deviate 2.1
#[tokio::test]
async fn a_thread_may_be_called_like_a_route() {
    let fixture = fixture();
    for thread in ["info", "transcribe", "clear", "subscribe", "cpk-debug-events", "a/b", "ä ö%"]
    {
        run(&fixture, "default", input(thread, "r", &[("m1", "Hello")])).await;
        assert_eq!(connect(&fixture, thread).await.types().last().unwrap(), "RUN_FINISHED");
        let encoded: String = thread.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let messages = get(&fixture, &format!("/threads/{encoded}/messages")).await.json();
        assert_eq!(messages["messages"][0]["id"], "m1", "{thread}");
        let stop = format!("/agent/default/stop/{encoded}");
        let answer = ask(&fixture, request("POST", &stop, Value::Null)).await;
        assert_eq!(
            (answer.status, answer.json()["stopped"].clone()),
            (StatusCode::OK, json!(false))
        );
    }
}

/// A thread's events are written a page of the log at a time: one frame holds no more than that, and
/// all of them together are the list.
#[tokio::test]
async fn the_events_of_a_long_thread_come_in_parts() {
    let deltas = 3 * ReadLimit::default().events;
    let mut events = vec![
        json!({"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
    ];
    events.extend((0..deltas).map(
        |at| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": at.to_string()}),
    ));
    events.push(json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}));
    events.push(json!({"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"}));
    let sent = events.len();
    let fixture = fixture_of_one(Scripted::new(json!(events)));
    run(&fixture, "default", input("t", "r", &[])).await;

    let mut response = open(&fixture, request("GET", "/threads/t/events", Value::Null)).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let (mut text, mut frames) = (String::new(), 0);
    while let Some(frame) = response.body_mut().frame().await {
        let frame = frame.unwrap().into_data().unwrap();
        assert!(frame.len() <= 2 * ReadLimit::default().bytes, "{}", frame.len());
        text.push_str(std::str::from_utf8(&frame).unwrap());
        frames += 1;
    }
    let listed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(listed["events"].as_array().unwrap().len(), sent);
    assert!(frames > 4, "{frames}");
}

/// C-41, P-27, P-28: an agent that goes on with a message that is there appends to it, whoever said it, as
/// every front end does with the same events; its own input changes no message that is there. What was
/// said stays in the log as it was sent, also when the run was compacted.
#[tokio::test]
async fn what_was_said_stays_in_the_log_whatever_an_agent_makes_of_it() {
    for (journal, _folder) in journals().await {
        let mut agents = Agents::new();
        let say = |id: &str, text: &str| {
            json!([
                {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text},
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "!"},
                {"type": "TEXT_MESSAGE_END", "messageId": id},
            ])
        };
        let run_of = |started: Value, said: Value| {
            let mut events = vec![started];
            events.extend(said.as_array().unwrap().clone());
            events.push(json!({"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"}));
            Scripted::new(events.into())
        };
        let started = json!({"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"});
        agents.add("appending", run_of(started.clone(), say("m1", ", he said"))).unwrap();
        let mut echoing = started;
        echoing["input"] = json!({
            "threadId": "$thread", "runId": "$run",
            "messages": [
                {"id": "m1", "role": "user", "content": "Never said"},
                {"id": "new", "role": "user", "content": "New"},
            ],
        });
        agents.add("echoing", run_of(echoing, say("a", "Yes"))).unwrap();
        let fixture = fixture_on(agents, journal, |builder| builder);
        run(&fixture, "appending", input("t", "r1", &[("m1", "Hello")])).await;
        run(&fixture, "echoing", input("t", "r2", &[("m1", "Hello")])).await;
        for compacted in [false, true] {
            if compacted {
                let done = fixture.journal.compact(Duration::ZERO).await.unwrap();
                assert_eq!(done.runs, 2);
            }
            let rows = get(&fixture, "/threads/t/messages").await.json();
            let expected = json!([
                {"id": "m1", "role": "user", "content": "Hello, he said!"},
                {"id": "new", "role": "user", "content": "New"},
                {"id": "a", "role": "assistant", "content": "Yes!"},
            ]);
            assert_eq!(rows["messages"], expected);
            let entries = log(&fixture.journal, "t").await;
            let first: Value = serde_json::from_str(entries[0].text()).unwrap();
            assert_eq!(first["input"]["messages"][0]["content"], "Hello");
        }
    }
}
