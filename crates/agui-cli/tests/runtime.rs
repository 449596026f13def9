//! `agui serve` as a runtime: threads in a file, a process that is killed, agents behind URLs.

mod support;

use serde_json::{Value, json};

use support::{Server, agui, finish, fresh_path};

const BASE: &str = "/api/copilotkit";

fn post(server: &Server, path: &str, body: &Value) -> (String, String) {
    let head = format!("POST {BASE}{path} HTTP/1.1\r\ncontent-type: application/json");
    server.request(&head, &body.to_string())
}

fn input(thread: &str, run: &str, said: &str) -> Value {
    let message = json!({"id": format!("message-{run}"), "role": "user", "content": said});
    json!({"threadId": thread, "runId": run, "messages": [message], "tools": [], "context": []})
}

/// The events of a body of server-sent events, chunked or not.
fn events(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn a_thread_outlives_a_process_that_is_killed() {
    let log = fresh_path("threads.sqlite");
    let log = log.to_str().unwrap();
    let mut server = Server::start(&["--journal", log]);
    let (_, body) = post(&server, "/agent/default/run", &input("t", "r1", "hello"));
    let first = events(&body);
    assert_eq!(types(&first).last(), Some(&"RUN_FINISHED"));

    // A run that goes on while the process is killed.
    let client = std::net::TcpStream::connect(&server.address).unwrap();
    let body = input("t", "r2", "slow 300").to_string();
    let head = format!(
        "POST {BASE}/agent/default/run HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    let mut seen = String::new();
    {
        use std::io::{Read, Write};
        let mut client = client;
        client.write_all(head.as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        while seen.matches("TEXT_MESSAGE_CONTENT").count() < 3 {
            let read = client.read(&mut buffer).unwrap();
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    }
    drop(server);

    let server = Server::start(&["--journal", log]);
    let (_, body) = post(&server, "/agent/default/connect", &input("t", "x", "ignored"));
    let replayed = events(&body);
    assert_eq!(replayed[..first.len()], first, "what was shown is there");
    for shown in events(&seen).iter().filter(|event| event["type"] != "RUN_STARTED") {
        assert!(replayed.contains(shown), "{shown}");
    }
    let last = replayed.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("LEASE_LAPSED")));

    // The thread is usable at once, and what failed does not stop a replay.
    let (_, body) = post(&server, "/agent/default/run", &input("t", "r3", "hello"));
    assert_eq!(types(&events(&body)).last(), Some(&"RUN_FINISHED"));
    let (_, body) = post(&server, "/agent/default/connect", &input("t", "y", "ignored"));
    let replayed = events(&body);
    assert_eq!(types(&replayed).iter().filter(|it| **it == "RUN_FINISHED").count(), 3);
    assert!(!types(&replayed).contains(&"RUN_ERROR"));
}

#[test]
fn agents_behind_urls_are_served_and_the_first_is_the_default() {
    let remote = Server::start(&[]);
    let named = format!("echo={}", remote.demo);
    let server = Server::start(&["--agent", &named]);
    let (_, info) = server.request(&format!("GET {BASE}/info HTTP/1.1"), "");
    let info: Value = serde_json::from_str(&info).unwrap();
    let agents: Vec<&String> = info["agents"].as_object().unwrap().keys().collect();
    assert_eq!(agents, ["default", "demo", "echo"]);
    let description = info["agents"]["default"]["description"].as_str().unwrap();
    assert!(description.contains(&remote.address), "{description}");
    let (_, body) = post(&server, "/agent/echo/run", &input("t", "r1", "hello"));
    assert_eq!(types(&events(&body)).last(), Some(&"RUN_FINISHED"));

    let (head, _) = server.request("GET /agents/echo HTTP/1.1", "");
    assert!(head.starts_with("http/1.1 405"), "{head}");
    for wrong in [
        "echo",
        "=http://127.0.0.1:1/",
        "a/b=http://127.0.0.1:1/",
        "demo=http://127.0.0.1:1/",
        "a=ftp://x",
    ] {
        let ran =
            finish(agui(&["serve", "--listen", "127.0.0.1:0", "--agent", wrong]).spawn().unwrap());
        assert_eq!(ran.code, 2, "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn elsewhere_than_on_this_machine_nobody_lists_or_deletes() {
    let mut server = Server::start_on("0.0.0.0:0", &[]);
    server.address = server.address.replace("0.0.0.0", "127.0.0.1");
    for (method, path) in
        [("GET", "/threads"), ("DELETE", "/threads/t"), ("POST", "/threads/clear")]
    {
        let (head, _) = server.request(&format!("{method} {BASE}{path} HTTP/1.1"), "");
        assert!(head.starts_with("http/1.1 403"), "{method} {path}: {head}");
    }
    let (head, _) = post(&server, "/agent/default/run", &input("t", "r1", "hello"));
    assert!(head.starts_with("http/1.1 200"), "{head}");
}

#[cfg(unix)]
#[test]
fn after_an_orderly_end_one_file_holds_the_threads() {
    let log = fresh_path("threads.sqlite");
    let server = Server::start(&["--journal", log.to_str().unwrap()]);
    let (_, body) = post(&server, "/agent/default/run", &input("t", "r1", "hello"));
    let shown = events(&body);
    support::signal(&server.child, "TERM");
    assert_eq!(server.wait().0, Some(0));

    let copy = fresh_path("copy.sqlite");
    std::fs::copy(&log, &copy).unwrap();
    let server = Server::start(&["--journal", copy.to_str().unwrap()]);
    let (_, body) = post(&server, "/agent/default/connect", &input("t", "x", "ignored"));
    assert_eq!(events(&body), shown);
}

#[cfg(unix)]
#[test]
fn an_answer_that_was_asked_for_is_not_warned_of() {
    // P-70
    let server = Server::start(&[]);
    let (_, body) = post(&server, "/agent/default/run", &input("t", "r1", "approval"));
    let asked = events(&body).pop().unwrap();
    let interrupt = asked["outcome"]["interrupts"][0]["id"].clone();
    let mut answer = input("t", "r2", "go on");
    answer["messages"] = json!([]);
    answer["resume"] =
        json!([{"interruptId": interrupt, "status": "resolved", "payload": {"approved": true}}]);
    let (_, body) = post(&server, "/agent/default/run", &answer);
    assert!(body.contains(r#""content":"deleted""#), "{body}");
    support::signal(&server.child, "TERM");
    let (_, told) = server.wait();
    assert!(!told.iter().any(|line| line.contains("WARN")), "{told:?}");
}

/// checklist 61, 62, 63; deviate 12.2
#[test]
fn pages_of_another_origin_reach_every_route() {
    let server = Server::start(&["--allow-origin", "https://app.example"]);
    let origin = "https://app.example";
    for path in ["", "/info", "/agent/default/run", "/threads/t", "/memories", "/nothing/here"] {
        for method in ["GET", "POST", "PATCH", "DELETE"] {
            let (head, body) = server.request(
                &format!(
                    "OPTIONS {BASE}{path} HTTP/1.1\r\norigin: {origin}\r\n\
                     access-control-request-method: {method}\r\n\
                     access-control-request-headers: authorization,content-type,x-tenant"
                ),
                "",
            );
            assert!(head.starts_with("http/1.1 204"), "{path}: {head}");
            assert!(body.is_empty() && !head.contains("content-length"), "{path}: {head}");
            let line = |name: &str| {
                let lines = head.lines().filter_map(|line| line.strip_prefix(name));
                lines.collect::<Vec<_>>().join(",")
            };
            assert_eq!(line("access-control-allow-origin: "), origin, "{path}");
            let headers = line("access-control-allow-headers: ");
            assert_eq!(headers, "authorization,content-type,x-tenant", "{path}");
            let methods = line("access-control-allow-methods: ");
            assert!(methods.split(',').any(|it| it.eq_ignore_ascii_case(method)), "{methods}");
            assert!(line("vary: ").contains("origin"), "{head}");
        }
    }
    // On streams, on refusals, and on nothing for those who are not let in.
    let run = input("t", "r1", "hello").to_string();
    for (request, body, status) in [
        ("POST /agent/default/run", &*run, 200),
        ("POST /agent/nobody/run", &*run, 404),
        ("POST /agent/default/run", "garbage", 400),
        ("GET /nothing", "", 404),
        ("GET /agent/default/run", "", 405),
        ("GET /threads", "", 200),
    ] {
        let (method, path) = request.split_once(' ').unwrap();
        for (origin, allowed) in [(origin, true), ("https://evil.example", false)] {
            let head = format!(
                "{method} {BASE}{path} HTTP/1.1\r\norigin: {origin}\r\n\
                 content-type: application/json"
            );
            let (head, _) = server.request(&head, body);
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}: {head}");
            let named = format!("access-control-allow-origin: {origin}");
            assert_eq!(head.contains(&named), allowed, "{request}: {head}");
            assert!(!head.contains("access-control-allow-origin: *"), "{head}");
            assert!(head.lines().any(|it| it.starts_with("vary: ") && it.contains("origin")));
        }
        // Another run would find the thread busy only while the first goes on.
        let cleared = server.request(&format!("POST {BASE}/threads/clear HTTP/1.1"), "").0;
        assert!(cleared.starts_with("http/1.1 204"), "{cleared}");
    }
}
