//! How much there may be of everything, each at its edge.

mod common;

use std::sync::Arc;

use agui_agent::{AgentResult, Run};
use agui_journal::{Entry, Tenant, ThreadKey};
use agui_runtime::{Agents, BearerTokens, Principal, RuntimeBuilder, codes};
use agui_types::{Event, FromJson, ToJson};
use bytes::Bytes;
use common::*;
use http::{HeaderValue, Request, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use serde_json::{Value, json};

fn run_on(thread: &str) -> Request<http_body_util::Full<bytes::Bytes>> {
    request("POST", "/agent/waiting/run", input(thread, "r", &[]))
}

fn connect_to(thread: &str) -> Request<http_body_util::Full<bytes::Bytes>> {
    request("POST", "/agent/waiting/connect", input(thread, "x", &[]))
}

fn refused(answer: &Answer, status: StatusCode, code: &str) {
    assert_eq!(answer.status, status);
    assert_eq!(answer.json()["code"], code);
    assert!(answer.json()["message"].as_str().unwrap().contains("as many"));
}

#[tokio::test]
async fn so_many_runs_go_on_at_once() {
    let fixture = fixture_with(|builder| builder.most_runs(2));
    let _a = open(&fixture, run_on("a")).await;
    let b = open(&fixture, run_on("b")).await;
    let full = ask(&fixture, run_on("c")).await;
    refused(&full, StatusCode::SERVICE_UNAVAILABLE, codes::TOO_MANY_RUNS);
    // It has left no trace, and there is room again behind the answer to a stop.
    let thread = agui_journal::ThreadKey::new(Default::default(), "c");
    assert!(fixture.journal.thread(&thread).await.is_err());
    ask(&fixture, request("POST", "/agent/waiting/stop/b", Value::Null)).await;
    let c = open(&fixture, run_on("c")).await;
    assert_eq!(c.status(), StatusCode::OK);
    assert_eq!(read(b).await.types().last().unwrap(), "RUN_FINISHED");
}

#[tokio::test]
async fn a_tenant_has_its_share_of_the_runs() {
    let tokens = BearerTokens::new()
        .accept("one", Principal::of_tenant("a"))
        .accept("two", Principal::of_tenant("b"));
    let fixture = fixture_with(|it| it.authorize(tokens).most_runs_per_tenant(1));
    let of = |token: &'static str, thread: &str| {
        let mut request = run_on(thread);
        request.headers_mut().insert("authorization", HeaderValue::from_static(token));
        request
    };
    let first = open(&fixture, of("Bearer one", "t")).await;
    let full = ask(&fixture, of("Bearer one", "u")).await;
    refused(&full, StatusCode::TOO_MANY_REQUESTS, codes::TOO_MANY_RUNS);
    let other = open(&fixture, of("Bearer two", "t")).await;
    assert_eq!(other.status(), StatusCode::OK);
    let mut stop = request("POST", "/agent/waiting/stop/t", Value::Null);
    stop.headers_mut().insert("authorization", HeaderValue::from_static("Bearer one"));
    assert_eq!(ask(&fixture, stop).await.json()["stopped"], true);
    assert_eq!(read(first).await.types().last().unwrap(), "RUN_FINISHED");
    let next = open(&fixture, of("Bearer one", "u")).await;
    assert_eq!(next.status(), StatusCode::OK);
}

#[tokio::test]
async fn so_many_watch_at_once() {
    let fixture = fixture_with(|builder| builder.most_viewers(2));
    let run = open(&fixture, run_on("t")).await;
    let viewer = open(&fixture, connect_to("t")).await;
    let full = ask(&fixture, connect_to("t")).await;
    refused(&full, StatusCode::SERVICE_UNAVAILABLE, codes::TOO_MANY_VIEWERS);
    // One who may not watch does not begin a run either.
    let full = ask(&fixture, run_on("u")).await;
    refused(&full, StatusCode::SERVICE_UNAVAILABLE, codes::TOO_MANY_VIEWERS);
    drop(viewer);
    assert_eq!(open(&fixture, connect_to("t")).await.status(), StatusCode::OK);
    drop(run);
}

#[tokio::test]
async fn so_many_watch_one_thread() {
    let fixture = fixture_with(|builder| builder.most_viewers_per_thread(1));
    let _run = open(&fixture, run_on("t")).await;
    let viewer = open(&fixture, connect_to("t")).await;
    let full = ask(&fixture, connect_to("t")).await;
    refused(&full, StatusCode::TOO_MANY_REQUESTS, codes::TOO_MANY_VIEWERS);
    let _other = open(&fixture, run_on("u")).await;
    assert_eq!(open(&fixture, connect_to("u")).await.status(), StatusCode::OK);
    drop(viewer);
    assert_eq!(open(&fixture, connect_to("t")).await.status(), StatusCode::OK);
}

/// Says five words: 9 events.
async fn talker(run: Run) -> AgentResult {
    let mut text = run.open_text(agui_types::event::TextMessageStart::new("m")).await?;
    for _ in 0..5 {
        text.push("word ").await?;
    }
    text.end().await?;
    Ok(())
}

async fn limited(set: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> (Answer, Vec<Entry>) {
    let mut agents = Agents::new();
    agents.add("default", talker).unwrap();
    let fixture = fixture_of(agents, Arc::default(), set);
    let body = input("t", "r", &[("m1", "Go")]);
    let answer = ask(&fixture, request("POST", "/agent/default/run", body.clone())).await;
    let entries = log(&fixture.journal, "t").await;
    let next = ask(&fixture, request("POST", "/agent/default/run", body)).await;
    assert_eq!(next.status, StatusCode::OK, "the thread is free");
    (answer, entries)
}

#[tokio::test]
async fn a_run_is_only_so_large() {
    let (whole, entries) = limited(|it| it.most_run_events(9)).await;
    assert_eq!(whole.types().len(), 9);
    assert_eq!(whole.types().last().unwrap(), "RUN_FINISHED");
    // What the agent itself sends: the input in its start is the log's.
    let Ok(Event::RunStarted(mut started)) = Event::from_json_exact(entries[0].text()) else {
        panic!("no start");
    };
    started.input = None;
    let bytes: usize = entries[1..].iter().map(|entry| entry.json.len()).sum();
    let bytes = (bytes + Event::RunStarted(started).to_json().len()) as u64;

    let (cut, _) = limited(|it| it.most_run_events(8)).await;
    assert_eq!(cut.types()[7], "TEXT_MESSAGE_END");
    too_large(&cut, "more than 8 events");
    let (cut, _) = limited(|it| it.most_run_events(4)).await;
    let types = cut.types();
    let words = types.iter().filter(|it| *it == "TEXT_MESSAGE_CONTENT").count();
    assert_eq!((words, types[types.len() - 2].as_str()), (2, "TEXT_MESSAGE_END"));
    too_large(&cut, "more than 4 events");

    let (whole, _) = limited(|it| it.most_run_bytes(bytes)).await;
    assert_eq!(whole.types().last().unwrap(), "RUN_FINISHED");
    let (cut, _) = limited(|it| it.most_run_bytes(bytes - 1)).await;
    too_large(&cut, "bytes of events");
    let (cut, _) = limited(|it| it.most_run_bytes(0)).await;
    assert_eq!(cut.types(), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(cut.events()[0].1["input"]["messages"][0]["id"], "m1");
}

fn too_large(answer: &Answer, message: &str) {
    let (_, last) = answer.events().pop().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!(codes::RUN_TOO_LARGE)));
    assert!(last["message"].as_str().unwrap().contains(message), "{last}");
}

/// The messages of a thread are written a piece at a time, by both routes, and are the same text as if
/// they had been written at once; those of a small one are.
#[tokio::test]
async fn the_messages_of_a_thread_come_in_pieces() {
    let said: Vec<(String, String)> = (0..60)
        .map(|at| (format!("m{at}"), "é\"\n ".repeat(if at == 30 { 40_000 } else { 700 })))
        .collect();
    let said: Vec<(&str, &str)> = said.iter().map(|(id, text)| (&**id, &**text)).collect();
    for (journal, _folder) in journals().await {
        let fixture = fixture_on(agents(&Arc::default()), journal, |builder| builder);
        for (thread, said, pieces) in [("large", &said[..], 3..), ("small", &said[..3], 1..)] {
            run(&fixture, "default", input(thread, "r", said)).await;
            let key = ThreadKey::new(Tenant::default(), thread);
            let messages = fixture.journal.snapshot(&key).await.unwrap().messages;
            let answer = &messages[said.len()];
            let mut rows: Vec<String> = said
                .iter()
                .map(|(id, text)| {
                    let text = serde_json::to_string(text).unwrap();
                    format!(r#"{{"id":"{id}","role":"user","content":{text}}}"#)
                })
                .collect();
            let answer = serde_json::to_value(answer).unwrap();
            let (id, text) = (&answer["id"], &answer["content"]);
            rows.push(format!(r#"{{"id":{id},"role":"assistant","content":{text}}}"#));
            let expected = format!(r#"{{"messages":[{}]}}"#, rows.join(","));
            let path = format!("/threads/{thread}/messages");
            let params = json!({"path": path, "httpMethod": "GET"});
            for asked in [
                request("GET", &path, Value::Null),
                envelope("resource/request", params, Value::Null),
            ] {
                let answer = open(&fixture, asked).await;
                assert_eq!(answer.headers()["content-type"], "application/json");
                let whole = answer.body().size_hint().exact();
                assert_eq!(whole.is_some(), pieces.start == 1);
                let mut body = Box::pin(answer.into_body());
                let mut frames: Vec<Bytes> = Vec::new();
                while let Some(frame) = body.frame().await {
                    frames.push(frame.unwrap().into_data().unwrap());
                }
                assert!(frames.len() >= pieces.start, "{}", frames.len());
                let long = |frame: &&Bytes| frame.len() > 64 * 1024 + 2;
                assert_eq!(frames.iter().filter(long).count(), usize::from(thread == "large"));
                // Not shown where they differ: they are long.
                assert!(frames.concat() == expected.as_bytes(), "{thread}: another text");
            }
        }
        let unknown = get(&fixture, "/threads/nowhere/messages").await;
        assert_eq!(unknown.body, r#"{"messages":[]}"#);
    }
}
