//! The routes, one by one: what the checklist for CopilotKit front ends (docs/checklist.md) asks of
//! each. The numbers are its items.

mod common;

use common::*;
use http::StatusCode;
use serde_json::{Value, json};

/// checklist 1, 2, 3, 4, 6, 7, 10; drift single-route-info, info
#[tokio::test]
async fn info_says_what_is_here() {
    let fixture = fixture();
    for path in ["/info", "/info/", "//info"] {
        let answer = ask(&fixture, request("GET", path, Value::Null)).await;
        assert_eq!(answer.status, StatusCode::OK, "7: {path}");
        let info = answer.json();
        assert_eq!(info["agents"]["default"]["description"], "Echoes", "1, 2");
        assert_eq!(info["mode"], "sse", "3");
        assert_eq!(
            info["threadEndpoints"],
            json!({"list": true, "inspect": true, "mutations": true, "realtimeMetadata": false}),
            "4"
        );
        assert!(info["agents"]["default"].get("capabilities").is_none(), "5");
        assert_eq!(info["suggestions"], true, "6");
        assert_eq!(info["audioFileTranscriptionEnabled"], false, "6");
        for absent in ["intelligence", "licenseStatus", "singleRoute", "inspectorMetadata"] {
            assert!(info.get(absent).is_none(), "3: {absent}");
        }
    }
    let single = ask(&fixture, envelope("info", Value::Null, Value::Null)).await;
    let info = single.json();
    assert_eq!(info["threadEndpoints"]["list"], false, "10");
    assert_eq!(info["singleRoute"]["resourceOperations"], true);
    assert_eq!(info["singleRoute"]["threadEndpoints"]["list"], true);
    assert!(info["agents"]["default"].is_object(), "10");
}

/// checklist 7, 8, 15, 18, 19, 60, 64
#[tokio::test]
async fn what_is_not_there_is_said_in_json() {
    let fixture = fixture();
    for (method, path) in [("GET", "/nothing"), ("GET", "/memories"), ("POST", "/memories/recall")]
    {
        let answer = ask(&fixture, request(method, path, Value::Null)).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "7, 60: {path}");
        assert_eq!(answer.json(), json!({"error": "Not found"}));
    }
    for (method, path, allow) in [
        ("GET", "/agent/default/run", "POST"),
        ("HEAD", "/info", "GET"),
        ("GET", "/threads/t", "PATCH, DELETE"),
        ("GET", "", "POST"),
    ] {
        let answer = ask(&fixture, request(method, path, Value::Null)).await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "8: {method} {path}");
        assert_eq!(answer.headers["allow"], allow, "8");
    }
    for agent in ["nobody", "constructor", "__proto__"] {
        for operation in ["run", "connect", "suggest", "stop/t"] {
            let path = format!("/agent/{agent}/{operation}");
            let answer = ask(&fixture, raw("POST", &path, "garbage")).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "19, 64: {path}");
            assert_eq!(answer.json()["error"], "Agent not found");
            assert!(answer.json()["message"].as_str().unwrap().contains(agent));
        }
        let params = json!({"agentId": agent, "threadId": "t"});
        for method in ["agent/run", "agent/connect", "agent/suggest", "agent/stop"] {
            let answer = ask(&fixture, envelope(method, params.clone(), json!({}))).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "15, 19: {method}");
            assert_eq!(answer.json()["error"], "Agent not found");
        }
    }
    let answer = ask(&fixture, request("POST", "/agent/%zz/run", json!({}))).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "18");
}

/// checklist 20
#[tokio::test]
async fn an_invalid_input_is_refused_with_details() {
    let fixture = fixture();
    for (body, names) in [
        ("", ""),
        ("{", ""),
        ("[]", ""),
        (r#"{"threadId":"t","runId":"r"}"#, "messages"),
        (r#"{"threadId":7,"runId":"r","messages":[]}"#, "threadId"),
        (r#"{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}"#, "id"),
    ] {
        for operation in ["run", "connect", "suggest"] {
            let path = format!("/agent/default/{operation}");
            let answer = ask(&fixture, raw("POST", &path, body)).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "20: {body}");
            let problem = answer.json();
            assert_eq!(problem["error"], "Invalid request body");
            assert!(problem["details"].as_str().unwrap().contains(names), "{problem}");
        }
    }
    let large = fixture_with(|builder| builder.body_limit(64));
    let body = input("t", "r", &[("m", &"x".repeat(64))]);
    let answer = ask(&large, request("POST", "/agent/default/run", body)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

/// checklist 13, 14, 17; deviate 4.2
#[tokio::test]
async fn envelopes_are_judged_before_what_is_in_them() {
    let fixture = fixture();
    for body in ["null", "[]", "{", "{}", r#"{"method":"frobnicate"}"#, r#"{"method":"agent/run"}"#]
    {
        let answer = ask(&fixture, raw("POST", "", body)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "13, 17: {body}");
        assert_eq!(answer.json()["error"], "invalid_request");
        assert!(answer.json()["message"].is_string());
    }
    let mut request = raw("POST", "", r#"{"method":"info"}"#);
    request.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(ask(&fixture, request).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "13");
    let mut request = raw("POST", "/", r#"{"method":"info"}"#);
    let value = "application/json; charset=utf-8".parse().unwrap();
    request.headers_mut().insert("content-type", value);
    assert_eq!(ask(&fixture, request).await.status, StatusCode::OK, "14");
}

/// Ids come back in every list of threads.
#[tokio::test]
async fn ids_that_are_kept_have_a_limit() {
    use agui_runtime::LONGEST_ID;
    let fixture = fixture();
    let (longest, longer) = ("i".repeat(LONGEST_ID), "i".repeat(LONGEST_ID + 1));
    let kept = input(&longest, &longest, &[("m", "Hello")]);
    let answer = ask(&fixture, request("POST", "/agent/default/run", kept)).await;
    assert_eq!(answer.status, StatusCode::OK);
    for (thread, run, names) in [(&*longer, "r", "/threadId: "), ("t", &*longer, "/runId: ")] {
        let body = input(thread, run, &[("m", "Hello")]);
        let params = json!({"agentId": "default"});
        let by_path = request("POST", "/agent/default/run", body.clone());
        for request in [by_path, envelope("agent/run", params, body)] {
            let answer = ask(&fixture, request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST);
            let details = answer.json()["details"].to_string();
            assert!(details.contains(names) && details.contains("1024 bytes"), "{details}");
        }
    }
    let listed = ask(&fixture, request("GET", "/threads", Value::Null)).await.json();
    assert_eq!(listed["threads"].as_array().unwrap().len(), 1);
    let path = format!("/threads/{longest}");
    let deleted = ask(&fixture, request("DELETE", &path, Value::Null)).await;
    assert_eq!(deleted.status, StatusCode::OK);
}

/// A browser sends what a form could send without asking first, and the CORS layer only keeps the
/// answer from the page.
#[tokio::test]
async fn a_page_of_another_origin_changes_nothing_unasked() {
    let fixture = fixture();
    let kept = ask(&fixture, request("POST", "/agent/default/run", input("t", "r", &[]))).await;
    assert_eq!(kept.status, StatusCode::OK);
    let posted = |path: &str, origin: &str, content_type: &str| {
        let mut request = request("POST", path, input("other", "r", &[]));
        let headers = request.headers_mut();
        headers.insert("host", "127.0.0.1:4100".parse().unwrap());
        headers.insert("origin", origin.parse().unwrap());
        match content_type {
            "" => drop(headers.remove("content-type")),
            _ => drop(headers.insert("content-type", content_type.parse().unwrap())),
        }
        request
    };
    let unasked = [
        "",
        "text/plain",
        "Text/Plain; charset=utf-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "Multipart/Form-Data; boundary=application/json",
    ];
    let paths =
        ["/agent/default/run", "/agent/default/stop/t", "/threads/clear", "/threads/t/archive", ""];
    for content_type in unasked {
        for origin in ["http://evil.example", "null", "http://127.0.0.1:4101"] {
            for path in paths {
                let answer = ask(&fixture, posted(path, origin, content_type)).await;
                let what = format!("{path} from {origin} as {content_type:?}");
                assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{what}");
            }
        }
    }
    let listed = ask(&fixture, request("GET", "/threads", Value::Null)).await.json();
    assert_eq!(listed["threads"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["threads"][0]["id"], "t");

    // Audio comes in a form, from a page of another origin as well.
    let audio = posted("/transcribe", "http://app.example", "multipart/form-data; boundary=b");
    assert_eq!(ask(&fixture, audio).await.json()["error"], "service_not_configured");
    // The server's own page may send what it likes.
    let own = posted("/threads/clear", "http://127.0.0.1:4100", "multipart/form-data");
    assert_eq!(ask(&fixture, own).await.status, StatusCode::NO_CONTENT);
}

/// checklist 9
#[tokio::test]
async fn a_mount_takes_what_it_is_set_up_for() {
    use agui_runtime::Transport;
    let rest = fixture_with(|builder| builder.transport(Transport::Rest));
    let answer = ask(&rest, raw("POST", "", r#"{"method":"info"}"#)).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["code"], "single_route_envelope_against_multi_route_runtime");
    let answer = ask(&rest, raw("POST", "", r#"{"method":"frobnicate"}"#)).await;
    assert_eq!(answer.json(), json!({"error": "Not found"}));
    assert_eq!(ask(&rest, request("GET", "/info", Value::Null)).await.status, StatusCode::OK);

    let single = fixture_with(|builder| builder.transport(Transport::Single));
    let answer = ask(&single, request("GET", "/info", Value::Null)).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "9");
    assert_eq!(answer.headers["allow"], "POST");
    assert_eq!(ask(&single, raw("POST", "", r#"{"method":"info"}"#)).await.status, StatusCode::OK);
}

/// checklist 16, 21, 23, 26, 27, 29, 30
#[tokio::test]
async fn a_run_streams_its_events() {
    let fixture = fixture();
    let body = input("t", "r", &[("m1", "Hello")]);
    let by_path = ask(&fixture, request("POST", "/agent/default/run", body)).await;
    let body = input("t2", "r", &[("m1", "Hello")]);
    let params = json!({"agentId": "default"});
    let by_envelope = ask(&fixture, envelope("agent/run", params, body)).await;
    for (answer, thread) in [(by_path, "t"), (by_envelope, "t2")] {
        assert_eq!(answer.status, StatusCode::OK, "21");
        assert_eq!(answer.headers["content-type"], "text/event-stream", "23");
        assert_eq!(answer.headers["cache-control"], "no-cache", "23");
        assert!(!answer.body.contains('\r') && !answer.body.contains("[DONE]"), "23");
        let events = answer.events();
        let (_, started) = &events[0];
        assert_eq!(started["type"], "RUN_STARTED", "26");
        assert_eq!((&started["threadId"], &started["runId"]), (&json!(thread), &json!("r")), "26");
        let echoed = &started["input"];
        assert_eq!(echoed["messages"][0]["id"], "m1", "27");
        assert!(echoed["tools"].is_array() && echoed["context"].is_array(), "27");
        let (_, finished) = events.last().unwrap();
        assert_eq!(
            finished,
            &json!({"type": "RUN_FINISHED", "threadId": thread, "runId": "r"}),
            "29"
        );
        let positions: Vec<u64> = events.iter().map(|(at, _)| at.unwrap()).collect();
        assert!(positions.is_sorted() && positions[0] > 0);
        assert!(!answer.body.contains("null"), "30");
    }
}

/// checklist 27, 36, 37
#[tokio::test]
async fn an_input_is_echoed_with_what_is_new_to_the_thread() {
    let fixture = fixture();
    let first = input("t", "r1", &[("m1", "One")]);
    ask(&fixture, request("POST", "/agent/default/run", first)).await;
    let second = input("t", "r2", &[("m1", "One"), ("m2", "Two")]);
    let answer = ask(&fixture, request("POST", "/agent/default/run", second)).await;
    let (_, started) = &answer.events()[0];
    let ids: Vec<&Value> =
        started["input"]["messages"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, ["m2"], "27");
    let again = input("t", "r2", &[("m1", "One"), ("m2", "Two"), ("m3", "Three")]);
    let answer = ask(&fixture, request("POST", "/agent/default/run", again)).await;
    assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED", "36, 37");
}

/// checklist 29, 32, 33
#[tokio::test]
async fn failures_end_a_run_in_the_stream() {
    let fixture = fixture();
    for (agent, message) in [("failing", "it broke"), ("panicking", "panicked")] {
        let body = input(agent, "r", &[("m1", "Hello")]);
        let answer = ask(&fixture, request("POST", &format!("/agent/{agent}/run"), body)).await;
        assert_eq!(answer.status, StatusCode::OK);
        let types = answer.types();
        assert_eq!(types.iter().filter(|it| *it == "RUN_ERROR").count(), 1, "29, 33");
        let (_, error) = answer.events().pop().unwrap();
        assert_eq!(error["type"], "RUN_ERROR", "32");
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
    }
}

/// checklist 48, 49, 51; deviate 8.6-error; drift replay
#[tokio::test]
async fn a_thread_is_replayed_as_it_was_seen() {
    let fixture = fixture();
    let unknown = input("nobody-knows", "x", &[]);
    let answer = ask(&fixture, request("POST", "/agent/default/connect", unknown)).await;
    assert_eq!((answer.status, answer.body.as_str()), (StatusCode::OK, ""), "48");
    assert_eq!(answer.headers["content-type"], "text/event-stream", "48");

    let mut seen = Vec::new();
    for (agent, run, message) in
        [("default", "r1", "m1"), ("failing", "r2", "m2"), ("default", "r3", "m3")]
    {
        let body = input("t", run, &[(message, "Hello")]);
        let path = format!("/agent/{agent}/run");
        seen.extend(ask(&fixture, request("POST", &path, body)).await.events());
    }
    let connect = input("t", "x", &[]);
    let answer = ask(&fixture, request("POST", "/agent/default/connect", connect)).await;
    let replayed = answer.events();
    assert_eq!(replayed.len(), seen.len(), "49");
    for ((at, event), (was, shown)) in replayed.iter().zip(&seen) {
        assert_eq!(at, was, "49");
        if shown["type"] == "RUN_ERROR" {
            let finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r2"});
            assert_eq!(event, &finished, "51");
        } else {
            assert_eq!(event, shown, "49");
        }
    }
    // From a position, only what follows.
    let (middle, _) = seen[4];
    let mut request = request("POST", "/agent/default/connect", input("t", "x", &[]));
    let position = middle.unwrap().to_string();
    request.headers_mut().insert("last-event-id", position.parse().unwrap());
    assert_eq!(ask(&fixture, request).await.events(), replayed[5..]);
    // One that is nowhere gets the thread as it is.
    let mut body = input("t", "x", &[]);
    body["lastSeenEventId"] = json!("99999");
    let answer = ask(&fixture, common::request("POST", "/agent/default/connect", body)).await;
    let expected = ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"];
    assert_eq!(answer.types(), expected);
    assert_eq!(answer.events()[2].1["messages"].as_array().unwrap().len(), 6);
}

/// checklist 40, 41, 50; deviate 2.2, 8.8
#[tokio::test]
async fn a_busy_thread_refuses_visibly_and_is_joined_by_connect() {
    let fixture = fixture();
    let running =
        open(&fixture, request("POST", "/agent/waiting/run", input("t", "r1", &[("m1", "Go")])))
            .await;
    let busy = ask(&fixture, request("POST", "/agent/default/run", input("t", "r2", &[]))).await;
    assert_eq!(busy.status, StatusCode::CONFLICT, "40");
    assert_eq!(busy.json()["code"], "THREAD_BUSY", "40");
    assert!(busy.json()["message"].as_str().unwrap().contains("r1"));

    let viewers = [
        open(&fixture, request("POST", "/agent/waiting/connect", input("t", "x", &[]))).await,
        open(&fixture, request("POST", "/agent/waiting/connect", input("t", "y", &[]))).await,
    ];
    // The one who started it leaves; the run goes on.
    drop(running);
    fixture.go.notify_one();
    for viewer in viewers {
        let answer = read(viewer).await;
        let text: String = answer
            .events()
            .iter()
            .filter_map(|(_, event)| event["delta"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(text, "One, two", "41, 50");
        assert_eq!(answer.types().iter().filter(|it| *it == "RUN_FINISHED").count(), 1, "50");
    }
    let next = ask(&fixture, request("POST", "/agent/default/run", input("t", "r3", &[]))).await;
    assert_eq!(next.types().last().unwrap(), "RUN_FINISHED");
}

/// checklist 40; deviate 8.8
#[tokio::test]
async fn a_new_run_may_take_the_place_of_the_one_that_goes_on() {
    let fixture = fixture_with(|builder| builder.busy(agui_journal::BusyPolicy::Supersede));
    let old = open(&fixture, request("POST", "/agent/deaf/run", input("t", "r1", &[]))).await;
    let new = ask(&fixture, request("POST", "/agent/default/run", input("t", "r2", &[]))).await;
    assert_eq!(new.events()[0].1["runId"], "r2", "40");
    assert_eq!(new.types().last().unwrap(), "RUN_FINISHED", "40");
    let old = read(old).await;
    let last = old.events().pop().unwrap().1;
    assert_eq!(last, json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"}));
}

/// checklist 43, 44, 45, 46, 47; deviate 8.7, 8.5-ids; drift stop, finished
#[tokio::test]
async fn a_stop_ends_the_stream_whatever_the_agent_does() {
    for (agent, busy) in [("waiting", "One"), ("deaf", "TOOL_CALL_ARGS")] {
        let fixture = fixture();
        let path = format!("/agent/{agent}/run");
        let running =
            open(&fixture, request("POST", &path, input("t", "r1", &[("m1", "Go")]))).await;
        let (before, running) = read_until(running, busy).await;
        let path = format!("/agent/{agent}/stop/t");
        let other = ask(&fixture, request("POST", &path, json!({"runId": "r2"}))).await;
        assert_eq!(other.json()["stopped"], false);
        let blank = ask(&fixture, request("POST", &path, json!({"runId": " "}))).await;
        assert_eq!(blank.status, StatusCode::BAD_REQUEST);
        // 46: an empty body with a JSON content type.
        let stopped = ask(&fixture, request("POST", &path, Value::Null)).await;
        assert_eq!(stopped.status, StatusCode::OK, "44");
        assert_eq!(stopped.json()["stopped"], true, "44");
        assert_eq!(stopped.json()["interrupt"]["code"], "STOPPED", "44");
        let mut answer = read(running).await;
        answer.body.insert_str(0, &before);
        let (_, last) = answer.events().pop().unwrap();
        assert_eq!(last, json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r1"}), "43, 45");
        if agent == "deaf" {
            let types = answer.types();
            let ended = types.iter().position(|it| it == "TOOL_CALL_END").expect("45");
            let (_, result) = &answer.events()[ended + 1];
            let content: Value = serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
            assert_eq!(content["status"], "stopped", "45");
        }
        let again = ask(&fixture, request("POST", &path, Value::Null)).await;
        assert_eq!(again.json()["stopped"], false, "44");
        let replay =
            ask(&fixture, request("POST", "/agent/default/connect", input("t", "x", &[]))).await;
        assert_eq!(replay.types().last().unwrap(), "RUN_FINISHED", "47");
        let next =
            ask(&fixture, request("POST", "/agent/default/run", input("t", "r3", &[]))).await;
        assert_eq!(next.types().last().unwrap(), "RUN_FINISHED");
    }
}

#[tokio::test]
async fn the_outcome_cancelled_is_for_those_who_know_it() {
    let fixture = fixture();
    let mut body = input("t", "r1", &[]);
    body["protocolVersion"] = json!("1.0");
    let running = open(&fixture, request("POST", "/agent/deaf/run", body)).await;
    ask(&fixture, request("POST", "/agent/deaf/stop/t", Value::Null)).await;
    let (_, last) = read(running).await.events().pop().unwrap();
    assert_eq!(last["outcome"], json!({"type": "cancelled"}));
}

#[tokio::test]
async fn a_run_may_not_take_longer_than_it_may() {
    let deadline = std::time::Duration::from_millis(20);
    let fixture = fixture_with(|builder| builder.deadline(deadline));
    let answer = ask(&fixture, request("POST", "/agent/deaf/run", input("t", "r1", &[]))).await;
    let (_, last) = answer.events().pop().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("DEADLINE_EXCEEDED")));
}

/// checklist 57; deviate 2.5
#[tokio::test]
async fn suggestions_leave_no_trace() {
    let fixture = fixture();
    let running =
        open(&fixture, request("POST", "/agent/waiting/run", input("t", "r1", &[]))).await;
    let body = input("t", "s1", &[("m1", "Hello")]);
    let answer = ask(&fixture, request("POST", "/agent/default/suggest", body)).await;
    assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED", "57");
    assert!(answer.events()[0].1.get("input").is_none(), "57");
    let body = input("s", "s2", &[("m1", "Hello")]);
    let failed = ask(&fixture, request("POST", "/agent/failing/suggest", body)).await;
    assert_eq!(failed.types().last().unwrap(), "RUN_ERROR", "57");
    // Asked for as a run, as front ends do that have no route for it.
    let mut body = input("asked", "s3", &[("m1", "Hello"), ("asked", "Suggest")]);
    body["tools"] = json!([{"name": "copilotkitSuggest", "description": "", "parameters": {}}]);
    let params = json!({"agentId": "default"});
    for request in
        [request("POST", "/agent/default/run", body.clone()), envelope("agent/run", params, body)]
    {
        let answer = ask(&fixture, request).await;
        assert_eq!(answer.types().last().unwrap(), "RUN_FINISHED", "57");
    }
    fixture.go.notify_one();
    read(running).await;
    let listed = ask(&fixture, request("GET", "/threads", Value::Null)).await.json();
    let ids: Vec<&Value> =
        listed["threads"].as_array().unwrap().iter().map(|thread| &thread["id"]).collect();
    assert_eq!(ids, ["t"], "57");
}

/// checklist 59; drift resource-request
#[tokio::test]
async fn threads_are_listed_read_named_and_deleted() {
    let fixture = fixture();
    for (thread, agent) in [("a", "default"), ("b", "failing"), ("c/d", "default")] {
        let path = format!("/agent/{agent}/run");
        let body = input(thread, "r", &[("m1", "Hello")]);
        ask(&fixture, request("POST", &path, body)).await;
    }
    let get = async |path: &str| ask(&fixture, request("GET", path, Value::Null)).await.json();
    let ids = |listed: &Value| -> Vec<String> {
        let threads = listed["threads"].as_array().unwrap();
        threads.iter().map(|it| it["id"].as_str().unwrap().into()).collect()
    };
    let listed = get("/threads?agentId=default").await;
    let mut found = ids(&listed);
    found.sort();
    assert_eq!(found, ["a", "c/d"], "59");
    let row = &listed["threads"][0];
    for time in ["createdAt", "updatedAt"] {
        assert!(row[time].as_str().unwrap().ends_with('Z'), "59");
    }
    assert_eq!((&row["agentId"], &row["archived"]), (&json!("default"), &json!(false)));
    let updated: Vec<&str> = listed["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["updatedAt"].as_str().unwrap())
        .collect();
    assert!(updated.is_sorted_by(|a, b| a >= b), "59");

    let messages = get("/threads/c%2Fd/messages").await;
    assert_eq!(messages["messages"][0], json!({"id": "m1", "role": "user", "content": "Hello"}));
    assert_eq!(messages["messages"][1]["content"], "You said: Hello");
    assert_eq!(get("/threads/c%2Fd/events").await["events"][0]["type"], "RUN_STARTED");
    assert_eq!(get("/threads/c%2Fd/state").await["state"], json!({}));
    assert_eq!(get("/threads/unknown/messages").await["messages"], json!([]));
    assert_eq!(get("/threads/unknown/events").await["events"], json!([]));
    assert_eq!(get("/threads/unknown/state").await["state"], Value::Null);

    let named =
        ask(&fixture, request("PATCH", "/threads/a", json!({"agentId": "default", "name": "New"})))
            .await;
    assert_eq!((named.status, &named.json()["name"]), (StatusCode::OK, &json!("New")));
    let body = json!({"agentId": "default"});
    let archived = ask(&fixture, request("POST", "/threads/a/archive", body.clone())).await;
    assert_eq!(archived.json(), json!({"threadId": "a", "archived": true}));
    assert!(!ids(&get("/threads").await).contains(&"a".to_owned()));
    assert!(ids(&get("/threads?includeArchived=true").await).contains(&"a".to_owned()));
    ask(&fixture, request("PATCH", "/threads/a", json!({"archived": false}))).await;
    assert!(ids(&get("/threads").await).contains(&"a".to_owned()));
    let deleted = ask(&fixture, request("DELETE", "/threads/a", body)).await;
    assert_eq!(deleted.json(), json!({"threadId": "a", "deleted": true}));
    let gone = ask(&fixture, request("DELETE", "/threads/a", Value::Null)).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);

    // Pages follow each other without gap or double.
    let first = get("/threads?limit=1").await;
    let next = first["nextCursor"].as_str().unwrap();
    let second = get(&format!("/threads?limit=1&cursor={next}")).await;
    let mut found = [ids(&first), ids(&second)].concat();
    found.sort();
    assert_eq!(found, ["b", "c/d"]);
    assert_eq!(second["nextCursor"], Value::Null);

    // The same through the single route.
    let params = json!({"path": "/threads?agentId=failing", "httpMethod": "GET"});
    let tunnelled = ask(&fixture, envelope("resource/request", params, Value::Null)).await;
    assert_eq!(ids(&tunnelled.json()), ["b"]);

    for _ in 0..2 {
        let cleared = ask(&fixture, request("POST", "/threads/clear", Value::Null)).await;
        assert_eq!(cleared.status, StatusCode::NO_CONTENT);
    }
    assert!(ids(&get("/threads").await).is_empty());
}

/// checklist 60
#[tokio::test]
async fn the_vendors_features_are_declined() {
    let fixture = fixture();
    let metadata = ask(&fixture, request("GET", "/inspector-metadata", Value::Null)).await;
    assert_eq!((metadata.status, metadata.body.as_str()), (StatusCode::NO_CONTENT, ""), "60");
    assert_eq!(metadata.headers["cache-control"], "no-store, private");
    let enveloped = ask(&fixture, envelope("inspector/metadata", Value::Null, Value::Null)).await;
    assert_eq!(enveloped.status, StatusCode::NO_CONTENT, "12");
    for path in ["/annotate", "/threads/subscribe"] {
        let answer = ask(&fixture, request("POST", path, json!({}))).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "60: {path}");
        assert!(answer.json()["error"].is_string(), "60");
    }
    let debug = ask(&fixture, request("GET", "/cpk-debug-events", Value::Null)).await;
    assert_eq!(debug.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_is_not_known_is_told_how_to_be() {
    use agui_agent::BoxFuture;
    use agui_runtime::{Authorize, BearerTokens, Principal};
    use agui_server::Refusal;
    use http::{HeaderValue, request::Parts};

    struct Realm;
    impl Authorize for Realm {
        fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
            let challenge = HeaderValue::from_static("Basic realm=\"agui\"");
            Box::pin(std::future::ready(Err(Refusal::unauthorized(challenge))))
        }
    }
    let tokens = BearerTokens::new().accept("secret", Principal::of_tenant("a"));
    let bearer = fixture_with(|builder| builder.authorize(tokens));
    let realm = fixture_with(|builder| builder.authorize(Realm));
    for (fixture, challenge) in [(&bearer, "Bearer"), (&realm, "Basic realm=\"agui\"")] {
        let answer = ask(fixture, request("GET", "/info", Value::Null)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(answer.headers["www-authenticate"], challenge);
        assert_eq!(answer.headers.get_all("www-authenticate").iter().count(), 1);
    }
    let mut known = request("GET", "/info", Value::Null);
    known.headers_mut().insert("authorization", HeaderValue::from_static("Bearer secret"));
    assert_eq!(ask(&bearer, known).await.status, StatusCode::OK);
}
