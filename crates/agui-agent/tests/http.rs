//! `HttpAgent` against peers that answer byte for byte what a test says.
#![cfg(feature = "http")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_agent::{
    Agent, AgentError, BuildError, CancellationToken, EventStream, HttpAgent, RunContext,
};
use agui_types::event::{RunFinished, RunStarted};
use agui_types::{Event, FromJson, Message, RunAgentInput, message::UserMessage};
use agui_wire::{Encoder, WireForm};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const STARTED: &str = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const FINISHED: &str = "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A peer for one request: answers with the given writes, each flushed, then closes. Gives the
/// request it got.
async fn peer<B: AsRef<[u8]> + Send + 'static>(writes: Vec<B>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let request = read_request(&mut socket).await;
        for write in writes {
            if socket.write_all(write.as_ref()).await.is_err() {
                break;
            }
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        request
    });
    (url, served)
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                return String::from_utf8(request).unwrap();
            }
        }
        assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0, "the request was cut off");
    }
}

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", vec![Message::from(UserMessage::new("u", "hi"))])
}

fn run(url: &str) -> EventStream {
    HttpAgent::new(url).unwrap().run(input(), RunContext::new())
}

/// The types of the events that came, and the error that ended them, if one did.
async fn outcome(mut stream: EventStream) -> (Vec<String>, Option<AgentError>) {
    let mut types = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => types.push(event.value.type_name().to_owned()),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last item");
                return (types, Some(error));
            }
        }
    }
    (types, None)
}

async fn outcome_of(answer: &str) -> (Vec<String>, Option<AgentError>) {
    let (url, served) = peer(vec![answer.to_owned()]).await;
    let outcome = outcome(run(&url)).await;
    served.await.unwrap();
    outcome
}

#[tokio::test]
async fn the_request_is_a_post_of_the_input() {
    // T-10, T-11
    let (url, served) = peer(vec![format!("{OK}{STARTED}{FINISHED}")]).await;
    let agent = HttpAgent::builder(&url).header("X-Key", "first").header("x-key", "k").build();
    let stream = agent.unwrap().run(input(), RunContext::new());
    assert_eq!(outcome(stream).await.0, ["RUN_STARTED", "RUN_FINISHED"]);
    let request = served.await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.starts_with("post /agent http/1.1\r\n"), "{head}");
    for line in ["accept: text/event-stream", "content-type: application/json", "x-key: k"] {
        assert!(head.lines().any(|header| header == line), "{line} in {head}");
    }
    assert!(!head.contains("first"));
    assert_eq!(RunAgentInput::from_json_exact(body).unwrap(), input());
}

#[tokio::test]
async fn a_stream_may_be_cut_anywhere() {
    // T-14, T-15, T-28
    let body = format!(
        "{STARTED}: ping\r\n\r\ndata: {{\"type\":\"CUSTOM\",\ndata:\"name\":\"é😀\",\"value\":1}}\r\n\r\n{FINISHED}"
    );
    let mut writes = vec![OK.as_bytes().to_vec()];
    writes.extend(body.bytes().map(|byte| vec![byte]));
    let (url, served) = peer(writes).await;
    let (types, error) = outcome(run(&url)).await;
    assert_eq!(types, ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    assert!(error.is_none());
    served.await.unwrap();
}

#[tokio::test]
async fn a_last_frame_without_its_blank_line_still_counts() {
    let (types, error) = outcome_of(&format!("{OK}{STARTED}{}", FINISHED.trim_end())).await;
    assert_eq!(types, ["RUN_STARTED", "RUN_FINISHED"]);
    assert!(error.is_none());
}

#[tokio::test]
async fn nobody_there_is_a_connect_error_that_names_the_place_and_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://user:s3cret@{address}/agent?key=s3cret");
    let (types, error) = outcome(run(&url)).await;
    let error = error.unwrap();
    assert!(types.is_empty());
    assert_eq!(error.class(), "transport");
    assert!(
        matches!(&error, AgentError::Connect { url, .. } if *url == format!("http://{address}/agent"))
    );
    assert!(!format!("{error:?} {error}").contains("s3cret"), "{error:?}");
    let agent = HttpAgent::builder(&url).header("authorization", "s3cret").build().unwrap();
    assert!(!format!("{agent:?}").contains("s3cret"), "{agent:?}");
}

#[tokio::test]
async fn a_refusal_carries_status_and_body() {
    // T-19
    for (body, shown) in [
        (r#"{"error":"token expired"}"#, r#"{"error":"token expired"}"#),
        (r#""text""#, "text"),
        ("<html>x</html>", "<html>x</html>"),
        ("", ""),
    ] {
        let answer = format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (_, error) = outcome_of(&answer).await;
        match error.unwrap() {
            AgentError::Status { status: 401, body } => assert_eq!(body, shown),
            other => panic!("{other:?}"),
        }
    }
    let long = "x".repeat(AgentError::MOST_BODY + 1000);
    let answer = format!("HTTP/1.1 500 No\r\ncontent-length: {}\r\n\r\n{long}", long.len());
    let (url, _served) = peer(vec![answer]).await;
    match outcome(run(&url)).await.1.unwrap() {
        AgentError::Status { body, .. } => assert_eq!(body.len(), AgentError::MOST_BODY),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for (to, said) in [
        ("location: http://u:s3cret@127.0.0.1:1/a?k=s3cret\r\n", Some("http://127.0.0.1:1/a")),
        ("location: file:///etc\r\n", None),
        ("", None),
    ] {
        let answer = format!("HTTP/1.1 307 Go\r\n{to}content-length: 0\r\n\r\n");
        let (_, error) = outcome_of(&answer).await;
        let error = error.unwrap();
        let AgentError::Redirect { status: 307, location } = &error else { panic!("{error:?}") };
        assert_eq!((location.as_deref(), error.class()), (said, "http"));
    }
}

#[tokio::test]
async fn an_answer_without_a_body_is_no_stream() {
    let (_, error) = outcome_of("HTTP/1.1 204 Nothing\r\n\r\n").await;
    let error = error.unwrap();
    assert!(matches!(error, AgentError::NoBody { status: 204 }));
    assert_eq!(error.class(), "transport");
}

#[tokio::test]
async fn the_media_type_is_held_against_an_answer_without_events_only() {
    let answer = |media: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\n{media}content-length: {}\r\n\r\n{body}", body.len())
    };
    let body = format!("{STARTED}{FINISHED}");
    for media in
        ["", "content-type: application/x-ndjson\r\n", "content-type: TEXT/Event-Stream;x=y\r\n"]
    {
        let (types, error) = outcome_of(&answer(media, &body)).await;
        assert_eq!((types.len(), error.is_none()), (2, true), "{media}");
    }
    let html = answer("content-type: text/html; charset=utf-8\r\n", "<html>login</html>");
    let error = outcome_of(&html).await.1.unwrap();
    assert_eq!(error.class(), "truncated");
    assert!(error.to_string().contains("text/html"), "{error}");
    // An empty event stream is judged by the rules, not by the client.
    let (types, error) = outcome_of(&answer("content-type: text/event-stream\r\n", "")).await;
    assert!(types.is_empty() && error.is_none());
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_is_an_error_after_what_came_before_it() {
    // T-22, C-12, C-28
    let start = STARTED.len() as u64;
    for (frame, class, path) in [
        ("oops", "sse-json", ""),
        ("[DONE]", "frame-shape", ""),
        ("[1]", "frame-shape", ""),
        ("{}", "frame-shape", "/type"),
        (r#"{"type":7}"#, "frame-shape", "/type"),
        (r#"{"type":""}"#, "frame-shape", "/type"),
        (r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":7,"delta":"x"}"#, "schema", "/messageId"),
        (r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}"#, "schema", "/delta"),
    ] {
        let (types, error) = outcome_of(&format!("{OK}{STARTED}data: {frame}\n\n{FINISHED}")).await;
        assert_eq!(types, ["RUN_STARTED"], "{frame}");
        let error = error.unwrap();
        let class = if frame == "[DONE]" { "sse-json" } else { class };
        assert_eq!((error.class(), error.path()), (class, path), "{frame}");
        match error {
            AgentError::Decode(error) => {
                assert_eq!(error.frame(), 1);
                assert_eq!(error.offset(), start + "data: ".len() as u64);
                assert_eq!(error.quote(), frame);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn deep_nesting_and_endless_frames_meet_a_limit() {
    let deep = format!("{OK}data: {{\"type\":\"RAW\",\"event\":{}", "[".repeat(10_000));
    assert_eq!(outcome_of(&deep).await.1.unwrap().class(), "limit");

    let (url, served) = peer(vec![format!("{OK}{STARTED}data: "), "x".repeat(4096)]).await;
    let limits = agui_wire::Limits::default().with_frame_bytes(1024);
    let agent = HttpAgent::builder(&url).limits(limits).build().unwrap();
    let (types, error) = outcome(agent.run(input(), RunContext::new())).await;
    assert_eq!(types, ["RUN_STARTED"]);
    let error = error.unwrap();
    assert_eq!(error.class(), "limit");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("1024"), "{source}");
    served.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_dies_is_a_transport_error() {
    let cut = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{STARTED}"
    );
    let (types, error) = outcome_of(&cut).await;
    assert_eq!(types, ["RUN_STARTED"]);
    let error = error.unwrap();
    assert!(matches!(error, AgentError::Transport { .. }), "{error:?}");
    assert_eq!(error.class(), "transport");
}

/// A peer that starts a run and then says nothing until the connection is closed.
async fn silent_peer() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let closed = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(format!("{OK}{STARTED}").as_bytes()).await.unwrap();
        // Returns once the client has closed its end.
        let _ = socket.read(&mut [0; 1]).await;
    });
    (url, closed)
}

#[tokio::test]
async fn dropping_or_cancelling_closes_the_connection() {
    let (url, closed) = silent_peer().await;
    let mut stream = run(&url);
    assert!(matches!(stream.next().await.unwrap().unwrap().value, Event::RunStarted(_)));
    drop(stream);
    tokio::time::timeout(Duration::from_secs(30), closed).await.unwrap().unwrap();

    let (url, closed) = silent_peer().await;
    let cancel = CancellationToken::new();
    let context = RunContext::new().with_cancel(cancel.clone());
    let mut stream = HttpAgent::new(&url).unwrap().run(input(), context);
    stream.next().await.unwrap().unwrap();
    cancel.cancel();
    let error = stream.next().await.unwrap().unwrap_err();
    assert!(matches!(error, AgentError::Cancelled));
    assert_eq!(error.class(), "abort");
    assert!(stream.next().await.is_none());
    tokio::time::timeout(Duration::from_secs(30), closed).await.unwrap().unwrap();
}

#[test]
fn what_cannot_work_is_refused_when_it_is_configured() {
    for url in ["", "agent", "/agent", "ftp://host/x", "http://"] {
        assert!(matches!(HttpAgent::new(url), Err(BuildError::Url(_))), "{url}");
    }
    let with =
        |name: &str, value: &str| HttpAgent::builder("http://h/").header(name, value).build();
    assert!(matches!(with("a b", "c"), Err(BuildError::Header { what: "name", .. })));
    let error = with("x-key", "s3cret\n").unwrap_err();
    assert!(matches!(error, BuildError::Header { what: "value", .. }));
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

const PROTO: &str = "HTTP/1.1 200 OK\r\ncontent-type: Application/vnd.ag-ui.event+proto;x=y\r\n\
                     connection: close\r\n\r\n";

/// Events as frames of protobuf.
fn frames(events: impl IntoIterator<Item = Event>) -> Vec<u8> {
    let (mut encoder, mut body) = (Encoder::new(WireForm::Proto), Vec::new());
    for event in events {
        encoder.encode(&event, None, &mut body).unwrap();
    }
    body
}

async fn outcome_of_proto(body: &[u8]) -> (Vec<String>, Option<AgentError>) {
    let (url, served) = peer(vec![PROTO.as_bytes().to_vec(), body.to_vec()]).await;
    let outcome = outcome(run(&url)).await;
    served.await.unwrap();
    outcome
}

#[tokio::test]
async fn protobuf_is_asked_for_where_it_is_preferred_and_read_where_it_comes() {
    // T-11, T-23, T-25, T-26, T-28
    let body = frames([RunStarted::new("t", "r").into(), RunFinished::new("t", "r").into()]);
    let mut writes = vec![PROTO.as_bytes().to_vec()];
    writes.extend(body.iter().map(|byte| vec![*byte]));
    let (url, served) = peer(writes).await;
    let agent = HttpAgent::builder(&url).wire(WireForm::Proto).build().unwrap();
    let (types, error) = outcome(agent.run(input(), RunContext::new())).await;
    assert_eq!(types, ["RUN_STARTED", "RUN_FINISHED"]);
    assert!(error.is_none());
    let request = served.await.unwrap();
    let accept = "accept: application/vnd.ag-ui.event+proto, text/event-stream";
    assert!(request.lines().any(|line| line == accept), "{request}");

    // The other side has the choice.
    let (url, served) = peer(vec![format!("{OK}{STARTED}{FINISHED}")]).await;
    let agent = HttpAgent::builder(&url).wire(WireForm::Proto).build().unwrap();
    let (types, error) = outcome(agent.run(input(), RunContext::new())).await;
    assert_eq!((types.len(), error.is_none()), (2, true));
    served.await.unwrap();
    let (types, error) = outcome_of_proto(&body).await;
    assert_eq!((types.len(), error.is_none()), (2, true), "not asked for");
}

#[tokio::test]
async fn a_binary_stream_that_cannot_be_read_is_an_error_after_what_came_before_it() {
    // T-29, T-31, C-12
    let start = frames([RunStarted::new("t", "r").into()]);
    for (rest, class) in [
        (&b"\0\0\0\x03\xff\0\x01"[..], "proto-decode"),
        (b"\0\0\0\0", "proto-decode"),
        // A snapshot without its value: an event, but a malformed one.
        (b"\0\0\0\x08\x3a\x06\x0a\x02\x08\x06\x12\0", "schema"),
        (b"\xff\xff\xff\xff", "limit"),
        (b"\0\0\0\x09\x3a\x06", "truncated"),
        (b"\0\0", "truncated"),
    ] {
        let (types, error) = outcome_of_proto(&[&start[..], rest].concat()).await;
        assert_eq!(types, ["RUN_STARTED"], "{rest:?}");
        let error = error.unwrap();
        assert_eq!(error.class(), class, "{error}");
        match error {
            AgentError::Decode(error) => {
                assert_eq!((error.frame(), error.offset()), (1, start.len() as u64));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_frame_that_had_to_be_dropped_is_told() {
    // T-30
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let teller = Arc::clone(&told);
    let started = frames([RunStarted::new("t", "r").into()]);
    let finished = frames([RunFinished::new("t", "r").into()]);
    let unknown: &[u8] = b"\0\0\0\x03\x82\x02\0";
    let body = [&started[..], unknown, &finished[..], unknown].concat();
    let (url, served) = peer(vec![PROTO.as_bytes().to_vec(), body]).await;
    let agent = HttpAgent::builder(&url)
        .on_warning(move |warning| teller.lock().unwrap().push(warning.to_string()));
    let stream = agent.build().unwrap().run(input(), RunContext::new());
    assert_eq!(outcome(stream).await.0, ["RUN_STARTED", "RUN_FINISHED"]);
    served.await.unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2);
    assert!(told[0].contains("field 32"), "{}", told[0]);
}

#[tokio::test]
async fn done_behind_the_end_is_no_error() {
    let done = "data: [DONE]\n\n";
    let (types, error) = outcome_of(&format!("{OK}{STARTED}{FINISHED}{done}")).await;
    assert_eq!((types.len(), error.is_none()), (2, true));
    let (types, error) = outcome_of(&format!("{OK}{STARTED}{done}{FINISHED}")).await;
    let error = error.unwrap();
    assert_eq!((types.len(), error.class()), (1, "sse-json"));
    assert!(error.to_string().contains("[DONE]"), "{error}");
}
