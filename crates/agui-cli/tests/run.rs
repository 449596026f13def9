//! `agui run`, from the outside: exit codes, result files, and what is printed where.

mod support;

use std::io::{BufReader, Read};
use std::net::TcpListener;

use serde_json::{Value, json};
use support::{
    Peer, Ran, STREAM, Server, Step, agui, finish, fresh_path, read_json, run, run_with_result,
};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const OPENED: &str = r#"{"type":"TEXT_MESSAGE_START","messageId":"m1"}"#;
const SAID: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Hello"}"#;
const CLOSED: &str = r#"{"type":"TEXT_MESSAGE_END","messageId":"m1"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

/// The arguments for a run whose thread is `t`.
fn asking(url: &str) -> [&str; 4] {
    [url, "hi", "--thread", "t"]
}

fn against(peer: &Peer) -> Ran {
    run_with_result(&asking(&peer.url))
}

#[track_caller]
fn assert_ended(ran: &Ran, ending: &str, code: i32, class: Option<&str>) {
    assert_eq!(ran.report["ending"], ending, "{}", ran.stderr);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert_eq!(ran.report["exitCode"], code);
    assert_eq!(ran.report["error"]["class"].as_str(), class, "{}", ran.stderr);
    assert_eq!(ran.report["error"].is_null(), class.is_none());
}

#[test]
fn a_completed_run() {
    let peer = Peer::streaming(&[STARTED, OPENED, SAID, CLOSED, FINISHED]);
    let ran = against(&peer);
    assert_ended(&ran, "completed", 0, None);
    assert_eq!((&*ran.stdout, &*ran.stderr), ("Hello\n", ""));
    let request = peer.request().unwrap();
    assert_eq!(ran.report["request"], request);
    let asked = &request["messages"][0];
    assert_eq!((&asked["role"], &asked["content"]), (&json!("user"), &json!("hi")));
    let answer = json!({ "id": "m1", "role": "assistant", "content": "Hello" });
    assert_eq!(ran.report["messages"], json!([asked, answer]));
    assert_eq!(ran.report["newMessages"], json!(["m1"]));
    assert_eq!(request["protocolVersion"], "1.0");
    // What receivers of the 0.x line insist on is there.
    for (name, nothing) in [
        ("state", json!({})),
        ("tools", json!([])),
        ("context", json!([])),
        ("forwardedProps", json!({})),
    ] {
        assert_eq!(request[name], nothing, "{name}");
    }
    let empty = ["openInterrupts", "pendingToolCalls", "usage", "warnings"];
    assert!(empty.iter().all(|name| ran.report[name] == json!([])), "{}", ran.report);
    assert_eq!((&ran.report["state"], &ran.report["result"]), (&json!({}), &Value::Null));
}

#[test]
fn ids_are_minted_anew_for_every_run() {
    let ids = [0, 1].map(|_| {
        let peer = Peer::streaming(&[STARTED, FINISHED]);
        run(&["run", &peer.url, "hi"]);
        let request = peer.request().unwrap();
        ["threadId", "runId"].map(|id| request[id].as_str().unwrap().to_owned())
    });
    for id in ids.iter().flatten() {
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'7'), "a UUID of version 7: {id}");
    }
    assert_eq!(ids.iter().flatten().collect::<std::collections::HashSet<_>>().len(), 4);
}

#[test]
fn an_interrupted_run_is_taken_up_from_its_result() {
    let server = Server::start(&[]);
    let asked = run_with_result(&[&server.demo, "approval"]);
    assert_ended(&asked, "interrupted", 3, None);
    assert!(asked.stderr.contains("May I delete notes.txt?") && asked.stderr.contains("hint: "));
    let interrupt = asked.report["openInterrupts"][0]["id"].clone();
    assert_eq!(asked.report["pendingToolCalls"], json!([]));

    let next = |resume: Value, message: &[&str]| {
        let mut input = asked.report.clone();
        input["resume"] = resume;
        let path = fresh_path("input.json");
        std::fs::write(&path, input.to_string()).unwrap();
        run_with_result(&[&[&*server.demo, "--input", path.to_str().unwrap()], message].concat())
    };
    // C-85: nothing is sent while a question is open.
    for resume in [json!([]), json!([{ "interruptId": "other", "status": "cancelled" }])] {
        let refused = next(resume, &["never mind"]);
        assert_ended(&refused, "rejected", 6, Some("interrupts"));
        assert_eq!(refused.report["request"], Value::Null);
        assert!(refused.stderr.contains("was not sent") && refused.stderr.contains("hint: "));
    }
    for (entry, outcome) in [
        (json!({ "status": "resolved", "payload": { "approved": true } }), "deleted"),
        (json!({ "status": "resolved", "payload": false }), "refused"),
        (json!({ "status": "cancelled" }), "refused"),
    ] {
        let mut entry = entry;
        entry["interruptId"] = interrupt.clone();
        let answered = next(json!([entry]), &[]);
        assert_ended(&answered, "completed", 0, None);
        assert_eq!(answered.report["openInterrupts"], json!([]));
        assert_eq!(answered.report["threadId"], asked.report["threadId"]);
        assert_eq!(answered.report["messages"][2]["content"], outcome);
        assert!(answered.stdout.contains(outcome));
    }
}

#[test]
fn a_question_is_answered_on_the_command_line() {
    let server = Server::start(&[]);
    let thread = fresh_path("it's a thread.json");
    let file = thread.to_str().unwrap();
    let args = ["run", &server.demo, "approval", "--header", "X-Key: s3cret", "--result", file];
    let asked = run(&args);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    assert!(!asked.stderr.contains("s3cret"), "{}", asked.stderr);
    let report = read_json(&thread);
    let id = report["openInterrupts"][0]["id"].as_str().unwrap();
    // What is told is what a shell takes.
    let said = asked.stderr.lines().find_map(|line| line.strip_prefix("hint: answer with agui "));
    let said = said.expect(&asked.stderr).replace("X-Key: ...", "X-Key: s3cret");
    assert!(said.contains(&format!("--resume '{id}={{\"approved\":true}}'")), "{said}");
    let agui_path = env!("CARGO_BIN_EXE_agui");
    let mut shell = std::process::Command::new("sh");
    let answered = shell.args(["-c", &format!("exec \"$0\" {said}"), agui_path]).output().unwrap();
    assert_eq!(answered.status.code(), Some(0), "{answered:?}");
    assert!(String::from_utf8(answered.stdout).unwrap().contains("deleted"));
    let after = read_json(&thread);
    assert_eq!((&after["threadId"], &after["openInterrupts"]), (&report["threadId"], &json!([])));

    // By the id alone it is cancelled.
    std::fs::write(&thread, report.to_string()).unwrap();
    let refused = run_with_result(&[&server.demo, "--input", file, "--resume", id]);
    assert_ended(&refused, "completed", 0, None);
    let entry = json!([{ "interruptId": id, "status": "cancelled" }]);
    assert_eq!(refused.report["request"]["resume"], entry);
    assert_eq!(refused.report["messages"][2]["content"], "refused");

    // The command line's word is the last, and a file may hold the answer.
    let mut input = report.clone();
    input["resume"] = json!([{ "interruptId": id, "status": "cancelled" }]);
    std::fs::write(&thread, input.to_string()).unwrap();
    let answer = fresh_path("answer.json");
    std::fs::write(&answer, "true").unwrap();
    let answer = format!("{id}=@{}", answer.display());
    let answered = run_with_result(&[&server.demo, "--input", file, "--resume", &answer]);
    let entry = json!([{ "interruptId": id, "status": "resolved", "payload": true }]);
    assert_eq!(answered.report["request"]["resume"], entry);

    // Without a result file there is nothing to paste, and how to go on is told all the same.
    let asked = run(&["run", &server.demo, "approval"]);
    assert!(asked.stderr.contains("hint: with --result FILE"), "{}", asked.stderr);
}

#[test]
fn what_a_thread_was_asked_with_is_kept_for_its_next_run() {
    let given = json!({
        "threadId": "t",
        "tools": [{ "name": "ask", "description": "asks" }],
        "context": [{ "description": "where", "value": "here" }],
        "forwardedProps": { "deep": 1 },
    });
    let thread = fresh_path("thread.json");
    std::fs::write(&thread, given.to_string()).unwrap();
    let file = thread.to_str().unwrap();
    for message in ["one", "two"] {
        let peer = Peer::streaming(&[STARTED, FINISHED]);
        let ran = run(&["run", &peer.url, message, "--input", file, "--result", file]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let request = peer.request().unwrap();
        for (name, value) in given.as_object().unwrap() {
            assert_eq!(&request[name], value, "{message}");
        }
    }
    // Also where nothing was sent.
    let mut report = read_json(&thread);
    report["openInterrupts"] = json!([{ "id": "i", "reason": "why" }]);
    std::fs::write(&thread, report.to_string()).unwrap();
    let ran = run_with_result(&["http://127.0.0.1:1/", "three", "--input", file]);
    assert_ended(&ran, "rejected", 6, Some("interrupts"));
    for (name, value) in given.as_object().unwrap() {
        assert_eq!(&ran.report[name], value);
    }
    assert_eq!(ran.report["openInterrupts"], report["openInterrupts"]);
}

#[test]
fn what_is_not_sent_of_ones_own_input_is_always_told() {
    // C-37
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let path = fresh_path("input.json");
    std::fs::write(&path, r#"{"threadId":"t","temprature":1}"#).unwrap();
    let ran = run_with_result(&[&peer.url, "hi", "--input", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("warning: the input is not sent as it is"), "{}", ran.stderr);
    assert!(ran.stderr.contains("temprature"), "{}", ran.stderr);
    assert_eq!(ran.report["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn a_message_comes_from_standard_input() {
    for (given, said) in [("one\ntwo\n", "one\ntwo"), ("a\r\n", "a"), ("-", "-"), ("\n\n", "\n")] {
        let peer = Peer::streaming(&[STARTED, FINISHED]);
        let mut command = agui(&["run", &peer.url, "-", "--thread", "t"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), given.as_bytes()).unwrap();
        assert_eq!(finish(child).code, 0);
        assert_eq!(peer.request().unwrap()["messages"][0]["content"], said);
    }
}

#[test]
fn a_run_that_was_cancelled_by_the_agent() {
    // C-13
    let cancelled =
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}"#;
    let peer = Peer::streaming(&[STARTED, OPENED, SAID, CLOSED, cancelled]);
    let ran = against(&peer);
    assert_ended(&ran, "cancelled", 4, None);
    assert_eq!(ran.stdout, "Hello\n");
}

#[test]
fn a_run_that_failed() {
    // C-10, C-11
    let error = r#"{"type":"RUN_ERROR","message":"the model went away","code":"GONE"}"#;
    let peer = Peer::streaming(&[STARTED, OPENED, SAID, error]);
    let ran = against(&peer);
    assert_ended(&ran, "failed", 1, Some("run-error"));
    assert_eq!(ran.report["error"]["message"], "the model went away");
    assert_eq!(ran.report["error"]["code"], "GONE");
    assert_eq!(ran.stdout, "Hello\n");
    assert_eq!(ran.stderr, "failed: the model went away (GONE)\n");
}

#[test]
fn a_run_that_is_cut_off() {
    // C-14, C-15
    let peer = Peer::streaming(&[STARTED, OPENED, SAID]);
    let ran = run_with_result(&[&asking(&peer.url)[..], &["--json"]].concat());
    assert_ended(&ran, "truncated", 5, Some("truncated"));
    assert_eq!(ran.types(), ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]);
    assert_eq!(ran.report["messages"][1]["content"], "Hello");

    let nothing = Peer::streaming(&[]);
    assert_ended(&against(&nothing), "truncated", 5, Some("truncated"));
    // Inside a frame: T-22 in the class, T-9 in the ending. A connection that breaks is another
    // matter.
    for cut in ["data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"mess", "data: {\"type\":\n", "data: {"]
    {
        let frames = format!("data: {STARTED}\n\ndata: {OPENED}\n\ndata: {SAID}\n\n{cut}");
        let steps = vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into()), Step::End];
        let ran = against(&Peer::new(steps));
        assert_ended(&ran, "truncated", 5, Some("sse-json"));
        assert_eq!(ran.report["messages"][1]["content"], "Hello");
        let message = ran.report["error"]["message"].as_str().unwrap();
        assert!(message.contains("cut off by the end of the body"), "{message}");
    }

    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\n\r\n<p>hi";
    let page = Peer::new(vec![Step::Raw(page.into())]);
    let ran = against(&page);
    assert_ended(&ran, "truncated", 5, Some("truncated"));
    assert!(ran.stderr.contains("text/html"), "{}", ran.stderr);
}

#[test]
fn what_came_before_a_fault_is_printed_before_it() {
    // C-12: also where both came in one read.
    let unopened = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m9","delta":"lost"}"#;
    let wrong = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":7}"#;
    let no_name = r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c1"}"#;
    for (frame, class, path, mentions) in [
        (unopened, "sequence", "/messageId", "m9"),
        (wrong, "schema", "/delta", "delta"),
        (no_name, "chunk", "/toolCallName", "toolCallName"),
        ("{\"type\":", "sse-json", "", "JSON"),
        ("[1]", "frame-shape", "", "object"),
        ("{}", "frame-shape", "/type", "type"),
    ] {
        let peer = Peer::streaming(&[STARTED, OPENED, SAID, CLOSED, frame, FINISHED]);
        let ran = run_with_result(&[&asking(&peer.url)[..], &["--json"]].concat());
        assert_ended(&ran, "rejected", 6, Some(class));
        assert_eq!(ran.types().len(), 4, "{frame}");
        assert_eq!(ran.report["error"]["path"], path, "{frame}: {}", ran.report["error"]);
        let message = ran.report["error"]["message"].as_str().unwrap();
        assert!(message.contains(mentions), "{message}");
        assert!(ran.stderr.contains(message) && ran.stderr.contains("rejected"), "{}", ran.stderr);
        assert_eq!(ran.report["messages"][1]["content"], "Hello");
        assert!(peer.request().is_some());
    }
}

#[test]
fn a_frame_without_end_hits_a_limit() {
    let endless = [&b"data: \""[..], &vec![b'x'; 11 << 20]].concat();
    let steps = vec![Step::Raw(STREAM.into()), Step::Chunk(endless), Step::Hold];
    let ran = against(&Peer::new(steps));
    assert_ended(&ran, "rejected", 6, Some("limit"));
}

#[test]
fn a_refusal_comes_with_its_status_and_body() {
    // T-19
    for (status, body, shown) in [
        ("401 Unauthorized", r#"{"error":"no such key"}"#, "no such key"),
        ("404 Not Found", "nothing here", "nothing here"),
        ("500 Internal Server Error", "", "HTTP 500"),
    ] {
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        let ran = against(&Peer::new(vec![Step::Raw(answer.into())]));
        assert_ended(&ran, "failed", 7, Some("http"));
        let message = ran.report["error"]["message"].as_str().unwrap();
        assert!(message.contains(shown) && message.contains(&status[..3]), "{message}");
        assert_ne!(ran.report["request"], Value::Null);
    }
    let nothing = Peer::new(vec![Step::Raw("HTTP/1.1 204 No Content\r\n\r\n".into())]);
    assert_ended(&against(&nothing), "failed", 7, Some("transport"));

    for (answer, class, says) in [
        ("HTTP/1.1 308 Gone\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n", "http", "/there"),
        ("HTTP/1.1 308 Gone\r\ncontent-length: 0\r\n\r\n", "http", "without a Location"),
        ("", "transport", "before an answer came"),
        ("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\u{1f}", "transport", "gzip"),
    ] {
        let ran = against(&Peer::new(vec![Step::Raw(answer.into())]));
        assert_ended(&ran, "failed", 7, Some(class));
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
}

#[test]
fn a_connection_that_dies_keeps_what_was_delivered() {
    // C-12, T-3
    let frames = format!("data: {STARTED}\n\ndata: {OPENED}\n\ndata: {SAID}\n\ndata: {{\"ty");
    let steps = vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into())];
    let ran = against(&Peer::new(steps));
    assert_ended(&ran, "failed", 7, Some("transport"));
    assert_eq!(ran.stdout, "Hello\n");
    assert_eq!(ran.report["newMessages"], json!(["m1"]));
}

#[test]
fn an_agent_that_is_not_there_is_named() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://user:s3cret@{unused}/agent?key=s3cret");
    let ran = run_with_result(&[&url, "hi"]);
    assert_ended(&ran, "failed", 7, Some("transport"));
    assert!(ran.stderr.contains(&unused) && ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("s3cret") && !ran.report.to_string().contains("s3cret"));
}

#[test]
fn malformed_input_is_not_sent() {
    // C-37
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let path = fresh_path("input.json");
    std::fs::write(&path, r#"{"messages":[{"id":"u","role":"user","content":7}]}"#).unwrap();
    let ran = run_with_result(&[&peer.url, "--input", path.to_str().unwrap()]);
    assert_ended(&ran, "rejected", 6, Some("schema"));
    assert_eq!(ran.report["error"]["path"], "/messages/0/content");
    assert_eq!(ran.report["request"], Value::Null);
    assert_eq!(peer.request(), None);
}

#[test]
fn what_is_wrong_with_the_arguments_is_found_before_anything_is_sent() {
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let url = peer.url.as_str();
    let broken = fresh_path("broken.json");
    std::fs::write(&broken, "{").unwrap();
    let broken = broken.to_str().unwrap();
    let list = fresh_path("list.json");
    std::fs::write(&list, "[]").unwrap();
    let folder = env!("CARGO_TARGET_TMPDIR");
    let secret = "Authorization: Bearer s3cret\u{7f}";
    let of_size = |name: &str, size: u64| {
        let path = fresh_path(name);
        std::fs::File::create(&path).unwrap().set_len(size).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (largest, too_large) = (of_size("largest", 64 << 20), of_size("too-large", (64 << 20) + 1));
    let deep = &*"[".repeat(128);
    let wrong: &[(&[&str], &str)] = &[
        (&[], "URL"),
        (&[url], "MESSAGE"),
        (&["not a url", "hi"], "URL"),
        (&["ftp://127.0.0.1/", "hi"], "http"),
        (&[url, "hi", "more"], "more"),
        (&[url, "hi", "--state", "{"], "--state"),
        (&[url, "hi", "--state", "@/nowhere.json"], "/nowhere.json"),
        (&[url, "hi", "--header", "s3cret"], "--header"),
        (&[url, "hi", "--header", "a b: s3cret"], "a…"),
        (&[url, "hi", "--header", "Authorization Bearer s3cret"], "Authorization…"),
        (&[url, "hi", "--header", "Authorization Bearer s3cret:"], "Authorization…"),
        (&[url, "hi", "--header", "Content-Length: 3"], "it follows from the body"),
        (&[url, "hi", "--header", "transfer-encoding: chunked"], "transfer-encoding"),
        (&[url, "hi", "--header", "connection: close"], "connection"),
        (&[url, "hi", "--header", "HOST: elsewhere"], "it follows from the URL"),
        (&[url, "hi", "--state", deep], "127 levels"),
        (&[url, "hi", "--input", &too_large], "64 MiB"),
        (&[url, "hi", "--state", &format!("@{too_large}")], "64 MiB"),
        (&[url, "--resume", &format!("id=@{too_large}")], "64 MiB"),
        // As large as it may be: it is read, and is no JSON.
        (&[url, "hi", "--input", &largest], "not JSON"),
        (&[url, "hi", "--input", "/dev/zero"], "64 MiB"),
        (&[url, "--resume", "id=yes"], "such as"),
        (&[url, "--resume", "=1"], "names no interrupt"),
        (&[url, "-", "--input", "-"], "both read standard input"),
        (&[url, "-"], "no message"),
        (&[url, "hi", "--linger", "soon"], "--linger"),
        (&[url, "hi", "--header", secret], "Authorization"),
        (&[url, "hi", "--input", "/nowhere.json"], "/nowhere.json"),
        (&[url, "hi", "--input", broken], "JSON"),
        (&[url, "hi", "--input", list.to_str().unwrap()], "object"),
        (&[url, "hi", "--result", "/nowhere/result.json"], "/nowhere/result.json"),
        (&[url, "hi", "--result", folder], folder),
        (&[url, "hi", "--result", "-"], "--result"),
        (&[url, "hi", "--max-protocol-version", "new"], "new"),
    ];
    for (args, mentions) in wrong {
        let ran = run(&[&["run"], *args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(mentions), "{mentions}: {}", ran.stderr);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
        assert!(*mentions == "127 levels" || !ran.stderr.contains("127 levels"), "{}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(peer.request(), None);
    for (listen, from) in [("localhost", true), ("4100", false)] {
        let mut command =
            if from { agui(&["serve"]) } else { agui(&["serve", "--listen", listen]) };
        if from {
            command.env("AGUI_LISTEN", listen);
        }
        let refused = finish(command.spawn().unwrap());
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains("127.0.0.1:4100"), "{}", refused.stderr);
        assert_eq!(refused.stderr.contains("AGUI_LISTEN"), from, "{}", refused.stderr);
    }
}

#[test]
fn a_result_file_is_whole_or_as_it_was() {
    let path = fresh_path("result.json");
    std::fs::write(&path, "as it was").unwrap();
    let folder = path.parent().unwrap();
    let files = || {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<Vec<_>>()
    };
    let refused = run(&["run", "nowhere", "hi", "--result", path.to_str().unwrap()]);
    assert_eq!(refused.code, 2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "as it was");

    let peer = Peer::streaming(&[STARTED, FINISHED]);
    run(&["run", &peer.url, "hi", "--thread", "t", "--result", path.to_str().unwrap()]);
    assert_eq!(read_json(&path)["ending"], "completed");
    assert_eq!(files(), ["result.json"]);

    #[cfg(unix)]
    {
        let link = folder.join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let peer = Peer::streaming(&[STARTED]);
        run(&["run", &peer.url, "hi", "--thread", "t", "--result", link.to_str().unwrap()]);
        assert!(link.is_symlink());
        assert_eq!(read_json(&path)["ending"], "truncated");

        let peer = Peer::streaming(&[STARTED, FINISHED]);
        let ran = run(&["run", &peer.url, "hi", "--thread", "t", "--result", "/dev/null"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        use std::os::unix::fs::FileTypeExt;
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}

#[cfg(unix)]
#[test]
fn a_result_file_keeps_its_mode_and_its_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let write_to = |path: &std::path::Path| {
        let peer = Peer::streaming(&[STARTED, FINISHED]);
        let args = ["run", &peer.url, "hi", "--thread", "t", "--result", path.to_str().unwrap()];
        let ran = run(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(read_json(&path.to_path_buf())["ending"], "completed");
    };
    let path = fresh_path("result.json");
    let folder = path.parent().unwrap();
    let count = || std::fs::read_dir(folder).unwrap().count();
    for mode in [0o600, 0o640, 0o666] {
        std::fs::write(&path, "as it was").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        write_to(&path);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    }

    // A second name leads to the same text.
    let other = folder.join("other.json");
    std::fs::hard_link(&path, &other).unwrap();
    std::fs::write(&path, "as it was, and much longer than the result ".repeat(1000)).unwrap();
    write_to(&path);
    assert_eq!(std::fs::metadata(&other).unwrap().nlink(), 2);
    assert_eq!(read_json(&other)["ending"], "completed");

    // A link to a link to a file that is not there yet.
    let (link, links) = (folder.join("link.json"), folder.join("links.json"));
    symlink("new.json", &link).unwrap();
    symlink(&link, &links).unwrap();
    write_to(&links);
    assert!(links.is_symlink() && link.is_symlink());
    assert_eq!(read_json(&folder.join("new.json"))["ending"], "completed");

    // As long as a name may be, and one more.
    write_to(&folder.join("n".repeat(255)));
    let too_long = folder.join("n".repeat(256));
    let refused =
        run(&["run", "http://127.0.0.1:1/", "hi", "--result", too_long.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    symlink("itself", folder.join("itself")).unwrap();
    let itself = folder.join("itself");
    let refused = run(&["run", "http://127.0.0.1:1/", "hi", "--result", itself.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(count(), 7, "nothing else is left behind");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let peer = Peer::streaming(&[STARTED, OPENED, SAID, CLOSED, FINISHED]);
    let path = fresh_path("result.json");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let args = ["run", &peer.url, "hi", "--thread", "t", "--result", path.to_str().unwrap()];
    let ran = finish(agui(&args).stdout(full).spawn().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: standard output cannot be written: "), "{}", ran.stderr);
    let report = read_json(&path);
    assert_eq!((&report["ending"], &report["exitCode"]), (&json!("failed"), &json!(1)));
    assert_eq!(report["error"]["class"], "output");

    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let ran = run(&["run", &peer.url, "hi", "--thread", "t", "--result", "/dev/full"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("/dev/full could not be written"), "{}", ran.stderr);
}

#[test]
fn a_stream_that_is_left_open_is_closed_from_here() {
    // T-18
    let frames = format!("data: {STARTED}\n\ndata: {FINISHED}\n\n");
    let steps = vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into()), Step::Hold];
    let peer = Peer::new(steps);
    let ran = run_with_result(&[&asking(&peer.url)[..], &["--linger", "0.2", "-v"]].concat());
    assert_ended(&ran, "completed", 0, None);
    assert_eq!(ran.report["warnings"][0]["rule"], "T-18");
    assert!(ran.stderr.contains("0.2 seconds (--linger)"), "{}", ran.stderr);
    // The peer was waiting for that.
    assert!(peer.request().is_some());

    // Another run may follow (C-3), and the last one may still fail (C-4).
    let next = FINISHED.replace(r#""r""#, r#""r2""#);
    let error = r#"{"type":"RUN_ERROR","message":"late"}"#;
    for (frames, ending) in [
        (&[STARTED, FINISHED, &STARTED.replace(r#""r""#, r#""r2""#), &next][..], "completed"),
        (&[STARTED, FINISHED, error], "failed"),
    ] {
        let ran =
            run_with_result(&[&asking(&Peer::streaming(frames).url)[..], &["--json"]].concat());
        assert_eq!(ran.report["ending"], ending, "{}", ran.stderr);
        assert_eq!(ran.types().len(), frames.len());
        assert_eq!(ran.report["warnings"], json!([]));
    }
}

#[test]
fn so_many_warnings_are_kept_and_the_others_counted() {
    let unknown = r#"{"type":"NEWER"}"#;
    for (count, omitted) in [(1000, 0), (1001, 1), (50_000, 49_000)] {
        let mut frames = vec![STARTED];
        frames.extend(vec![unknown; count]);
        frames.push(FINISHED);
        let peer = Peer::streaming(&frames);
        let ran = against(&peer);
        assert_ended(&ran, "completed", 0, None);
        assert_eq!(ran.report["warnings"].as_array().unwrap().len(), 1000);
        assert_eq!(ran.report["omittedWarnings"], omitted);
        let says = format!("warning: {omitted} more warnings");
        assert_eq!(ran.stderr.contains(&says), omitted > 0, "{}", ran.stderr);
    }
}

#[test]
fn names_do_not_reach_the_terminal_as_they_are() {
    let evil = "x\\n\\u202e\\u2028\\u0085error: y\\u001b[2J";
    let frames: Vec<String> = [
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"STEP_STARTED","stepName":"EVIL"}"#,
        r#"{"type":"STEP_FINISHED","stepName":"EVIL"}"#,
        r#"{"type":"CUSTOM","name":"EVIL","value":1}"#,
        r#"{"type":"EVIL"}"#,
        r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"EVIL","activityType":"EVIL","content":{"EVIL":1}}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"EVIL","toolCallName":"EVIL"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"EVIL"}"#,
        r#"{"type":"RUN_ERROR","message":"EVIL","code":"EVIL"}"#,
    ]
    .iter()
    .map(|frame| frame.replace("EVIL", evil))
    .collect();
    let peer = Peer::streaming(&frames.iter().map(String::as_str).collect::<Vec<_>>());
    let ran = run_with_result(&[&asking(&peer.url)[..], &["--verbose"]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let wrong = ['\u{1b}', '\u{202e}', '\u{2028}', '\u{85}'];
    assert!(!ran.stderr.contains(wrong), "{:?}", ran.stderr);
    assert!(!ran.stderr.lines().any(|line| line.starts_with("error: y")), "{}", ran.stderr);
    assert!(ran.stderr.lines().count() >= 9, "{}", ran.stderr);
    assert!(ran.report["error"]["message"].as_str().unwrap().contains('\u{1b}'), "data is data");
}

#[test]
fn what_a_run_came_to_is_told_in_short() {
    let finished = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"n":1},"usage":[{"provider":"p","model":"m","inputTokens":3,"outputTokens":4}]}"#;
    let state = r#"{"type":"STATE_SNAPSHOT","snapshot":{"count":7}}"#;
    let peer = Peer::streaming(&[STARTED, state, finished]);
    let ran = run(&[&["run"], &asking(&peer.url)[..], &["--verbose"]].concat());
    for line in [
        r#"result: {"n":1}"#,
        r#"state at the end: {"count":7}"#,
        "usage: p m 3 in, 4 out, 7 in all tokens",
    ] {
        assert!(ran.stderr.lines().any(|found| found == line), "{}", ran.stderr);
    }
    assert_eq!(ran.stdout, "");
}

#[test]
fn what_happens_beside_the_text_goes_to_standard_error() {
    let server = Server::start(&[]);
    let ran = run(&["run", &server.demo, "tools", "--verbose"]);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    for line in [
        r#"tool call get_weather {"city":"Paris"}"#,
        r#"tool result of get_weather: {"sky":"cloudy","celsius":18}"#,
    ] {
        assert!(ran.stderr.lines().any(|found| found == line), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains('\x1b') && !ran.stdout.contains('\x1b'));
    assert_eq!(run(&["run", &server.demo, "tools"]).stderr, "", "nobody watches");
    assert_eq!(
        run(&["run", &server.demo, "history"]).stdout,
        "This conversation had 1 message before this one.\n",
        "a message that comes with a snapshot is printed too"
    );
}

#[test]
fn input_state_and_headers_reach_the_agent() {
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let state = fresh_path("state.json");
    std::fs::write(&state, r#"{"exact": 1.10}"#).unwrap();
    let state = format!("@{}", state.display());
    let mut child = agui(&["run", &peer.url, "more", "--input", "-", "--state", &state, "--json"]);
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = json!({ "threadId": "t", "messages": [{ "id": "a", "role": "assistant" }] });
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.to_string().as_bytes())
        .unwrap();
    let ran = finish(child);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let request = peer.request().unwrap();
    assert_eq!(request["messages"][0], input["messages"][0]);
    assert_eq!(request["messages"][1]["content"], "more");
    assert_eq!(request["state"], json!({ "exact": 1.1 }));
    assert_eq!(request["runId"].as_str().unwrap().len(), 36);
}

#[test]
fn the_environment_names_a_proxy_and_who_is_reached_without_one() {
    let proxy = Peer::streaming(&[STARTED, FINISHED]);
    let mut command = agui(&["run", "http://agents.example/chat", "hi", "--thread", "t"]);
    let ran = finish(command.env("http_proxy", &proxy.url).spawn().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(proxy.request().unwrap()["messages"][0]["content"], "hi");

    let (proxy, agent) = (Peer::streaming(&[]), Peer::streaming(&[STARTED, FINISHED]));
    let mut command = agui(&["run", &agent.url, "hi", "--thread", "t"]);
    command.env("http_proxy", &proxy.url).env("no_proxy", "127.0.0.1");
    let ran = finish(command.spawn().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(agent.request().unwrap()["messages"][0]["content"], "hi");
    assert!(proxy.request().is_none());
}

#[test]
fn an_old_agent_is_spared_what_it_cannot_take() {
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let path = fresh_path("input.json");
    let parts = json!([{ "type": "text", "text": "look" }, { "type": "image", "source": { "type": "url", "value": "u" } }]);
    let input =
        json!({ "threadId": "t", "messages": [{ "id": "u", "role": "user", "content": parts }] });
    std::fs::write(&path, input.to_string()).unwrap();
    let args = [&*peer.url, "--input", path.to_str().unwrap(), "--max-protocol-version", "0.0.39"];
    let ran = run_with_result(&args);
    assert_ended(&ran, "completed", 0, None);
    let request = peer.request().unwrap();
    assert_eq!(request["messages"][0]["content"], "look");
    assert_eq!(request.get("protocolVersion"), None);
    assert_eq!(ran.report["warnings"].as_array().unwrap().len(), 1);
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_the_run_and_keeps_what_came() {
    let server = Server::start(&[]);
    let path = fresh_path("result.json");
    let args = ["run", &server.demo, "slow 300", "--result", path.to_str().unwrap()];
    let mut child = agui(&args).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    support::signal(&child, "INT");
    let ran = finish(child);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(ran.stderr, "cancelled: the run was stopped from here\n");
    let report = read_json(&path);
    assert_eq!(
        (&report["ending"], &report["error"]["class"]),
        (&json!("cancelled"), &json!("abort"))
    );
    assert!(report["messages"][1]["content"].as_str().unwrap().starts_with("1 "));
}

/// A peer that says so much that whoever does not read holds up the client.
#[cfg(unix)]
fn talkative() -> Peer {
    let text = "x".repeat(1 << 20);
    let said = json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": text });
    let mut frames = format!("data: {STARTED}\n\ndata: {OPENED}\n\n");
    (0..4).for_each(|_| frames.push_str(&format!("data: {said}\n\n")));
    Peer::new(vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into()), Step::Hold])
}

#[cfg(unix)]
#[test]
fn the_first_ctrl_c_is_enough_where_nobody_reads() {
    for name in ["INT", "TERM"] {
        let peer = talkative();
        let path = fresh_path("result.json");
        let result = ["--result", path.to_str().unwrap()];
        let args = [&["run"], &asking(&peer.url)[..], &result].concat();
        let mut child = agui(&args).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 1]).unwrap();
        let began = std::time::Instant::now();
        support::signal(&child, name);
        // Nobody reads on until it has ended.
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(4));
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!(finish(child).stderr, "cancelled: the run was stopped from here\n");
        assert_eq!(read_json(&path)["ending"], "cancelled", "what came is kept");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_the_wait_for_a_reader_of_the_result() {
    let fifo = fresh_path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for (name, code) in [("INT", 128 + 2), ("TERM", 128 + 15)] {
        let peer = Peer::streaming(&[STARTED, OPENED, SAID, CLOSED, FINISHED]);
        let args = [&["run"], &asking(&peer.url)[..], &["--result", fifo.to_str().unwrap()]];
        let mut child = agui(&args.concat()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
        // Wherever it is by now, it is the fifo that it waits for at last.
        support::signal(&child, name);
        let began = std::time::Instant::now();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(code));
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }
    // With a reader all is well.
    let peer = Peer::streaming(&[STARTED, FINISHED]);
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || read_json(&fifo))
    };
    let args = ["run", &peer.url, "hi", "--thread", "t", "--result", fifo.to_str().unwrap()];
    assert_eq!(run(&args).code, 0);
    assert_eq!(reader.join().unwrap()["ending"], "completed");
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_the_program_at_once() {
    // Nobody reads what it prints, so that it waits in the middle of writing.
    let peer = talkative();
    let mut child = agui(&[&["run"], &asking(&peer.url)[..]].concat()).spawn().unwrap();
    let mut first = [0; 1];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    support::signal(&child, "INT");
    let code = loop {
        // The two may arrive as one; then the next one is the second.
        support::signal(&child, "INT");
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        std::thread::yield_now();
    };
    // It may have come to its end after the first one.
    assert!(matches!(code, Some(130 | 4)), "{code:?}");
}

#[test]
fn output_that_nobody_reads_ends_it_quietly() {
    let server = Server::start(&[]);
    for how in [&[][..], &["--json"]] {
        let path = fresh_path("result.json");
        let args = ["run", &server.demo, "slow 300", "--result", path.to_str().unwrap()];
        let mut child = agui(&[&args, how].concat()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_exact(&mut [0; 1]).unwrap();
        drop(stdout);
        let ran = finish(child);
        assert_eq!((ran.code, &*ran.stderr), (4, ""), "{how:?}");
        assert_eq!(read_json(&path)["ending"], "cancelled");
    }
}

#[test]
fn help_says_what_there_is() {
    let help = run(&["run", "--help"]);
    assert_eq!((help.code, &*help.stderr), (0, ""));
    for code in 0..=7 {
        assert!(help.stdout.contains(&format!("\n  {code}  ")), "exit code {code}");
    }
    for words in [&["help"][..], &["--help"], &["help", "run"], &["serve", "-h"], &["run", "-h"]] {
        let help = run(words);
        assert_eq!(help.code, 0, "{words:?}");
        assert!(help.stdout.contains("Usage: agui") && !help.stdout.contains('\x1b'), "{words:?}");
    }
    let serve = run(&["serve", "--help"]).stdout;
    assert!(serve.contains(r#"runtimeUrl="http://127.0.0.1:4100/api/copilotkit""#), "{serve}");
    let version = format!("agui {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["--version"]).stdout, version);
    let nothing = run(&[]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("serve") && nothing.stderr.contains("run"));
}
