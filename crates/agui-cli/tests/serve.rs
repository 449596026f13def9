//! `agui serve`, from the outside.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use support::{Server, agui, finish, run, run_with_result};

const WORDS: [&str; 14] = [
    "help",
    "reasoning",
    "tools",
    "frontend",
    "state",
    "steps",
    "activity",
    "subagents",
    "approval",
    "history",
    "custom",
    "result",
    "error",
    "slow",
];

fn input(text: &str) -> String {
    let message = json!({ "id": "u1", "role": "user", "content": text });
    json!({ "threadId": "t", "runId": "r", "messages": [message] }).to_string()
}

#[test]
fn it_says_where_everything_is() {
    let server = Server::start(&[]);
    for place in ["page", "agent", "docs"] {
        server.wait_for(place);
    }
    let (head, body) = server.request("GET /health HTTP/1.1", "");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert_eq!(body, r#"{"status":"ok"}"#);
}

#[test]
fn the_page_lets_nothing_else_run() {
    let server = Server::start(&[]);
    let (head, body) = server.request("GET / HTTP/1.1", "");
    let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy = policy.unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"));
    assert!(!policy.contains("unsafe"));
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(body.contains(&format!("<script nonce=\"{nonce}\">")));
    let (again, _) = server.request("GET / HTTP/1.1", "");
    assert!(!again.contains(nonce), "a nonce is used once");
}

#[test]
fn agents_are_listed_and_an_unknown_one_is_named() {
    let server = Server::start(&[]);
    let (_, list) = server.request("GET /agents HTTP/1.1", "");
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["agents"][0]["id"], "demo");
    let (_, declared) = server.request("GET /agents/demo/capabilities HTTP/1.1", "");
    let declared: Value = serde_json::from_str(&declared).unwrap();
    assert_eq!(list["agents"][0]["capabilities"], declared);
    let words = declared["custom"]["words"].as_array().unwrap();
    assert_eq!(words.iter().map(|it| it["word"].as_str().unwrap()).collect::<Vec<_>>(), WORDS);

    for head in [
        "POST /agents/nobody HTTP/1.1",
        "POST /agents/nobody%ff HTTP/1.1",
        "GET /agents/nobody/capabilities HTTP/1.1",
    ] {
        let (head, body) = server.request(head, &input("hello"));
        assert!(head.starts_with("http/1.1 404"), "{head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().contains("nobody"), "{body}");
    }
    for (request, status) in [
        ("GET /nowhere HTTP/1.1", "404"),
        ("POST /agents HTTP/1.1", "405"),
        ("GET /agents/demo HTTP/1.1", "405"),
        ("GET /agents/demo/x/y HTTP/1.1", "404"),
    ] {
        let (head, body) = server.request(request, "");
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}: {head}");
        assert!(head.contains("content-type: application/json"), "{request}: {head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert!(body["error"]["message"].is_string(), "{request}: {body}");
    }
}

#[test]
fn pages_from_elsewhere_are_let_in_where_they_are_named() {
    let server = Server::start(&["--allow-origin", "https://app.example"]);
    let preflight = |origin: &str| {
        let request = format!(
            "OPTIONS /agents/demo HTTP/1.1\r\norigin: {origin}\r\naccess-control-request-method: \
             POST\r\naccess-control-request-headers: authorization,content-type"
        );
        server.request(&request, "").0
    };
    for origin in
        ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1", "https://app.example"]
    {
        let head = preflight(origin);
        assert!(head.starts_with("http/1.1 204"), "{head}");
        assert!(head.contains(&format!("access-control-allow-origin: {origin}")), "{head}");
        assert!(head.contains("access-control-allow-headers: authorization,content-type"));
        assert!(head.contains("access-control-allow-methods: get,head,post"), "{head}");
    }
    for origin in ["https://evil.example", "http://localhost.evil.example", "null"] {
        assert!(!preflight(origin).contains("access-control-allow-origin"), "{origin}");
    }
    let request = "POST /agents/demo HTTP/1.1\r\ncontent-type: application/json\r\norigin: \
                   http://localhost:5173";
    let (head, _) = server.request(request, &input("history"));
    assert!(head.contains("access-control-allow-origin: http://localhost:5173"), "{head}");
    // The answer depends on both.
    let vary: Vec<&str> = head.lines().filter(|line| line.starts_with("vary: ")).collect();
    for header in ["accept", "origin"] {
        assert!(vary.iter().any(|line| line.contains(header)), "{head}");
    }

    let ran = run(&["serve", "--listen", "127.0.0.1:0", "--allow-origin", "app.example/x"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("app.example/x") && ran.stderr.contains("hint: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_taken_port_is_a_sentence_and_a_hint() {
    let server = Server::start(&[]);
    let ran = run(&["serve", "--listen", &server.address]);
    assert_eq!(ran.code, 1);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(lines[0].starts_with(&format!("error: {} is taken", server.address)));
    assert!(lines[1].starts_with("hint: ") && lines[1].contains("--listen 127.0.0.1:0"));

    let mut command = agui(&["serve"]);
    let ran = finish(command.env("AGUI_LISTEN", &server.address).spawn().unwrap());
    assert_eq!((ran.code, ran.stderr.contains(&server.address)), (1, true));
    assert_eq!(run(&["serve", "--listen", "nowhere"]).code, 2);
    assert_eq!(run(&["serve", "--log", "[="]).code, 2);
    for seconds in ["-1", "nan", "soon", "1e30"] {
        let ran = run(&["serve", &format!("--keep-alive={seconds}")]);
        assert_eq!((ran.code, ran.stderr.contains("such as 15")), (2, true), "{}", ran.stderr);
    }
}

#[test]
fn every_word_runs_to_its_end() {
    let server = Server::start(&[]);
    let url = server.demo.as_str();
    let input = |word: &str| {
        let tool = json!({ "name": "ask", "description": "asks" });
        let message = json!({ "id": "u1", "role": "user", "content": word });
        let path = support::fresh_path("input.json");
        let text = json!({ "messages": [message], "tools": [tool] }).to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let runs = WORDS.map(|word| {
        let (word, url) = (if word == "slow" { "slow 1" } else { word }, url.to_owned());
        std::thread::spawn(move || {
            let input = input(word);
            (word, run_with_result(&[&url, "--input", input.to_str().unwrap(), "--json"]))
        })
    });
    for thread in runs {
        let (word, ran) = thread.join().unwrap();
        let (ending, code) = match word {
            "approval" => ("interrupted", 3),
            "error" => ("failed", 1),
            _ => ("completed", 0),
        };
        assert_eq!(ran.report["ending"], ending, "{word}: {}", ran.stderr);
        assert_eq!((ran.code, &ran.report["exitCode"]), (code, &json!(code)), "{word}");
        assert_eq!(ran.report["warnings"], json!([]), "{word}");
        assert_eq!(ran.types()[0], "RUN_STARTED", "{word}");
        assert!(ran.types().last().unwrap().starts_with("RUN_"), "{word}");
        let new = ran.report["newMessages"].as_array().unwrap();
        assert!(!new.is_empty(), "{word}");
        assert_eq!(ran.report["messages"].as_array().unwrap().len(), new.len() + 1, "{word}");
        let calls = ran.report["pendingToolCalls"].as_array().unwrap().len();
        assert_eq!(calls, usize::from(word == "frontend"), "{word}");
    }
}

#[test]
fn both_forms_of_a_stream_come_to_the_same() {
    // T-5
    let server = Server::start(&[]);
    let [sse, proto] = ["sse", "proto"].map(|form| {
        let ran = run_with_result(&[&server.demo, "tools", "--json", "--wire", form]);
        assert_eq!((ran.code, &ran.report["warnings"]), (0, &json!([])), "{}", ran.stderr);
        ran
    });
    assert_eq!(sse.types(), proto.types());
    let contents = |report: &Value| {
        let messages = report["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(contents(&sse.report), contents(&proto.report));
}

#[test]
fn a_silent_run_is_kept_alive() {
    // T-17
    let server = Server::start(&["--keep-alive", "0.2"]);
    let request = "POST /agents/demo HTTP/1.1\r\ncontent-type: application/json";
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let body = input("slow 300");
    let length = body.len();
    write!(socket, "{request}\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
        .unwrap();
    // A word comes every second.
    let comment = BufReader::new(socket)
        .lines()
        .map_while(Result::ok)
        .take(40)
        .any(|line| line.starts_with(": "));
    assert!(comment);
}

#[test]
fn the_log_says_what_was_asked_for_and_not_what_was_said() {
    let server = Server::start(&["--log", "info"]);
    assert_eq!(run(&["run", &server.demo, "a secret of mine"]).code, 0);
    server.wait_for("/agents/demo");
    drop(server.request("GET /health?key=secret HTTP/1.1", ""));
    #[cfg(unix)]
    {
        support::signal(&server.child, "TERM");
        let (_, rest) = server.wait();
        assert!(rest.iter().any(|line| line.contains("/health")), "{rest:?}");
        assert!(!rest.iter().any(|line| line.contains("secret")), "{rest:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_cancels_the_runs_and_ends_the_server() {
    // P-11
    for name in ["TERM", "INT"] {
        let server = Server::start(&[]);
        let mut client = agui(&["run", &server.demo, "slow 300", "--json"]).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let says = |line: &str, text: &str| line.contains(text);
        assert!(lines.by_ref().any(|line| says(&line.unwrap(), "TEXT_MESSAGE_CONTENT")));
        support::signal(&server.child, name);
        let last: Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
        assert_eq!(last["type"], "RUN_FINISHED");
        assert_eq!(last["outcome"]["type"], "cancelled");
        assert_eq!(client.wait().unwrap().code(), Some(4));
        assert_eq!(server.wait().0, Some(0), "{name}");
    }
}

#[test]
fn a_page_that_had_its_own_name_lead_here_is_refused() {
    let server = Server::start(&["--allow-host", "app.example"]);
    let ask = |host: &str| {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        write!(socket, "GET /agents HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    for host in [server.address.as_str(), "localhost:9", "app.example"] {
        assert!(ask(host).starts_with("HTTP/1.1 200 "), "{host}");
    }
    for host in ["evil.example", "localhost.evil.example:4100", ""] {
        let answer = ask(host);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{host}: {answer}");
        assert!(answer.contains("UNKNOWN_HOST") && answer.contains("--allow-host"), "{answer}");
    }
    // The target names a host as well, and more than one may be given.
    for request in
        ["GET http://evil.example/agents HTTP/1.1", "GET /agents HTTP/1.1\r\nhost: evil.example"]
    {
        assert!(server.request(request, "").0.starts_with("http/1.1 421 "), "{request}");
    }
    assert_eq!(run(&["serve", "--allow-host", "app.example:80"]).code, 2);
    assert_eq!(run(&["serve", "--max-connections", "0"]).code, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn with_few_open_files_there_are_as_many_connections_as_fit() {
    // `ulimit -n 64`: forty connections, and room for everything else.
    let server = Server::start_with("ulimit -n 64; exec \"$@\"", &[]);
    let half = || {
        let mut socket = TcpStream::connect(&server.address).unwrap();
        socket.write_all(b"POST /agents/demo HTTP/1.1\r\n").unwrap();
        socket
    };
    let _half: Vec<TcpStream> = (0..200).map(|_| half()).collect();
    let (head, _) = server.request("GET /health HTTP/1.1", "");
    assert!(head.starts_with("http/1.1 200 "), "{head}");
}

#[cfg(unix)]
#[test]
fn half_a_request_holds_no_server_up() {
    let server = Server::start(&["--log", "info"]);
    let mut head = TcpStream::connect(&server.address).unwrap();
    head.write_all(b"POST /agents/demo HTTP/1.1\r\nhost: x\r\n").unwrap();
    let _silent = TcpStream::connect(&server.address).unwrap();
    let began = std::time::Instant::now();
    support::signal(&server.child, "TERM");
    assert_eq!(server.wait().0, Some(0));
    // The grace of those that are being answered is ten.
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_the_server_at_once() {
    let server = Server::start(&["--log", "info"]);
    // A client that does not take its answer holds the server up.
    let mut socket = TcpStream::connect(&server.address).unwrap();
    let mut body: Value = serde_json::from_str(&input("state")).unwrap();
    body["state"] = json!({ "text": "x".repeat(9_000_000) });
    let body = body.to_string();
    let head = "POST /agents/demo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    write!(socket, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut said = String::new();
    while !said.contains("STATE_SNAPSHOT") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        said.push(byte[0].into());
    }

    support::signal(&server.child, "TERM");
    server.wait_for("stopping");
    support::signal(&server.child, "TERM");
    assert_eq!(server.wait().0, Some(128 + 15));
}
