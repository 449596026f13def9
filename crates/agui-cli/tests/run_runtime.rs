//! `agui run` with the URL of a runtime.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use support::{Server, agui, finish, fresh_path, read_json, run, run_with_result};

fn base(server: &Server) -> String {
    format!("http://{}/api/copilotkit", server.address)
}

fn contents(report: &Value, of: &str) -> Vec<String> {
    let messages = report.pointer(of).unwrap().as_array().unwrap();
    messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_thread_is_gone_on_with_over_each_transport() {
    let server = Server::start(&[]);
    let url = base(&server);
    for (thread, options) in [
        ("found", &[][..]),
        ("named", &["--runtime"]),
        ("rest", &["--runtime=rest"]),
        ("single", &["--runtime=single", "--agent", "default"]),
        ("agent", &["--agent", "demo"]),
    ] {
        let say = |text| run_with_result(&[&[&*url, text, "--thread", thread], options].concat());
        let first = say("hello");
        assert_eq!((first.code, &*first.stderr), (0, ""), "{thread}");
        assert_eq!(first.report["ending"], "completed");
        let second = say("state");
        assert_eq!(second.code, 0, "{thread}: {}", second.stderr);
        // Only what is new is shown; what is held goes before it.
        assert!(!second.stdout.contains(&*first.stdout), "{}", second.stdout);
        let held = contents(&first.report, "/messages");
        assert_eq!(contents(&second.report, "/messages")[..2], held, "{thread}");
        let sent = contents(&second.report, "/request/messages");
        assert_eq!(sent, [&held[..], &["state".into()]].concat(), "{thread}");
        let state = second.report["state"].clone();
        assert_ne!(state, json!({}));
        let third = say("hello");
        assert_eq!(third.report["request"]["state"], state, "{thread}");
        let given = [&*url, "hello", "--thread", thread, "--state", r#"{"my":1}"#];
        let given = run_with_result(&[&given[..], options].concat());
        assert_eq!(given.report["request"]["state"], json!({"my": 1}));
    }
}

#[test]
fn a_question_of_a_thread_is_answered() {
    let server = Server::start(&[]);
    let url = base(&server);
    let thread = [&*url, "--runtime", "--thread", "t"];
    let asked = run_with_result(&[&thread[..], &["approval"]].concat());
    assert_eq!((asked.code, &asked.report["ending"]), (3, &json!("interrupted")));
    assert!(asked.stderr.contains("--runtime=auto"), "{}", asked.stderr);
    // The runtime knows what is open.
    let refused = run_with_result(&[&thread[..], &["hello"]].concat());
    assert_eq!((refused.code, &refused.report["request"]), (6, &Value::Null));
    let id = asked.report["openInterrupts"][0]["id"].as_str().unwrap();
    let answer = format!(r#"{id}={{"approved":true}}"#);
    let answered = run_with_result(&[&thread[..], &["--resume", &answer]].concat());
    assert_eq!(answered.code, 0, "{}", answered.stderr);
    assert!(answered.stdout.contains("deleted"), "{}", answered.stdout);
    assert_eq!(answered.report["openInterrupts"], json!([]));
}

#[test]
fn what_a_runtime_refuses_is_said_in_its_words() {
    let server = Server::start(&[]);
    let url = base(&server);
    let unknown = run_with_result(&[&url, "hello", "--agent", "no such"]);
    assert_eq!((unknown.code, &unknown.report["ending"]), (7, &json!("failed")));
    let error = &unknown.report["error"];
    assert_eq!(error["class"], "http");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no such agent") && message.contains("\"no such\""), "{message}");
    assert!(unknown.stderr.contains("hint: --agent names"), "{}", unknown.stderr);

    // What is said to be a runtime's is not used as an agent's.
    let none = run_with_result(&[&server.demo, "hello", "--runtime"]);
    assert_eq!(none.code, 7);
    let message = none.report["error"]["message"].as_str().unwrap();
    assert!(message.contains("GET …/info: HTTP 404"), "{message}");
    assert!(message.contains("`info`: HTTP 4"), "{message}");
    assert!(none.stderr.contains("/api/copilotkit"), "{}", none.stderr);

    let wrong = run(&["run", &url, "hello", "--runtime=graphql"]);
    assert_eq!(wrong.code, 2);
}

/// A server that is given the answers to its requests, and tells the first line of each.
fn scripted(answers: Vec<String>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut socket, _)) = listener.accept() else { return };
            let _ = tell.send(request(&mut socket));
            // The client may let go at any time.
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    (url, told)
}

/// The first line of a request, once all of it has come.
fn request(socket: &mut TcpStream) -> String {
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = socket.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the request was cut off");
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return text.lines().next().unwrap().to_owned();
        }
    }
}

fn refusal(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_url_is_asked_whether_it_is_a_runtimes_only_where_it_refused_a_run() {
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        let (url, told) = scripted(vec![refusal(status, "what?"), refusal("404 Not Found", "")]);
        let ran = run_with_result(&[&url, "hello"]);
        assert_eq!(ran.code, 7);
        // It is told what the run was refused with.
        let message = ran.report["error"]["message"].as_str().unwrap();
        assert!(message.contains(&status[..3]) && message.contains("what?"), "{message}");
        let asked: Vec<_> = told.iter().collect();
        assert_eq!(asked, ["POST /x HTTP/1.1", "GET /x/info HTTP/1.1"]);
    }
    for status in ["401 Unauthorized", "403 Forbidden", "409 Conflict", "422 No", "500 Broken"] {
        let (url, told) = scripted(vec![refusal(status, "no")]);
        assert_eq!(run(&["run", &url, "hello"]).code, 7);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["POST /x HTTP/1.1"]);
    }
}

/// Waits until a program has written something that contains a text.
fn wait_for(child: &mut Child, text: &str) {
    let (out, mut seen) = (child.stdout.as_mut().unwrap(), Vec::new());
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended before");
        seen.push(byte[0]);
    }
}

#[cfg(unix)]
#[test]
fn what_is_cancelled_is_stopped_at_the_runtime() {
    let server = Server::start(&[]);
    let url = base(&server);
    let file = fresh_path("result.json");
    let arguments = ["run", &url, "slow 300", "--runtime", "--thread", "t"];
    let mut child =
        agui(&[&arguments[..], &["--result", file.to_str().unwrap()]].concat()).spawn().unwrap();
    wait_for(&mut child, " ");
    // With an --input the thread is not asked for, which would wait for the end of the run.
    let input = fresh_path("input.json");
    std::fs::write(&input, r#"{"threadId":"t","messages":[]}"#).unwrap();
    let input = ["--input", input.to_str().unwrap()];
    let busy = run_with_result(&[&[&*url, "hello", "--runtime"], &input[..]].concat());
    assert_eq!(busy.code, 7);
    assert!(busy.stderr.contains("the thread is busy"), "{}", busy.stderr);
    assert!(busy.stderr.contains("hint: wait for the end of the run"), "{}", busy.stderr);
    support::signal(&child, "INT");
    let ran = finish(child);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(read_json(&file)["ending"], "cancelled");
    // The thread is free at once: otherwise this would wait for five minutes.
    let next = run_with_result(&[&url, "hello", "--runtime", "--thread", "t"]);
    assert_eq!(next.code, 0, "{}", next.stderr);
    assert_eq!(contents(&next.report, "/request/messages")[0], "slow 300");
}
