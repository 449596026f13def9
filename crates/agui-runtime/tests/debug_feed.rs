//! The feed of every event, for developers.

mod common;

use std::sync::Arc;

use common::*;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};

/// The shown events in a text of frames.
fn shown(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// drift debug
#[tokio::test]
async fn the_feed_shows_each_event_of_a_run_with_where_it_came_from() {
    let fixture = fixture_with(|builder| builder.debug_events(true));
    let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let feed = open(&fixture, request("GET", "/cpk-debug-events", Value::Null)).await;
    assert_eq!(feed.status(), StatusCode::OK);
    assert_eq!(feed.headers()["content-type"], "text/event-stream");
    assert_eq!(feed.headers()["cache-control"], "no-cache");
    // At once, before anything happens.
    let (first, feed) = read_until(feed, "\n\n").await;
    assert!(first.starts_with(": ") && shown(&first).is_empty(), "{first}");

    // Suggestions and replays are not shown.
    let suggested = input("s", "s1", &[("m1", "Psst")]);
    ask(&fixture, request("POST", "/agent/default/suggest", suggested)).await;
    let live = run(&fixture, "default", input("t/1", "r1", &[("m1", "Hello")])).await;
    connect(&fixture, "t/1").await;
    let failed = run(&fixture, "failing", input("t2", "r2", &[])).await;

    let (text, feed) = read_until(feed, "RUN_ERROR").await;
    let found = shown(&text);
    // What the log adds is not shown.
    let shown_of = |(_, mut event): (Option<u64>, Value)| {
        event.as_object_mut().unwrap().remove("input");
        event
    };
    let expected: Vec<Value> =
        live.events().into_iter().chain(failed.events()).map(shown_of).collect();
    let events: Vec<&Value> = found.iter().map(|shown| &shown["event"]).collect();
    assert_eq!(events, expected.iter().collect::<Vec<_>>());
    for shown in &found {
        let members: Vec<&String> = shown.as_object().unwrap().keys().collect();
        assert_eq!(members.len(), 5, "{members:?}");
        let first = shown["runId"] == "r1";
        let (agent, thread) = if first { ("default", "t/1") } else { ("failing", "t2") };
        assert_eq!((&shown["agentId"], &shown["threadId"]), (&json!(agent), &json!(thread)));
        assert!(u128::from(shown["timestamp"].as_u64().unwrap()) >= began.as_millis());
    }
    drop(feed);
    let again = run(&fixture, "default", input("t3", "r3", &[])).await;
    assert_eq!(again.types().last().unwrap(), "RUN_FINISHED");
}

#[tokio::test]
async fn the_feed_shows_nobody_what_another_tenant_says() {
    let tokens = agui_runtime::BearerTokens::new()
        .accept("a", agui_runtime::Principal::of_tenant("a"))
        .accept("b", agui_runtime::Principal::of_tenant("b"));
    let fixture = fixture_with(|builder| builder.debug_events(true).authorize(tokens));
    let of = |token: &str, method: &str, path: &str, body| {
        let mut request = request(method, path, body);
        let value = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
        request
    };
    let mut feeds = Vec::new();
    for token in ["a", "b"] {
        let feed = open(&fixture, of(token, "GET", "/cpk-debug-events", Value::Null)).await;
        feeds.push(read_until(feed, "\n\n").await.1);
    }
    // On a thread of the same name.
    for (token, id) in [("a", "ra"), ("b", "rb"), ("a", "ra2"), ("b", "rb2")] {
        let run = of(token, "POST", "/agent/default/run", input("t", id, &[("m1", "Hello")]));
        assert_eq!(ask(&fixture, run).await.status, StatusCode::OK);
    }
    for (feed, runs) in feeds.into_iter().zip([["ra", "ra2"], ["rb", "rb2"]]) {
        let last =
            format!("\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"{}\"", runs[1]);
        let (text, _) = read_until(feed, &last).await;
        let mut seen: Vec<Value> =
            shown(&text).iter().map(|shown| shown["runId"].clone()).collect();
        seen.dedup();
        assert_eq!(seen, runs);
    }
}

/// drift debug
#[tokio::test]
async fn the_feed_is_not_there_unless_it_is_switched_on() {
    let fixture = fixture();
    let answer = get(&fixture, "/cpk-debug-events").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json(), json!({"error": "Not found"}));
    let wrong = ask(&fixture, request("POST", "/cpk-debug-events", json!({}))).await;
    assert_eq!(
        (wrong.status, &wrong.headers["allow"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"GET".parse().unwrap())
    );
}

#[tokio::test]
async fn who_reads_too_slowly_is_cut_off_and_runs_go_on() {
    let long = Arc::new("x".repeat(512 * 1024));
    let text = Arc::clone(&long);
    let mut agents = agui_runtime::Agents::new();
    agents
        .add("default", move |run: agui_agent::Run| {
            let text = Arc::clone(&text);
            async move { run.say(text.as_str()).await.map(drop).map_err(Into::into) }
        })
        .unwrap();
    let go = Arc::new(tokio::sync::Notify::new());
    let fixture = fixture_of(agents, go, |builder| builder.debug_events(true));
    let slow = open(&fixture, request("GET", "/cpk-debug-events", Value::Null)).await;
    // More than may wait.
    for number in 0..10 {
        let answer = run(&fixture, "default", input("t", &format!("r{number}"), &[])).await;
        assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED");
    }
    let body = slow.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let last = text.trim_end().lines().last().unwrap();
    assert!(last.starts_with(": cut off"), "{last}");
    let seen = shown(text).len();
    assert!(seen > 10 && seen < 50, "{seen}");
}
