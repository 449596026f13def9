//! A session over real connections, that are lost and taken up again.
#![cfg(all(feature = "http", feature = "session"))]

mod support;

use std::time::Duration;

use agui_agent::session::{Finished, Request, Session, SessionError, Update};
use agui_agent::{HttpAgent, RetryPolicy};
use agui_stream::Ending;
use agui_types::Message;
use support::{OK, header, peer, soon};

/// The text of an assistant message in three pieces, each with a position, and the end.
fn frames() -> [String; 5] {
    let frame = |id: usize, data: &str| format!("id: e{id}\ndata: {data}\n\n");
    [
        frame(1, r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#),
        frame(2, r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"one "}"#),
        frame(3, r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"two "}"#),
        frame(4, r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"three"}"#),
        frame(5, r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#),
    ]
}

const CUT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";

async fn finish(url: &str, connect_url: &str) -> (Result<Finished, SessionError>, Session) {
    let (ended, session, _) = told(url, connect_url, false).await;
    (ended, session)
}

/// Takes a turn to its end; what it told of the connection and of text, a line each.
async fn told(
    url: &str,
    connect_url: &str,
    connect: bool,
) -> (Result<Finished, SessionError>, Session, Vec<String>) {
    let agent = HttpAgent::builder(url).connect_url(connect_url).build().unwrap();
    let quick = RetryPolicy::new(3).first_delay(Duration::from_millis(1));
    let mut session = Session::new(agent).with_thread_id("t").with_reconnect(Some(quick));
    let request = Request::new().text("hi").run_id("r");
    let mut turn = if connect { session.connect() } else { session.start(request) };
    let mut lines = Vec::new();
    while let Some(update) = turn.next().await {
        match update {
            Update::Reconnecting { attempt, delay, error } => {
                assert!(turn.is_busy() && delay > Duration::ZERO);
                let why = error.map_or("ended".into(), |error| error.class().to_owned());
                lines.push(format!("reconnecting {attempt}: {why}"));
            }
            Update::Reconnected { attempts } => lines.push(format!("back after {attempts}")),
            Update::Change(change) => {
                lines.extend(turn.appended(&change).map(ToOwned::to_owned));
            }
            _ => {}
        }
    }
    let ended = turn.finish().await;
    (ended, session, lines)
}

fn text(session: &Session) -> String {
    match session.messages().find("m") {
        Some(Message::Assistant(message)) => message.content.clone().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_run_whose_connection_is_lost_goes_on_behind_its_last_event() {
    // T-9, T-21
    let [started, one, two, three, finished] = frames();
    // It dies; inside a frame; between two; before an answer; with a refusal for now.
    let (url, served) = peer(vec![format!("{CUT}{started}{one}{}", &two[..20])]).await;
    let connections = vec![
        format!("{OK}{two}id: e4\ndata: {{\"type"),
        format!("{CUT}{three}"),
        String::new(),
        "HTTP/1.1 503 Restarting\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into(),
        format!("{OK}{finished}"),
    ];
    let (connect_url, connected) = peer(connections).await;
    let (ended, session, lines) = told(&url, &connect_url, false).await;
    let expected = [
        "one ",
        "reconnecting 1: transport",
        "back after 1",
        "two ",
        "reconnecting 1: sse-json",
        "back after 1",
        "three",
        "reconnecting 1: transport",
        "reconnecting 2: transport",
        "reconnecting 3: http",
        "back after 3",
    ];
    assert_eq!(lines, expected);
    let ended = ended.unwrap();
    assert_eq!((ended.ending, ended.runs), (Ending::Completed, 1));
    assert!(ended.cut_off.is_none());
    assert_eq!(text(&session), "one two three");
    soon(served).await;
    let requests = soon(connected).await;
    let from: Vec<_> = requests.iter().map(|it| header(it, "last-event-id").unwrap()).collect();
    assert_eq!(from, ["e2", "e3", "e4", "e4", "e4"]);
}

#[tokio::test]
async fn after_so_many_failures_in_a_row_a_run_is_truncated() {
    let [started, one, ..] = frames();
    let (url, served) = peer(vec![format!("{OK}{started}{one}")]).await;
    let (connect_url, connected) = peer(vec![String::new(), OK.into(), OK.into()]).await;
    let (ended, session, lines) = told(&url, &connect_url, false).await;
    assert_eq!(
        lines,
        ["one ", "reconnecting 1: ended", "reconnecting 2: transport", "reconnecting 3: ended"]
    );
    assert_eq!(ended.unwrap().ending, Ending::Truncated);
    assert!(!session.is_busy());
    assert_eq!(text(&session), "one ");
    soon(served).await;
    soon(connected).await;
}

#[tokio::test]
async fn what_is_connected_to_is_taken_up_again_as_well() {
    // T-9, T-21
    let [started, one, two, three, finished] = frames();
    let connections = vec![
        format!("{CUT}{started}{one}"),
        format!("{OK}{two}{three}"),
        format!("{OK}{finished}"),
    ];
    let (connect_url, connected) = peer(connections).await;
    let (ended, session, lines) = told("http://127.0.0.1:1/", &connect_url, true).await;
    let expected = [
        "one ",
        "reconnecting 1: transport",
        "back after 1",
        "two ",
        "three",
        "reconnecting 1: ended",
        "back after 1",
    ];
    assert_eq!(lines, expected);
    assert_eq!(ended.unwrap().ending, Ending::Completed);
    assert_eq!(text(&session), "one two three");
    let requests = soon(connected).await;
    let from: Vec<_> = requests.iter().map(|it| header(it, "last-event-id")).collect();
    assert_eq!(from, [None, Some("e2"), Some("e4")]);
}

#[tokio::test]
async fn cancelling_while_it_waits_to_connect_again_ends_the_turn_at_once() {
    let [started, one, ..] = frames();
    let (url, served) = peer(vec![format!("{OK}{started}{one}")]).await;
    let agent = HttpAgent::builder(&url).connect_url("http://127.0.0.1:1/").build().unwrap();
    let patient = RetryPolicy::new(3).first_delay(Duration::from_secs(3600));
    let patient = patient.longest_delay(Duration::from_secs(3600));
    let mut session = Session::new(agent).with_thread_id("t").with_reconnect(Some(patient));
    let mut turn = session.start(Request::new().run_id("r"));
    while let Some(update) = turn.next().await {
        if let Update::Reconnecting { .. } = update {
            turn.cancel();
        }
    }
    assert_eq!(turn.finish().await.unwrap().ending, Ending::Cancelled);
    assert_eq!((session.is_busy(), &*text(&session)), (false, "one "));
    soon(served).await;
}

#[tokio::test]
async fn without_a_position_nothing_is_taken_up_again() {
    // It would bring things twice.
    let [started, one, ..] = frames();
    let (url, served) = peer(vec![format!("{OK}{started}{}", one.replace("id: e2\n", ""))]).await;
    let (ended, session) = finish(&url, "http://127.0.0.1:1/").await;
    let ended = ended.unwrap();
    assert_eq!(ended.ending, Ending::Truncated);
    assert_eq!(ended.cut_off.unwrap().class(), "truncated");
    assert_eq!(text(&session), "one ");
    soon(served).await;
}

#[tokio::test]
async fn a_close_inside_a_frame_is_a_truncated_run() {
    // T-9, T-22
    let [started, one, two, ..] = frames().map(|frame| frame[frame.find("data").unwrap()..].into());
    let cut: &String = &two;
    let (url, served) = peer(vec![format!("{OK}{started}{one}{}", &cut[..30])]).await;
    let (ended, _) = finish(&url, "http://127.0.0.1:1/").await;
    let ended = ended.unwrap();
    assert_eq!((ended.ending, ended.cut_off.unwrap().class()), (Ending::Truncated, "sse-json"));
    soon(served).await;
}

#[tokio::test]
async fn a_refusal_has_no_ending() {
    // T-19; case 36
    let body = r#"{"error":"token expired"}"#;
    let answer = format!(
        "HTTP/1.1 401 No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (url, served) = peer(vec![answer]).await;
    let (ended, session) = finish(&url, "http://127.0.0.1:1/").await;
    let error = ended.unwrap_err();
    assert_eq!(error.class(), "http");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("401") && source.contains("token expired"), "{source}");
    assert_eq!(session.messages().len(), 1, "what was said stays");
    soon(served).await;
}
