//! Runs as they are streamed: what comes first and last, what an agent gets, and what becomes of one
//! that does not keep to the rules.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_agent::middleware::AgentHeaders;
use agui_agent::{AgentResult, Run};
use agui_types::RunAgentInput;
use common::*;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// checklist 18, 12
#[tokio::test]
async fn an_agent_id_is_decoded_once_in_a_path_and_never_in_an_envelope() {
    let mut agents = agui_runtime::Agents::new();
    for id in ["café au lait", "a+b", "a:b@c"] {
        agents
            .add(id, |run: Run| async move { run.say("Hello").await.map(drop).map_err(Into::into) })
            .unwrap();
    }
    let fixture = fixture_of(agents, Arc::new(Notify::new()), |builder| builder);
    for path in ["caf%C3%A9%20au%20lait", "a+b", "a%2Bb", "a:b@c", "a%3Ab%40c"] {
        let answer = run(&fixture, path, input("t", "r", &[])).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
    }
    for path in ["a%252Bb", "%zz", "%C3%28", "%"] {
        let answer = run(&fixture, path, input("t", "r", &[])).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    let named = |id: &str| envelope("agent/run", json!({"agentId": id}), input("t", "r", &[]));
    assert_eq!(ask(&fixture, named("café au lait")).await.status, StatusCode::OK);
    assert_eq!(ask(&fixture, named("a%2Bb")).await.status, StatusCode::NOT_FOUND);
}

/// checklist 12, 15, 16
#[tokio::test]
async fn every_method_of_the_envelope_answers_as_its_path_does() {
    let fixture = fixture();
    let agent = json!({"agentId": "default"});
    let stop = json!({"agentId": "default", "threadId": "a/b"});
    let body = || input("t", "r", &[("m1", "Hello")]);
    let suggested = || input("s", "r", &[("m1", "Hello")]);
    let messages = json!({"path": "/threads/t/messages", "httpMethod": "GET"});
    for (method, params, sent, by_path) in [
        ("agent/suggest", &agent, suggested(), ("POST", "/agent/default/suggest")),
        ("agent/run", &agent, body(), ("POST", "/agent/default/run")),
        ("agent/connect", &agent, body(), ("POST", "/agent/default/connect")),
        ("agent/stop", &stop, Value::Null, ("POST", "/agent/default/stop/a%2Fb")),
        ("transcribe", &Value::Null, json!({"audio": "AA=="}), ("POST", "/transcribe")),
        ("inspector/metadata", &Value::Null, Value::Null, ("GET", "/inspector-metadata")),
        ("resource/request", &messages, Value::Null, ("GET", "/threads/t/messages")),
    ] {
        let enveloped = ask(&fixture, envelope(method, params.clone(), sent.clone())).await;
        if method == "agent/run" {
            let cleared = ask(&fixture, request("POST", "/threads/clear", Value::Null)).await;
            assert_eq!(cleared.status, StatusCode::NO_CONTENT);
        }
        let (verb, path) = by_path;
        let direct = ask(&fixture, request(verb, path, sent)).await;
        assert_eq!(enveloped.status, direct.status, "{method}");
        assert_eq!(enveloped.headers, direct.headers, "{method}");
        if enveloped.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            assert!(!direct.types().is_empty(), "{method}");
            assert_eq!(enveloped.types(), direct.types(), "{method}");
        } else {
            assert_eq!(enveloped.body, direct.body, "{method}");
        }
    }
    // The body may be its own text.
    let text = input("u", "r", &[]).to_string();
    let answer = ask(&fixture, envelope("agent/run", agent, json!(text))).await;
    assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED");
}

/// deviate 1.1, 1.2; drift base-path, learning, resource-request
#[tokio::test]
async fn one_mount_takes_paths_and_envelopes_and_nothing_beside_itself() {
    use http::Request;
    let fixture = fixture();
    let at = async |method: &str, path: &str, body: &str| {
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_owned()));
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json").body(body).unwrap();
        ask(&fixture, request).await.status.as_u16()
    };
    let info = r#"{"method":"info"}"#;
    for (method, path, body, status) in [
        ("GET", "/api/copilotkit/info", "", 200),
        ("POST", "/api/copilotkit", info, 200),
        ("POST", "/api/copilotkit/", info, 200),
        ("POST", "/api/copilotkit2", info, 404),
        ("POST", "/api/copilot", info, 404),
        ("GET", "/api/copilotkit/x/y/info", "", 404),
        ("GET", "/api/copilotkitinfo", "", 404),
        ("GET", "/api/copilotkit/inspector-learning", "", 404),
        ("POST", "/api/copilotkit", r#"{"method":"inspector/learning"}"#, 404),
    ] {
        assert_eq!(at(method, path, body).await, status, "{method} {path} {body}");
    }
    let tunnel = async |path: &str, method: &str| {
        let params = json!({"path": path, "httpMethod": method});
        ask(&fixture, envelope("resource/request", params, json!({}))).await.status.as_u16()
    };
    for (path, method, status) in [
        ("/threads", "GET", 200),
        ("/threads/clear", "POST", 204),
        ("/threads/t", "GET", 405),
        ("/threads/unknown", "DELETE", 404),
        ("/annotate", "POST", 422),
        ("/memories", "GET", 404),
        ("/info", "GET", 404),
        ("/agent/default/run", "POST", 404),
        ("http://elsewhere/threads", "GET", 404),
        ("/threads/../info", "GET", 404),
        ("", "GET", 400),
    ] {
        assert_eq!(tunnel(path, method).await, status, "{method} {path}");
    }
    let base = fixture_with(|builder| builder.base_path("kit/"));
    let request = Request::get("/kit/info").body(http_body_util::Full::default()).unwrap();
    assert_eq!(ask(&base, request).await.status, StatusCode::OK);
}

/// checklist 21, 22, 35
#[tokio::test]
async fn an_input_may_be_small_or_hold_more_than_is_known() {
    let fixture = fixture();
    let mut body = input("t", "r1", &[]);
    body["messages"] = json!([
        {"id": "m1", "role": "user", "content": "Look", "mood": "fine"},
        {"id": "m2", "role": "assistant", "toolCalls": [
            {"id": "c1", "type": "function", "function": {"name": "pick", "arguments": "{}"}},
        ]},
        {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "green"},
    ]);
    body["extra"] = json!({"a": 1});
    body["lastSeenEventId"] = Value::Null;
    let answer = run(&fixture, "default", body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    assert!(answer.body.contains("You said: green"), "{}", answer.body);
    assert!(!answer.events()[0].1["input"].as_object().unwrap().contains_key("extra"));
}

/// checklist 24; deviate 3-flush
#[tokio::test]
async fn headers_go_out_before_the_agent_says_a_word() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let silent = |run: Run| async move {
        run.cancellation().cancelled().await;
        Ok::<(), agui_agent::BoxError>(())
    };
    let fixture = fixture_of_one(silent);
    let app = axum::Router::new().fallback_service(fixture.runtime.service());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    for operation in ["run", "suggest"] {
        let body = input("t", "r", &[]).to_string();
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {BASE}/agent/default/{operation} HTTP/1.1\r\nhost: {address}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(head.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            let count = client.read_buf(&mut read).await.unwrap();
            assert!(count > 0, "{operation}: the connection ended");
        }
        let head = String::from_utf8_lossy(&read).to_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
    }
    server.abort();
}

/// checklist 25; deviate 3-keep-alive; drift keep-alive
#[tokio::test(start_paused = true)]
async fn a_comment_keeps_a_silent_stream_alive() {
    for (interval, expected) in [(None, 15), (Some(Duration::from_secs(4)), 4)] {
        let fixture = fixture_with(|builder| match interval {
            Some(interval) => builder.keep_alive(interval),
            None => builder,
        });
        let path = "/agent/waiting/run";
        let running = open(&fixture, request("POST", path, input("t", "r", &[]))).await;
        let (_, mut running) = read_until(running, "One").await;
        let began = tokio::time::Instant::now();
        for count in 1..4 {
            let frame = running.body_mut().frame().await.unwrap().unwrap();
            let text = frame.data_ref().unwrap();
            assert!(text.starts_with(b":") && text.ends_with(b"\n\n"), "{text:?}");
            assert_eq!(began.elapsed().as_secs(), expected * count);
        }
    }
    // None at all, where that is wished.
    let fixture = fixture_with(|builder| builder.keep_alive(Duration::ZERO));
    let path = "/agent/waiting/run";
    let running = open(&fixture, request("POST", path, input("t", "r", &[]))).await;
    let (_, mut running) = read_until(running, "One").await;
    let hour = tokio::time::timeout(Duration::from_secs(3600), running.body_mut().frame()).await;
    assert!(hour.is_err());
}

/// checklist 26, 33
#[tokio::test]
async fn a_run_begins_with_its_start_or_fails_at_once() {
    let nothing = fixture_of_one(Scripted::new(json!([])));
    let alone = fixture_of_one(Scripted::new(json!([{"type": "RUN_ERROR", "message": "no"}])));
    let early = fixture_of_one(Scripted::new(json!([
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
    ])));
    for fixture in [nothing, alone, early] {
        let answer = run(&fixture, "default", input("t", "r", &[])).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.types(), ["RUN_STARTED", "RUN_ERROR"]);
        assert!(answer.events()[1].1["message"].is_string());
    }
}

/// checklist 28
#[tokio::test]
async fn an_input_of_the_agents_own_stays_as_it_is() {
    let own = json!({
        "threadId": "$thread", "runId": "$run", "messages": [
            {"id": "m0", "role": "user", "content": "What the agent makes of it"},
        ], "tools": [], "context": [], "state": {}, "forwardedProps": {"mine": true},
    });
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run", "input": own},
        {"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"},
    ])));
    let answer = run(&fixture, "default", input("t", "r", &[("m1", "Hello")])).await;
    let text = own.to_string().replace("$thread", "t").replace("$run", "r");
    let expected: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer.events()[0].1["input"], expected);
}

/// checklist 29, 31, 32
#[tokio::test]
async fn what_breaks_the_order_fails_in_order() {
    let start = json!({"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"});
    let finish = json!({"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"});
    let open = [
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}),
    ];
    for open in open {
        let fixture = fixture_of_one(Scripted::new(json!([start, open, finish])));
        let answer = run(&fixture, "default", input("t", "r", &[])).await;
        let types = answer.types();
        assert_eq!(types.last().unwrap(), "RUN_ERROR", "{types:?}");
        assert_eq!(types.iter().filter(|it| it.starts_with("RUN_")).count(), 2, "{types:?}");
        assert!(
            types[types.len() - 2].ends_with("_END")
                || types.iter().any(|it| { it == "STEP_FINISHED" || it.ends_with("_RESULT") }),
            "{types:?}"
        );
    }
    // Whatever comes behind an end is not sent.
    let fixture = fixture_of_one(Scripted::new(json!([
        start,
        {"type": "RUN_ERROR", "message": "no"},
        {"type": "CUSTOM", "name": "late", "value": 1},
    ])));
    let answer = run(&fixture, "default", input("t", "r", &[])).await;
    assert_eq!(answer.types(), ["RUN_STARTED", "RUN_ERROR"]);
}

/// checklist 30, 34
#[tokio::test]
async fn chunks_arrive_as_whole_messages_without_nulls() {
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "lo"},
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "{}"},
        {"type": "RUN_FINISHED", "threadId": "$thread", "runId": "$run"},
    ])));
    let answer = run(&fixture, "default", input("t", "r", &[])).await;
    assert_eq!(
        answer.types(),
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "RUN_FINISHED"
        ]
    );
    assert!(!answer.body.contains("null"), "{}", answer.body);
    // Nothing is opened that is not named.
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "of whom?"},
    ])));
    let answer = run(&fixture, "default", input("t", "r", &[])).await;
    assert_eq!(answer.types().last().unwrap(), "RUN_ERROR");
}

/// checklist 38
#[tokio::test]
async fn an_agent_gets_the_input_whole_but_for_the_wildcard_tool() {
    let got: Arc<Mutex<Option<RunAgentInput>>> = Arc::default();
    let keep = Arc::clone(&got);
    let fixture = fixture_of_one(move |run: Run| {
        *keep.lock().unwrap() = Some(run.input().clone());
        async { AgentResult::Ok(()) }
    });
    let mut body = input("t", "r", &[("m1", "Hello")]);
    body["state"] = json!({"deep": {"list": [1, 2.50, null]}});
    body["forwardedProps"] = json!({"toolChoice": {"type": "function"}, "n": 1e3});
    body["context"] = json!([{"description": "who", "value": "Ada"}]);
    body["resume"] = json!([{"interruptId": "i", "status": "resolved", "payload": {"ok": true}}]);
    let tool = json!({"name": "pick", "description": "", "parameters": {"type": "object"}});
    let wildcard = json!({"name": "*", "description": "any", "parameters": {}});
    body["tools"] = json!([wildcard, tool]);
    let answer = run(&fixture, "default", body.clone()).await;
    assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED");
    let got = serde_json::to_value(got.lock().unwrap().take().unwrap()).unwrap();
    for member in ["threadId", "runId", "messages", "state", "forwardedProps", "context", "resume"]
    {
        assert_eq!(got[member], body[member], "{member}");
    }
    assert_eq!(got["tools"], json!([tool]));
}

/// checklist 39
#[tokio::test]
async fn calls_of_another_run_stand_in_another_message() {
    let calling = |run: Run| async move {
        let mut call = run.tool_call("pick").await?;
        call.args("{}").await?;
        call.end().await?;
        AgentResult::Ok(())
    };
    let fixture = fixture_of_one(calling);
    let mut owners = Vec::new();
    for number in ["r1", "r2"] {
        let answer = run(&fixture, "default", input("t", number, &[])).await;
        let events = answer.events();
        let (_, start) = events.iter().find(|(_, it)| it["type"] == "TOOL_CALL_START").unwrap();
        let owner = start.get("parentMessageId").unwrap_or(&start["toolCallId"]);
        owners.push(owner.as_str().unwrap().to_owned());
    }
    assert_ne!(owners[0], owners[1]);
}

/// checklist 42
#[tokio::test]
async fn an_agent_gets_the_headers_that_are_for_it() {
    let got: Arc<Mutex<HeaderMap>> = Arc::default();
    let keep = Arc::clone(&got);
    let fixture = fixture_of_one(move |run: Run| {
        let headers = run.context().extensions.get::<AgentHeaders>().cloned().unwrap_or_default();
        *keep.lock().unwrap() = headers.0;
        async { AgentResult::Ok(()) }
    });
    for operation in ["run", "suggest"] {
        let path = format!("/agent/default/{operation}");
        let mut asked = request("POST", &path, input("t", "r", &[]));
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("x-tenant", "acme"),
            ("cookie", "s=1"),
            ("accept-language", "de"),
            ("x-forwarded-for", "10.0.0.9"),
            ("x-request-id", "7"),
            ("x-vercel-id", "7"),
            ("x-copilotcloud-public-api-key", "k"),
        ] {
            asked.headers_mut().insert(name, value.parse().unwrap());
        }
        ask(&fixture, asked).await;
        let got = std::mem::take(&mut *got.lock().unwrap());
        let mut names: Vec<&str> = got.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "x-tenant"], "{operation}");
    }
}

/// checklist 45; deviate 8.5-steps, 8.5-abort, 8.5-ids
#[tokio::test]
async fn a_stop_closes_everything_and_is_stored_as_finished() {
    let start = json!({"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"});
    let fixture = fixture_of_one(Scripted::hanging(json!([
        start,
        {"type": "STEP_STARTED", "stepName": "s"},
        {"type": "REASONING_START", "messageId": "r"},
        {"type": "REASONING_MESSAGE_START", "messageId": "rm", "role": "reasoning"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TOOL_CALL_START", "toolCallId": "done", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "done"},
        {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "done", "content": "4"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
    ])));
    let path = "/agent/default/run";
    let running = open(&fixture, request("POST", path, input("t", "r", &[]))).await;
    let (before, running) = read_until(running, "\"toolCallId\":\"c\"").await;
    let stopped =
        ask(&fixture, raw("POST", "/agent/default/stop/t", "no JSON, which does not matter")).await;
    assert_eq!(stopped.json()["stopped"], true);
    let mut answer = read(running).await;
    answer.body.insert_str(0, &before);
    let types = answer.types();
    for closed in [
        "STEP_FINISHED",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_END",
    ] {
        assert!(types.contains(&closed.to_owned()), "{closed} in {types:?}");
    }
    let results: Vec<Value> = answer
        .events()
        .into_iter()
        .filter(|(_, event)| event["type"] == "TOOL_CALL_RESULT")
        .map(|(_, event)| event)
        .collect();
    assert_eq!(results.len(), 2, "one of its own, one for the open call");
    assert_eq!(results[1]["messageId"], "c-result");
    assert_eq!(results[1]["role"], "tool");
    let content: Value = serde_json::from_str(results[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&content["status"], &content["reason"]),
        (&json!("stopped"), &json!("stop_requested"))
    );
    let finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    assert_eq!(answer.events().pop().unwrap().1, finished);
    let replayed = connect(&fixture, "t").await;
    assert_eq!(replayed.events(), answer.events());
}

/// checklist 45; deviate 8.5-started, 8.5-abort
#[tokio::test]
async fn an_agent_that_calls_its_stop_a_failure_has_stopped_all_the_same() {
    // A run that was stopped before it said anything begins and finishes.
    let silent = fixture_of_one(Scripted::hanging(json!([])));
    let path = "/agent/default/run";
    let running = open(&silent, request("POST", path, input("t", "r", &[]))).await;
    let stopped = ask(&silent, request("POST", "/agent/default/stop/t", Value::Null)).await;
    assert_eq!(stopped.json()["stopped"], true);
    assert_eq!(read(running).await.types(), ["RUN_STARTED", "RUN_FINISHED"]);

    // One whose agent answers a stop with an error.
    let begun = Arc::new(Notify::new());
    let told = Arc::clone(&begun);
    let aborting = move |run: Run| {
        let told = Arc::clone(&told);
        async move {
            run.say("So far").await?;
            told.notify_one();
            run.cancellation().cancelled().await;
            AgentResult::Err("aborted".into())
        }
    };
    let fixture = fixture_of_one(aborting);
    let running = open(&fixture, request("POST", path, input("t", "r", &[]))).await;
    begun.notified().await;
    ask(&fixture, request("POST", "/agent/default/stop/t", Value::Null)).await;
    assert_eq!(read(running).await.types().last().unwrap(), "RUN_FINISHED");
    let replayed = connect(&fixture, "t").await;
    assert_eq!(replayed.types().last().unwrap(), "RUN_FINISHED");
}

/// deviate 8.4-open
#[tokio::test]
async fn a_failure_closes_what_is_open_before_it_is_told() {
    let fixture = fixture_of_one(Scripted::new(json!([
        {"type": "RUN_STARTED", "threadId": "$thread", "runId": "$run"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "RUN_ERROR", "message": "no", "code": "MINE"},
    ])));
    let answer = run(&fixture, "default", input("t", "r", &[])).await;
    let types = answer.types();
    let last = types.len() - 1;
    assert_eq!(types[last], "RUN_ERROR");
    assert_eq!(answer.events()[last].1["code"], "MINE");
    // Nobody carries a call out whose run has failed, so that it is answered as well.
    let closed = ["TOOL_CALL_END", "TOOL_CALL_RESULT", "TEXT_MESSAGE_END"];
    assert_eq!(types[last - 3..last], closed);
}
