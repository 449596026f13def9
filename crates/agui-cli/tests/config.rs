//! `agui serve` with a configuration: what it judges, whom it lets in, what it logs and keeps.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use support::{Server, agui, finish, fresh_folder_with, fresh_path};

const BASE: &str = "/api/copilotkit";

const TOKENS: &str = "\
[auth.tokens.ada]
token = { env = \"ADA\" }
[auth.tokens.bob]
token = \"bobs-token\"
tenant = \"ada\"
[auth.tokens.eve]
token = \"eves-token\"
";

fn input(thread: &str, said: &str) -> String {
    let message = json!({"id": "m", "role": "user", "content": said});
    json!({"threadId": thread, "runId": "r", "messages": [message]}).to_string()
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

fn bearer(line: &str, token: &str) -> String {
    let json = "content-type: application/json";
    format!("{line} HTTP/1.1\r\n{json}\r\nauthorization: Bearer {token}")
}

#[test]
fn a_configuration_is_judged_and_shown() {
    let check = |file: &str, args: &[&str], variables: &[(&str, &str)]| {
        let mut command = agui(&[&["serve", "--check"], args].concat());
        command.current_dir(fresh_folder_with("agui.toml", file));
        finish(command.envs(variables.iter().copied()).spawn().unwrap())
    };
    let file = format!("listen = \"127.0.0.1:1\"\n[limits]\nruns = 5\n{TOKENS}");
    let variables = [("ADA", "adas-token"), ("AGUI_LIMITS__VIEWERS", "6")];
    let ran = check(&file, &["--keep-alive", "3s"], &variables);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    for line in [
        "listen = \"127.0.0.1:1\"  # agui.toml:1:10",
        "runs = 5  # agui.toml:3:8",
        "viewers = 6  # AGUI_LIMITS__VIEWERS",
        "keep-alive = \"3s\"  # --keep-alive",
        "journal = \"memory:\"  # AGUI_JOURNAL",
        "token = { env = \"ADA\" }  # agui.toml:5:9",
        "token = \"[redacted]\"  # agui.toml:7:9",
        "[agents.demo]",
    ] {
        assert!(ran.stdout.lines().any(|it| it == line), "{line}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("-token"), "{}", ran.stdout);
    // What is printed is a configuration as well.
    let printed = ran.stdout.replacen("[redacted]", "one", 1).replace("[redacted]", "two");
    let again = check(&printed, &[], &[("ADA", "adas-token")]);
    assert_eq!(again.code, 0, "{}", again.stderr);

    let wrong = check("listen = 5\n[limits]\nrunz = 1", &["--max-connections", "0"], &[]);
    assert_eq!((wrong.code, &*wrong.stdout), (2, ""));
    let lines: Vec<&str> = wrong.stderr.lines().collect();
    let places =
        ["agui.toml:1:10: listen: ", "--max-connections: ", "agui.toml:3:1: limits.runz: "];
    assert_eq!(lines.len(), 2 * places.len(), "{lines:?}");
    for (pair, place) in lines.chunks(2).zip(places) {
        assert!(pair[0].starts_with(&format!("error: {place}")), "{lines:?}");
        assert!(pair[1].starts_with("hint: "), "{lines:?}");
    }
    // Without --check the same is told, and nothing is served.
    let mut command = agui(&["serve"]);
    command.current_dir(fresh_folder_with("agui.toml", "listen = 5"));
    assert_eq!(finish(command.spawn().unwrap()).code, 2);
    let named = fresh_path("other.toml");
    let ran = check("", &["--config", named.to_str().unwrap()], &[]);
    assert!(ran.code == 2 && ran.stderr.contains("other.toml"), "{}", ran.stderr);
    std::fs::write(&named, "busy = \"supersede\"").unwrap();
    let ran = check("listen = 5", &[], &[("AGUI_CONFIG", named.to_str().unwrap())]);
    assert!(ran.code == 0 && ran.stdout.contains("busy = \"supersede\""), "{}", ran.stderr);
    let wrong = check("listen = \"0.0.0.0:1\"\nsingle-user = true", &[], &[]);
    assert!(wrong.stderr.contains("everybody who reaches this machine"), "{}", wrong.stderr);
}

#[test]
fn those_who_are_known_are_let_in_everywhere_and_nobody_else() {
    let server = Server::configured(TOKENS, &[("ADA", "adas-token")], &[]);
    let run = input("t", "hello");
    let upgrade = "GET /agents/demo HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    for (line, body) in [
        ("POST /agents/demo", &*run),
        ("GET /agents/demo/capabilities", ""),
        ("GET /agents", ""),
        (&format!("GET {BASE}/info"), ""),
        (&format!("GET {BASE}/threads"), ""),
        (&format!("POST {BASE}/agent/demo/run"), &run),
    ] {
        let json = "content-type: application/json";
        let (head, _) = server.request(&format!("{line} HTTP/1.1\r\n{json}"), body);
        assert_eq!(status(&head), 401, "{line}: {head}");
        assert!(head.contains("www-authenticate: bearer"), "{line}: {head}");
        let (head, _) = server.request(&bearer(line, "wrong"), body);
        assert_eq!(status(&head), 401, "{line}: {head}");
        let (head, _) = server.request(&bearer(line, "adas-token"), body);
        assert_eq!(status(&head), 200, "{line}: {head}");
    }
    let (head, _) = server.request(upgrade, "");
    assert_eq!(status(&head), 401, "{head}");
    // Not even which agents there are is told to anybody.
    for path in ["/agents/nobody", "/agents/nobody/capabilities"] {
        let (head, _) = server.request(&format!("GET {path} HTTP/1.1"), "");
        assert_eq!(status(&head), 401, "{path}: {head}");
        let (head, _) = server.request(&bearer(&format!("GET {path}"), "adas-token"), "");
        assert_eq!(status(&head), 404, "{path}: {head}");
    }
    for path in ["/", "/health", "/ready"] {
        let (head, _) = server.request(&format!("GET {path} HTTP/1.1"), "");
        assert_eq!(status(&head), 200, "{path}: {head}");
    }

    // Bob is of ada's tenant, eve of her own.
    let threads = |token: &str| {
        let (_, body) = server.request(&bearer(&format!("GET {BASE}/threads"), token), "");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["threads"].as_array().unwrap().len()
    };
    assert_eq!(["adas-token", "bobs-token", "eves-token"].map(threads), [1, 1, 0]);
    let clear = bearer(&format!("POST {BASE}/threads/clear"), "eves-token");
    server.request(&clear, "{}");
    assert_eq!(threads("adas-token"), 1);
}

#[test]
fn pages_of_other_origins_may_send_credentials_where_they_may_call() {
    // Checklist of docs: 61, 62, 63.
    let file = format!("[cors]\norigins = [\"*\"]\ncredentials = true\n{TOKENS}");
    let server = Server::configured(&file, &[("ADA", "adas-token")], &[]);
    let origin = "origin: https://app.example";
    let vary =
        |head: &str| head.lines().any(|it| it.starts_with("vary: ") && it.contains("origin"));
    for path in ["/agents/demo", "/nowhere", &format!("{BASE}/threads/t"), BASE] {
        for method in ["POST", "PATCH", "DELETE"] {
            let (head, body) = server.request(
                &format!(
                    "OPTIONS {path} HTTP/1.1\r\n{origin}\r\naccess-control-request-method: \
                     {method}\r\naccess-control-request-headers: authorization,x-mine"
                ),
                "",
            );
            assert_eq!((status(&head), &*body), (204, ""), "{path}: {head}");
            for line in [
                "access-control-allow-origin: https://app.example",
                "access-control-allow-credentials: true",
                "access-control-allow-headers: authorization,x-mine",
                "access-control-allow-methods: get,head,post,patch,delete",
            ] {
                assert!(head.lines().any(|it| it == line), "{line}: {head}");
            }
            assert!(vary(&head) && !head.contains(": *"), "{head}");
        }
    }
    let run = input("t", "hello");
    for (line, token, body, expected) in [
        ("POST /agents/demo", "adas-token", &*run, 200),
        (&format!("POST {BASE}/agent/default/run"), "adas-token", &run, 200),
        (&format!("GET {BASE}/info"), "wrong", "", 401),
        ("POST /agents/demo", "adas-token", "{", 400),
        ("GET /nowhere", "adas-token", "", 404),
        ("DELETE /agents", "adas-token", "", 405),
        (&format!("GET {BASE}/agent/default/run"), "adas-token", "", 405),
    ] {
        let (head, _) = server.request(&format!("{}\r\n{origin}", bearer(line, token)), body);
        assert_eq!(status(&head), expected, "{line}: {head}");
        assert!(head.contains("access-control-allow-origin: https://app.example"), "{head}");
        assert!(head.contains("access-control-allow-credentials: true"), "{head}");
        assert!(head.contains("access-control-expose-headers: x-request-id"), "{head}");
        assert!(vary(&head), "{line}: {head}");
    }
}

#[test]
fn an_agent_gets_the_headers_of_its_configuration() {
    let remote = Server::configured("[auth.tokens.me]\ntoken = \"from-the-environment\"", &[], &[]);
    let file = format!(
        "[agents.far]\nkind = \"http\"\nurl = \"{}\"\n\
         headers = {{ Authorization = \"Bearer ${{FAR}}\" }}",
        remote.demo
    );
    let server = Server::configured(&file, &[("FAR", "from-the-environment")], &[]);
    for (line, body) in [
        ("POST /agents/far".to_owned(), input("t", "hello")),
        (format!("POST {BASE}/agent/default/run"), input("t", "hello")),
    ] {
        // What the server is configured with wins.
        let (head, body) = server.request(&bearer(&line, "of-the-client"), &body);
        assert_eq!(status(&head), 200, "{head}");
        assert!(body.contains("RUN_FINISHED"), "{line}: {body}");
    }
}

#[test]
fn the_base_path_is_where_it_is_configured() {
    let server = Server::configured("base-path = \"/chat/\"\nsingle-user = false", &[], &[]);
    for (path, expected) in [("/chat/info", 200), (&format!("{BASE}/info"), 404)] {
        let (head, _) = server.request(&format!("GET {path} HTTP/1.1"), "");
        assert_eq!(status(&head), expected, "{path}: {head}");
    }
    // Nobody is known, though the address is a loopback one.
    let (head, _) = server.request("GET /chat/threads HTTP/1.1", "");
    assert_eq!(status(&head), 403, "{head}");
}

#[test]
fn limits_hold_at_their_edge() {
    let server =
        Server::configured("[limits]\nbody = 400\nheaders = 10\nrun-deadline = 0.2", &[], &[]);
    let body = |bytes: usize| {
        let empty = input("t", "").len();
        input("t", &"x".repeat(bytes - empty))
    };
    for path in ["/agents/demo".to_owned(), format!("{BASE}/agent/default/run")] {
        let line = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json");
        let (head, _) = server.request(&line, &body(400));
        assert_eq!(status(&head), 200, "{head}");
        let (head, _) = server.request(&line, &body(401));
        assert_eq!(status(&head), 413, "{head}");
        let (_, answer) = server.request(&line, &input("t2", "slow 300"));
        assert!(answer.contains("RUN_ERROR"), "{answer}");
    }
    // `request` sends three of its own.
    let with = |more: usize| {
        let more: String = (0..more).map(|at| format!("\r\nx-{at}: y")).collect();
        status(&server.request(&format!("GET /health HTTP/1.1{more}"), "").0)
    };
    assert_eq!((with(7), with(8)), (200, 431));
}

#[test]
fn a_request_has_an_id_in_its_answer_and_in_every_line_of_the_log() {
    let server = Server::start(&["--log", "info", "--log-format", "json"]);
    let (head, _) = server.request("GET /health HTTP/1.1\r\nx-request-id: Mine-1", "");
    assert!(head.contains("x-request-id: mine-1"), "{head}");
    let line = server.wait_for("/health");
    let entry: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&entry["span"]["id"], &entry["status"]), (&json!("Mine-1"), &json!(200)), "{line}");

    let (head, _) = server.request("GET /health HTTP/1.1\r\nx-request-id: not sane", "");
    let made = head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).unwrap();
    assert_eq!(made.len(), 36, "{head}");
    let entry: Value = serde_json::from_str(&server.wait_for("/health")).unwrap();
    assert_eq!(entry["span"]["id"], made);

    // A run that fails says so in a line of its own, which names the request as well.
    let run = format!("POST {BASE}/agent/default/run HTTP/1.1\r\ncontent-type: application/json");
    let run = format!("{run}\r\nx-request-id: the-run");
    let (head, _) = server.request(&run, &input("t", "error"));
    assert!(head.contains("x-request-id: the-run"), "{head}");
    let entry: Value = serde_json::from_str(&server.wait_for("the-run")).unwrap();
    let named =
        |entry: &Value| entry["spans"][0]["id"] == "the-run" || entry["span"]["id"] == "the-run";
    assert!(named(&entry), "{entry}");
}

#[cfg(unix)]
#[test]
fn at_info_the_log_holds_nothing_of_what_is_said() {
    let file = "[auth.tokens.ada]\ntoken = \"secret-token\"";
    let server = Server::configured(file, &[], &["--log", "info"]);
    let message = json!({"id": "m", "role": "user", "content": "secret-message"});
    let mut body = json!({"threadId": "t", "runId": "r", "messages": [message]});
    body["state"] = json!({"text": "secret-state"});
    body["forwardedProps"] = json!({"key": "secret-props"});
    body["unknown"] = json!("secret-member");
    for line in
        ["POST /agents/demo".to_owned(), format!("POST {BASE}/agent/default/run?k=secret-query")]
    {
        let head = format!("{}\r\nx-own: secret-header", bearer(&line, "secret-token"));
        let (head, answer) = server.request(&head, &body.to_string());
        assert_eq!(status(&head), 200, "{head}");
        assert!(answer.contains("RUN_FINISHED"), "{answer}");
    }
    let broken =
        r#"{"threadId":"t","runId":"r","messages":[{"id":"secret-id","role":"user","content":7}]}"#;
    server.request(&bearer("POST /agents/demo", "secret-token"), broken);
    server.request(&bearer("POST /agents/demo", "secret-wrong"), broken);
    support::signal(&server.child, "TERM");
    let (code, lines) = server.wait();
    assert_eq!(code, Some(0));
    assert!(lines.iter().any(|line| line.contains("answered")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
}

#[test]
fn old_threads_are_removed_while_the_server_runs() {
    let log = fresh_path("threads.sqlite");
    let file = "[retention]\nthreads = 1\ncompact-after = 0.001\nevery = 0.01";
    let args = ["--journal", log.to_str().unwrap(), "--log", "info"];
    let server = Server::configured(file, &[], &args);
    let run = format!("POST {BASE}/agent/default/run HTTP/1.1\r\ncontent-type: application/json");
    for thread in ["a", "b"] {
        let (_, answer) = server.request(&run, &input(thread, "hello"));
        assert!(answer.contains("RUN_FINISHED"), "{answer}");
    }
    while !server.wait_for("tidied").contains("removed=1") {}
    let (_, body) = server.request(&format!("GET {BASE}/threads HTTP/1.1"), "");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["threads"].as_array().unwrap().len(), 1, "{body}");
    assert_eq!(body["threads"][0]["id"], "b");
    // What was compacted is replayed as it was.
    let connect = run.replace("/run", "/connect");
    let (_, answer) = server.request(&connect, &input("b", "x"));
    assert!(answer.contains("RUN_STARTED") && answer.contains("RUN_FINISHED"), "{answer}");

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for end in ["", "-wal", "-shm", "-lock"] {
            let path = format!("{}{end}", log.display());
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{path}");
        }
    }
}

#[test]
fn a_new_run_takes_the_place_of_the_other_where_it_may() {
    let server = Server::configured("busy = \"supersede\"", &[], &[]);
    let body = input("t", "slow 300");
    let mut first = TcpStream::connect(&server.address).unwrap();
    write!(
        first,
        "POST {BASE}/agent/default/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
         application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut lines = BufReader::new(first).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("TEXT_MESSAGE_CONTENT")));
    let run = format!("POST {BASE}/agent/default/run HTTP/1.1\r\ncontent-type: application/json");
    let second = json!({"threadId": "t", "runId": "r2", "messages": [
        {"id": "m2", "role": "user", "content": "hello"}
    ]});
    let (head, answer) = server.request(&run, &second.to_string());
    assert_eq!(status(&head), 200, "{head}");
    assert!(answer.contains("RUN_FINISHED"), "{answer}");
    assert!(lines.any(|line| line.contains("RUN_FINISHED")), "the first one ends as well");
}
