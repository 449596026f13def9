//! A client of a runtime, against servers that answer byte for byte what a test says: how it finds
//! out how to ask, what it asks, and what it makes of refusals.
#![cfg(feature = "http")]

#[cfg(feature = "session")]
#[allow(dead_code)]
#[path = "../examples/runtime_client.rs"]
mod example;
mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_agent::runtime::{
    Audio, ConnectionStatus, ListThreads, RuntimeClient, RuntimeError, Transport,
};
use agui_agent::{
    Agent, AgentError, CancellationToken, EventStream, HttpAgent, Position, RetryPolicy, RunContext,
};
use agui_types::{Event, RunAgentInput, RunFinishedOutcome};
use futures_util::{FutureExt, StreamExt};
use support::{FINISHED, OK, STARTED, header, peer, silent_peer, soon};

const INFO: &str = r#"{"version":"1","agents":{"default":{"description":"Helps","capabilities":{"tools":{"supported":true}}},"b":{"description":""}},"suggestions":true,"audioFileTranscriptionEnabled":true}"#;

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn info() -> String {
    answer("200 OK", INFO)
}

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", Vec::new())
}

fn client(url: &str) -> RuntimeClient {
    RuntimeClient::new(url).unwrap()
}

/// The first line of a request, and its body.
fn said(request: &str) -> (&str, &str) {
    let line = request.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
    (line, request.split_once("\r\n\r\n").unwrap().1)
}

async fn outcome(stream: EventStream) -> (usize, Option<AgentError>) {
    let (mut events, mut failed) = (0, None);
    for item in stream.collect::<Vec<_>>().await {
        match item {
            Ok(_) => events += 1,
            Err(error) => failed = Some(error),
        }
    }
    (events, failed)
}

fn refused(error: &AgentError) -> &RuntimeError {
    match error {
        AgentError::Runtime(error) => error,
        other => panic!("{other:?}"),
    }
}

// --- finding out ---------------------------------------------------------------------------------

#[tokio::test]
async fn paths_are_found_with_one_get_and_kept() {
    let (url, served) = peer(vec![info(), format!("{OK}{STARTED}{FINISHED}")]).await;
    let runtime = client(&format!("{url}/"));
    assert_eq!(runtime.transport(), None);
    let said_of_it = runtime.info().await.unwrap();
    assert_eq!(said_of_it.agents["default"].description, "Helps");
    assert_eq!(runtime.transport(), Some(Transport::Rest));
    let agent = runtime.agent("default");
    assert!(agent.capabilities().await.unwrap().tools.unwrap().supported.unwrap());
    assert_eq!(runtime.agent("b").capabilities().await, None);
    assert_eq!(runtime.agent("none").capabilities().await, None);
    let (events, error) = outcome(agent.run(input(), RunContext::new())).await;
    assert_eq!((events, error.is_none()), (2, true), "{error:?}");
    let requests = soon(served).await;
    // One slash at the end of the URL is of no account.
    assert_eq!(said(&requests[0]), ("GET /agent/info", ""));
    assert_eq!(header(&requests[0], "content-type"), None);
    assert_ne!(header(&requests[0], "accept"), Some("text/event-stream"));
    assert_eq!(said(&requests[1]).0, "POST /agent/agent/default/run");
    assert_eq!(header(&requests[1], "accept"), Some("text/event-stream"));
    assert_eq!(header(&requests[1], "content-type"), Some("application/json"));
}

#[tokio::test]
async fn envelopes_are_found_where_the_get_is_answered_with_anything_but_json() {
    for first in [
        answer("405 Method Not Allowed", r#"{"error":"Method not allowed"}"#),
        answer("401 No", r#"{"error":"no"}"#),
        answer("403 No", "no"),
        answer("500 Broken", r#"{"error":"internal_error"}"#),
        answer("404 Not Found", "<html>"),
        answer("200 OK", "<html>"),
        answer("204 No Content", ""),
        answer("302 Found\r\nlocation: /elsewhere", ""),
        // It closes the connection.
        String::new(),
    ] {
        let events = format!("{OK}{STARTED}{FINISHED}");
        let (url, served) = peer(vec![first.clone(), info(), events]).await;
        let runtime = client(&url);
        let agent = runtime.agent("a b");
        let (events, error) = outcome(agent.run(input(), RunContext::new())).await;
        assert_eq!((events, error.is_none()), (2, true), "{first}: {error:?}");
        assert_eq!(runtime.transport(), Some(Transport::Single));
        assert_eq!(*runtime.status().borrow(), ConnectionStatus::Connected);
        let requests = soon(served).await;
        assert_eq!(said(&requests[0]).0, "GET /agent/info");
        assert_eq!(said(&requests[1]), ("POST /agent", r#"{"method":"info"}"#));
        assert_eq!(header(&requests[1], "content-type"), Some("application/json"));
        let (line, body) = said(&requests[2]);
        assert_eq!(line, "POST /agent");
        let begins = r#"{"method":"agent/run","params":{"agentId":"a b"},"body":{"threadId":"t""#;
        assert!(body.starts_with(begins), "{body}");
        assert_eq!(header(&requests[2], "accept"), Some("text/event-stream"));
    }
}

#[tokio::test]
async fn json_that_lists_no_agents_is_no_runtime_and_nothing_else_is_tried() {
    let (url, served) = peer(vec![answer("200 OK", r#"{"status":"ok"}"#)]).await;
    let error = client(&url).info().await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("GET …/info") && shown.contains("\"agents\""), "{shown}");
    assert_eq!((error.class(), soon(served).await.len()), ("schema", 1));
}

#[tokio::test]
async fn where_both_fail_the_error_says_what_each_answered_and_the_next_one_asks_again() {
    let answers = vec![
        answer("401 No", r#"{"error":"unauthorized","message":"token expired"}"#),
        answer("404 Not Found", r#"{"error":"Not found"}"#),
        info(),
    ];
    let (url, served) = peer(answers).await;
    let runtime = client(&url.replace("http://", "http://me:s3cret@"));
    let status = runtime.status();
    assert_eq!(*status.borrow(), ConnectionStatus::Disconnected);
    let (events, error) = outcome(runtime.agent("a").run(input(), RunContext::new())).await;
    let error = error.unwrap();
    let RuntimeError::Discovery(each) = refused(&error) else { panic!("{error:?}") };
    let status_of = |error: &Option<Box<RuntimeError>>| match error.as_deref() {
        Some(RuntimeError::Request(AgentError::Status { status, .. })) => *status,
        other => panic!("{other:?}"),
    };
    assert_eq!((status_of(&each.rest), status_of(&each.single)), (401, 404));
    let shown = format!("{error} {error:?} {runtime:?}");
    for part in ["GET …/info: HTTP 401: token expired", "`info`: HTTP 404: Not found"] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!((events, error.class()), (0, "http"));
    assert_eq!(*status.borrow(), ConnectionStatus::Error);
    runtime.info().await.unwrap();
    assert_eq!(*status.borrow(), ConnectionStatus::Connected);
    assert_eq!(soon(served).await.len(), 3);
}

#[tokio::test]
async fn a_forced_transport_is_not_looked_for() {
    for (transport, line) in
        [(Transport::Rest, "GET /agent/info"), (Transport::Single, "POST /agent")]
    {
        let refusal = answer("405 No", r#"{"error":"Method not allowed"}"#);
        let answers = vec![format!("{OK}{STARTED}{FINISHED}"), refusal, info()];
        let (url, served) = peer(answers).await;
        let runtime = client(&url).with_transport(transport);
        assert_eq!(runtime.transport(), Some(transport));
        // A run needs no information.
        let (events, error) = outcome(runtime.agent("a").run(input(), RunContext::new())).await;
        assert_eq!((events, error.is_none()), (2, true), "{error:?}");
        let error = runtime.info().await.unwrap_err();
        let RuntimeError::Discovery(each) = &error else { panic!("{error:?}") };
        assert_eq!(each.rest.is_some(), transport == Transport::Rest);
        assert_eq!(each.single.is_some(), transport == Transport::Single);
        assert_eq!(runtime.info().await.unwrap().agents.len(), 2);
        let requests = soon(served).await;
        assert_eq!([said(&requests[1]).0, said(&requests[2]).0], [line, line]);
    }
}

#[tokio::test]
async fn those_who_ask_at_once_share_one_answer_good_or_bad() {
    let not_found = || answer("404 Not Found", "");
    let (url, served) = peer(vec![not_found(), not_found(), info()]).await;
    let runtime = client(&url);
    let mut status = runtime.status();
    let asked = futures_util::future::join_all((0..5).map(|_| runtime.info()));
    let watched = async {
        status.changed().await.unwrap();
        *status.borrow_and_update()
    };
    let (asked, seen) = futures_util::join!(asked, watched);
    assert_eq!(seen, ConnectionStatus::Connecting);
    let shared: Vec<_> = asked
        .into_iter()
        .map(|info| match info {
            Err(RuntimeError::Discovery(error)) => error,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(shared.iter().all(|error| Arc::ptr_eq(error, &shared[0])));
    // A run and the information; a clone knows what the other one found out.
    let twin = runtime.clone();
    let (first, second) = futures_util::join!(runtime.info(), twin.info());
    assert!(Arc::ptr_eq(&first.unwrap(), &second.unwrap()));
    assert_eq!(soon(served).await.len(), 3);
}

#[tokio::test]
async fn an_attempt_that_is_dropped_leaves_the_next_one_to_ask() {
    let (url, closed) = silent_peer(String::new()).await;
    let runtime = client(&url).with_transport(Transport::Rest);
    {
        let mut asking = Box::pin(runtime.info());
        assert!((&mut asking).now_or_never().is_none());
        assert_eq!(*runtime.status().borrow(), ConnectionStatus::Connecting);
    }
    assert_eq!(*runtime.status().borrow(), ConnectionStatus::Disconnected);
    // The peer may never have been connected to: it is not waited for.
    closed.abort();

    let (url, closed) = silent_peer(String::new()).await;
    let runtime = client(&url).with_answer_timeout(Duration::from_millis(50));
    let shown = runtime.with_transport(Transport::Rest).info().await.unwrap_err().to_string();
    assert!(shown.contains("nothing came for 50ms"), "{shown}");
    soon(closed).await;
}

#[tokio::test]
async fn refreshing_asks_from_the_beginning() {
    let empty = answer("200 OK", r#"{"agents":{}}"#);
    let gone = answer("404 Not Found", "");
    let (url, served) = peer(vec![info(), gone.clone(), empty, gone.clone(), gone]).await;
    let runtime = client(&url);
    assert_eq!(runtime.info().await.unwrap().agents.len(), 2);
    assert_eq!(runtime.refresh().await.unwrap().agents.len(), 0);
    assert_eq!(runtime.transport(), Some(Transport::Single));
    assert_eq!(runtime.info().await.unwrap().agents.len(), 0);
    runtime.refresh().await.unwrap_err();
    assert_eq!(runtime.transport(), None);
    soon(served).await;
}

#[tokio::test]
async fn information_may_have_so_many_bytes_and_no_more() {
    let sized = |bytes: usize| {
        let info = r#"{"agents":{},"filler":""#;
        let body = format!("{info}{}\"}}", "x".repeat(bytes - info.len() - 2));
        answer("200 OK", &body)
    };
    let most = RuntimeClient::MOST_INFO;
    let (url, served) = peer(vec![sized(most), sized(most + 1)]).await;
    let runtime = client(&url).with_transport(Transport::Rest);
    runtime.info().await.unwrap();
    let error = runtime.refresh().await.unwrap_err();
    assert_eq!(error.class(), "limit");
    assert!(error.to_string().contains("more than 4194304 bytes"), "{error}");
    soon(served).await;
}

#[tokio::test]
async fn requests_are_made_as_the_agents_are() {
    let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned();
    let stopped = answer("200 OK", r#"{"stopped":true}"#);
    let (url, served) = peer(vec![busy, info(), stopped, info()]).await;
    let quick = RetryPolicy::new(1).first_delay(Duration::from_millis(1));
    let http =
        HttpAgent::builder(&url).header("x-app", "mine").retry(quick).headers_from(|about| {
            let about = format!("{}/{}/{}", about.thread_id, about.run_id, about.failed_attempts);
            Ok(vec![("x-about".into(), about)])
        });
    let runtime = RuntimeClient::over(http.build().unwrap());
    runtime.info().await.unwrap();
    assert!(runtime.agent("a").stop("t", None).await.unwrap());
    let theirs = runtime.with_header("x-app", "theirs").unwrap();
    theirs.info().await.unwrap();
    let requests = soon(served).await;
    let seen: Vec<_> = requests
        .iter()
        .map(|it| (header(it, "x-app").unwrap(), header(it, "x-about").unwrap()))
        .collect();
    assert_eq!(seen, [("mine", "//0"), ("mine", "//1"), ("mine", "t//0"), ("theirs", "//0")]);
}

// --- agents --------------------------------------------------------------------------------------

#[tokio::test]
async fn connecting_names_the_position_twice() {
    let events = || format!("{OK}id: 9\n{FINISHED}");
    let (url, served) = peer(vec![events(), events(), events()]).await;
    let runtime = client(&url).with_transport(Transport::Rest);
    let position = Position::at("7");
    for agent in
        [runtime.agent("a/b"), runtime.clone().with_transport(Transport::Single).agent("a/b")]
    {
        let context = RunContext::new().with_position(position.clone());
        let (events, error) = outcome(agent.connect(input(), context).unwrap()).await;
        assert_eq!((events, error.is_none()), (1, true), "{error:?}");
        assert_eq!(position.get().as_deref(), Some("9"));
    }
    outcome(runtime.agent("a").connect(input(), RunContext::new()).unwrap()).await;
    let requests = soon(served).await;
    let from: Vec<_> = requests.iter().map(|it| header(it, "last-event-id")).collect();
    assert_eq!(from, [Some("7"), Some("9"), None]);
    let (line, body) = said(&requests[0]);
    assert_eq!(line, "POST /agent/agent/a%2Fb/connect");
    assert_eq!(body, r#"{"threadId":"t","runId":"r","messages":[],"lastSeenEventId":"7"}"#);
    let (_, body) = said(&requests[1]);
    let inner = r#"{"threadId":"t","runId":"r","messages":[],"lastSeenEventId":"9"}"#;
    let params = r#""params":{"agentId":"a/b"}"#;
    assert_eq!(body, format!(r#"{{"method":"agent/connect",{params},"body":{inner}}}"#));
    assert!(!said(&requests[2]).1.contains("lastSeenEventId"));
}

#[tokio::test]
async fn refusals_are_named_with_the_runtimes_words() {
    for (status, body, is, says) in [
        ("409 Conflict", r#"{"error":"Thread busy","message":"run r1 goes on"}"#, "busy", "r1"),
        (
            "404 Not Found",
            r#"{"error":"Agent not found","message":"no agent x"}"#,
            "agent",
            "agent x",
        ),
        ("400 Bad", r#"{"error":"Invalid request body","details":"messages[0]"}"#, "take", "[0]"),
    ] {
        for transport in [Transport::Rest, Transport::Single] {
            let (url, served) = peer(vec![answer(status, body)]).await;
            let agent = client(&url).with_transport(transport).agent("x");
            let (events, error) = outcome(agent.run(input(), RunContext::new())).await;
            let error = error.unwrap();
            let named = match refused(&error) {
                RuntimeError::Busy { .. } => "busy",
                RuntimeError::UnknownAgent { .. } => "agent",
                RuntimeError::Invalid { .. } => "take",
                other => panic!("{other:?}"),
            };
            let shown = error.to_string();
            assert_eq!((named, events, error.class()), (is, 0, "http"));
            assert!(shown.contains(says), "{shown}");
            soon(served).await;
        }
    }
    // What says nothing about a runtime is what it is for any agent.
    let (url, served) = peer(vec![answer("404 Not Found", r#"{"error":"Not found"}"#)]).await;
    let agent = client(&url).with_transport(Transport::Rest).agent("x");
    let error = outcome(agent.run(input(), RunContext::new())).await.1.unwrap();
    assert!(matches!(error, AgentError::Status { status: 404, .. }), "{error:?}");
    soon(served).await;
}

#[tokio::test]
async fn stopping_says_whether_there_was_something_to_stop() {
    let answers = vec![
        answer("200 OK", r#"{"stopped":true,"interrupt":{"type":"RUN_ERROR"}}"#),
        answer("200 OK", r#"{"stopped":false,"message":"nothing"}"#),
        answer("404 Not Found", r#"{"error":"Agent not found","message":"no x"}"#),
        answer("200 OK", r#"{"ok":true}"#),
    ];
    let (url, served) = peer(answers).await;
    let runtime = client(&url).with_transport(Transport::Rest);
    let agent = runtime.agent("x");
    assert!(agent.stop("t 1", Some("r")).await.unwrap());
    assert!(!agent.stop("t", None).await.unwrap());
    let unknown = agent.stop("t", None).await.unwrap_err();
    assert!(matches!(unknown, RuntimeError::UnknownAgent { .. }), "{unknown:?}");
    let unreadable = agent.stop("t", None).await.unwrap_err();
    assert!(matches!(unreadable, RuntimeError::Unreadable { .. }), "{unreadable:?}");
    let requests = soon(served).await;
    assert_eq!(said(&requests[0]), ("POST /agent/agent/x/stop/t%201", r#"{"runId":"r"}"#));
    assert_eq!(said(&requests[1]), ("POST /agent/agent/x/stop/t", ""));
    assert_eq!(header(&requests[1], "content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_stopped_run_of_the_published_runtime_ends_as_cancelled() {
    // It ends without its ids, wherever the body is cut, and others may follow in a replay.
    let bare = "data: {\"type\":\"RUN_FINISHED\"}\n\n";
    let again = STARTED.replace("\"r\"", "\"r2\"");
    let body = format!("{OK}{STARTED}{bare}{again}{bare}");
    for stream in [body.clone(), body.trim_end().to_owned()] {
        let (url, served) = peer(vec![stream.clone()]).await;
        let agent = client(&url).with_transport(Transport::Rest).agent("x");
        let items = agent.connect(input(), RunContext::new()).unwrap().collect::<Vec<_>>().await;
        let ended: Vec<_> = items
            .into_iter()
            .filter_map(|item| match item.unwrap().value {
                Event::RunFinished(it) => {
                    assert!(matches!(it.outcome, Some(RunFinishedOutcome::Cancelled(_))));
                    Some((it.thread_id.to_string(), it.run_id.to_string()))
                }
                _ => None,
            })
            .collect();
        let ids = |run: &str| ("t".to_owned(), run.to_owned());
        assert_eq!(ended, [ids("r"), ids("r2")], "{stream}");
        soon(served).await;
    }
    // Of any other agent, and of a run that never began, it is no event.
    let (url, served) = peer(vec![format!("{OK}{STARTED}{bare}"), format!("{OK}{bare}")]).await;
    let (events, error) =
        outcome(HttpAgent::new(&url).unwrap().run(input(), RunContext::new())).await;
    assert_eq!((events, error.unwrap().class()), (1, "schema"));
    let agent = client(&url).with_transport(Transport::Rest).agent("x");
    let (events, error) = outcome(agent.run(input(), RunContext::new())).await;
    assert_eq!((events, error.unwrap().class()), (0, "schema"));
    soon(served).await;
}

#[tokio::test]
async fn proposals_are_asked_for_where_they_are_offered() {
    let (url, served) = peer(vec![info(), format!("{OK}{STARTED}{FINISHED}")]).await;
    let agent = client(&url).agent("x");
    let (events, error) = outcome(agent.suggest(&input(), RunContext::new())).await;
    assert_eq!((events, error.is_none()), (2, true), "{error:?}");
    assert_eq!(said(&soon(served).await[1]).0, "POST /agent/agent/x/suggest");

    let (url, served) = peer(vec![answer("200 OK", r#"{"agents":{}}"#)]).await;
    let agent = client(&url).agent("x");
    let error = outcome(agent.suggest(&input(), RunContext::new())).await.1.unwrap();
    assert!(matches!(refused(&error), RuntimeError::NotOffered { .. }), "{error:?}");
    soon(served).await;
}

#[tokio::test]
async fn cancelling_lets_go_at_once_also_while_the_transport_is_looked_for() {
    let (url, closed) = silent_peer(String::new()).await;
    let cancel = CancellationToken::new();
    let context = RunContext::new().with_cancel(cancel.clone());
    let mut stream = client(&url).agent("x").run(input(), context);
    let (first, ()) = tokio::join!(stream.next(), async { cancel.cancel() });
    assert!(matches!(first, Some(Err(AgentError::Cancelled))));
    // The peer may never have been connected to: it is not waited for.
    closed.abort();
}

#[cfg(feature = "session")]
#[tokio::test]
async fn the_example_shows_the_thread_and_goes_on_with_it() {
    let user = r#"{"id":"u","role":"user","content":"Hi"}"#;
    let input =
        format!(r#"{{"threadId":"t","runId":"r0","messages":[{user}],"tools":[],"context":[]}}"#);
    let held = format!(
        "data: {{\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r0\",\"input\":{input}}}\n\n\
         data: {{\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m\",\"delta\":\"Hello\"}}\n\n{}",
        FINISHED.replace("\"r\"", "\"r0\"")
    );
    let busy = answer("409 Conflict", r#"{"error":"Thread busy","message":"wait"}"#);
    let (url, served) = peer(vec![format!("{OK}{held}"), busy]).await;
    let agent = client(&url).with_transport(Transport::Rest).agent("x");
    let session = agui_agent::Session::new(agent.clone()).with_thread_id("t");
    let mut out = Vec::new();
    example::chat(&agent, session, &b"more\n"[..], &mut out).await.unwrap();
    let expected = "> Hi\nHello\n> (the thread is busy: wait)\n> ";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let requests = soon(served).await;
    assert_eq!(said(&requests[0]).0, "POST /agent/agent/x/connect");
    let sent = said(&requests[1]).1;
    for content in ["Hi", "Hello", "more"] {
        assert!(sent.contains(&format!(r#""content":"{content}""#)), "{sent}");
    }
}

// --- threads and audio ---------------------------------------------------------------------------

#[tokio::test]
async fn threads_are_listed_read_and_changed() {
    let row = r#"{"id":"t1","name":null,"agentId":"a","archived":false,"createdAt":"c","updatedAt":"u","more":1}"#;
    let messages = r#"{"messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"c","name":"f","args":"{}"}]},{"id":"u","role":"user","content":[{"type":"text","text":"Hi"}]}]}"#;
    let events = r#"{"events":[{"type":"RUN_STARTED","threadId":"t","runId":"r"},{"type":"NEW"}]}"#;
    let ok = |body: &str| answer("200 OK", body);
    let answers = vec![
        info(),
        ok(&format!(r#"{{"threads":[{row}],"nextCursor":"n"}}"#)),
        ok(messages),
        ok(events),
        ok(r#"{"state":{"a":1.50}}"#),
        ok(r#"{"state":null}"#),
        ok(row),
        ok(row),
        ok("{}"),
        ok("{}"),
        answer("204 No Content", ""),
        answer("404 Not Found", r#"{"error":"Thread not found","message":"there is none"}"#),
        answer("422 No", r#"{"error":"only in the cloud"}"#),
    ];
    let (url, served) = peer(answers).await;
    let runtime = client(&url);
    let list = ListThreads::new().agent("a b").limit(3).after("x").limit(2).with_archived();
    let page = runtime.threads(&list).await.unwrap();
    let thread = &page.threads[0];
    assert_eq!((thread.id.as_str(), thread.agent_id.as_deref()), ("t1", Some("a")));
    assert_eq!((page.next_cursor.as_deref(), thread.updated_at.as_deref()), (Some("n"), Some("u")));
    let messages = runtime.thread_messages("t/1").await.unwrap();
    assert_eq!((messages[0].tool_calls[0].args.as_str(), &*messages[1].role), ("{}", "user"));
    let text = messages[1].content.as_ref().unwrap().as_str();
    assert_eq!(text, r#"[{"type":"text","text":"Hi"}]"#);
    let events = runtime.thread_events("t").await.unwrap();
    assert_eq!([events[0].value.type_name(), events[1].value.type_name()], ["RUN_STARTED", "NEW"]);
    assert_eq!(runtime.thread_state("t").await.unwrap().unwrap().as_str(), r#"{"a":1.50}"#);
    assert_eq!(runtime.thread_state("t").await.unwrap(), None);
    runtime.rename_thread("t", "a", "\"New\"").await.unwrap();
    runtime.unarchive_thread("t", "a").await.unwrap();
    runtime.archive_thread("t", "a").await.unwrap();
    runtime.delete_thread("t", "a").await.unwrap();
    runtime.clear_threads().await.unwrap();
    let missing = runtime.delete_thread("t", "a").await.unwrap_err();
    assert!(matches!(missing, RuntimeError::UnknownThread { .. }), "{missing:?}");
    let declined = runtime.thread_state("t").await.unwrap_err();
    assert!(declined.to_string().contains("not offer reading of threads: only in"), "{declined}");
    let requests = soon(served).await;
    let said: Vec<_> = requests[1..].iter().map(|it| said(it)).collect();
    let expected = [
        ("GET /agent/threads?agentId=a+b&cursor=x&limit=2&includeArchived=true", ""),
        ("GET /agent/threads/t%2F1/messages", ""),
        ("GET /agent/threads/t/events", ""),
        ("GET /agent/threads/t/state", ""),
        ("GET /agent/threads/t/state", ""),
        ("PATCH /agent/threads/t", r#"{"agentId":"a","name":"\"New\""}"#),
        ("PATCH /agent/threads/t", r#"{"agentId":"a","archived":false}"#),
        ("POST /agent/threads/t/archive", r#"{"agentId":"a"}"#),
        ("DELETE /agent/threads/t", r#"{"agentId":"a"}"#),
        ("POST /agent/threads/clear", ""),
        ("DELETE /agent/threads/t", r#"{"agentId":"a"}"#),
        ("GET /agent/threads/t/state", ""),
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn what_is_not_offered_is_not_asked() {
    let off = r#"{"agents":{},"threadEndpoints":{"list":false,"inspect":false,"mutations":false}}"#;
    let untunnelled = r#"{"agents":{},"threadEndpoints":{"list":true}}"#;
    for (transport, info) in [(Transport::Rest, off), (Transport::Single, untunnelled)] {
        let (url, served) = peer(vec![answer("200 OK", info)]).await;
        let runtime = client(&url).with_transport(transport);
        let refused = [
            runtime.threads(&ListThreads::new()).await.map(drop),
            runtime.thread_messages("t").await.map(drop),
            runtime.thread_events("t").await.map(drop),
            runtime.thread_state("t").await.map(drop),
            runtime.rename_thread("t", "a", "n").await,
            runtime.archive_thread("t", "a").await,
            runtime.unarchive_thread("t", "a").await,
            runtime.delete_thread("t", "a").await,
            runtime.clear_threads().await,
            runtime.transcribe(&Audio::new("x", "audio/webm")).await.map(drop),
        ];
        for refused in refused {
            let error = refused.unwrap_err();
            assert!(matches!(error, RuntimeError::NotOffered { .. }), "{error:?}");
        }
        assert_eq!(soon(served).await.len(), 1);
    }
}

#[tokio::test]
async fn an_id_that_no_path_can_hold_is_refused_alike_over_every_transport_and_nothing_is_sent() {
    for transport in [Transport::Rest, Transport::Single, Transport::Auto] {
        let asked: Arc<Mutex<u32>> = Arc::default();
        let counted = Arc::clone(&asked);
        // Headers are made for each request, before it is sent.
        let http = HttpAgent::builder("http://127.0.0.1:9/").headers_from(move |_| {
            *counted.lock().unwrap() += 1;
            Ok(Vec::new())
        });
        let runtime = RuntimeClient::over(http.build().unwrap()).with_transport(transport);
        for id in ["", ".", ".."] {
            let (agent, none) = (runtime.agent("a"), runtime.agent(id));
            let run = |stream: EventStream| async { Err(outcome(stream).await.1.unwrap()) };
            let refused: [Result<(), AgentError>; 11] = [
                runtime.thread_messages(id).await.map(drop).map_err(AgentError::from),
                runtime.thread_events(id).await.map(drop).map_err(AgentError::from),
                runtime.thread_state(id).await.map(drop).map_err(AgentError::from),
                runtime.rename_thread(id, "a", "n").await.map_err(AgentError::from),
                runtime.archive_thread(id, "a").await.map_err(AgentError::from),
                runtime.unarchive_thread(id, "a").await.map_err(AgentError::from),
                runtime.delete_thread(id, "a").await.map_err(AgentError::from),
                agent.stop(id, None).await.map(drop).map_err(AgentError::from),
                none.stop("t", None).await.map(drop).map_err(AgentError::from),
                run(none.run(input(), RunContext::new())).await,
                run(none.connect(input(), RunContext::new()).unwrap()).await,
            ];
            for (at, refused) in refused.into_iter().enumerate() {
                let error = refused.unwrap_err();
                let message = format!("the id {id:?} cannot be part of a path");
                let RuntimeError::Invalid { message: found } = self::refused(&error) else {
                    panic!("{transport:?} {at}: {error:?}")
                };
                assert_eq!(*found, message, "{transport:?} {at}");
            }
        }
        assert_eq!(*asked.lock().unwrap(), 0, "{transport:?}");
    }
}

#[tokio::test]
async fn headers_are_made_for_the_thread_that_is_asked_about() {
    let ok = |body: &str| answer("200 OK", body);
    let answers = vec![info(), ok("{}"), ok("{}"), ok(r#"{"messages":[]}"#)];
    let (url, served) = peer(answers).await;
    let http = HttpAgent::builder(&url)
        .headers_from(|about| Ok(vec![("x-about".into(), format!("<{}>", about.thread_id))]));
    let runtime = RuntimeClient::over(http.build().unwrap());
    runtime.clear_threads().await.unwrap();
    runtime.archive_thread("clear", "a").await.unwrap();
    runtime.thread_messages("t 1").await.unwrap();
    let requests = soon(served).await;
    let seen: Vec<_> = requests.iter().map(|it| header(it, "x-about").unwrap()).collect();
    assert_eq!(seen, ["<>", "<>", "<clear>", "<t 1>"]);
}

#[tokio::test]
async fn transcriptions_are_read_as_every_answer() {
    let said = |body: &str| answer("200 OK", body);
    let lone = said(r#"{"text":"a\ud83d","size":1}"#);
    let answers = vec![info(), lone, said("<html>"), said("[]"), said(r#"{"size":1}"#)];
    let (url, served) = peer(answers).await;
    let runtime = client(&url);
    let audio = Audio::new("ab", "audio/webm");
    let transcribed = runtime.transcribe(&audio).await.unwrap();
    assert_eq!(transcribed.text, "a\u{fffd}");
    for says in ["it is no JSON: ", "transcription: ", "transcription: missing field `text`"] {
        let error = runtime.transcribe(&audio).await.unwrap_err();
        let RuntimeError::Unreadable { problem } = &error else { panic!("{error:?}") };
        assert!(problem.starts_with(says), "{problem}");
    }
    soon(served).await;
}

#[tokio::test]
async fn audio_is_turned_into_text() {
    let text = answer("200 OK", r#"{"text":"Hello","size":2,"type":"audio/webm"}"#);
    let failed = r#"{"error":"rate_limited","message":"slow down","retryable":true}"#;
    let (url, served) = peer(vec![info(), text, answer("429 Slow", failed)]).await;
    let runtime = RuntimeClient::over(
        HttpAgent::builder(&url).header("content-type", "text/plain").build().unwrap(),
    );
    let audio = Audio::new("ab", "audio/webm").filename("a.webm");
    let transcribed = runtime.transcribe(&audio).await.unwrap();
    assert_eq!((transcribed.text.as_str(), transcribed.size), ("Hello", Some(2)));
    let error = runtime.transcribe(&audio).await.unwrap_err();
    let RuntimeError::Transcription { code, retryable: true, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(code, "rate_limited");
    let requests = soon(served).await;
    assert_eq!(said(&requests[1]).0, "POST /agent/transcribe");
    let kind = header(&requests[1], "content-type").unwrap();
    assert!(kind.starts_with("multipart/form-data; boundary="), "{kind}");
}
