//! Requests that start no run: the exact status and body of each.

mod common;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agui_agent::{Agent, AgentExt, BoxError};
use agui_server::{AgentService, BodyError, codes};
use agui_types::AgentCapabilities;
use agui_types::json::MAX_DEPTH;
use bytes::Bytes;
use common::{INPUT, body_text, post, raw};
use futures_util::{FutureExt, StreamExt, stream};
use http::{Method, Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::advance;
use tower::ServiceExt;

/// Sends a request and gives the refusal's status and body; no run was started.
async fn refused<B>(
    service: impl Fn(AgentService) -> AgentService,
    request: Request<B>,
) -> (StatusCode, Value)
where
    B: Body<Error: Into<BoxError>, Data: Send> + Send + 'static,
{
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let agent = raw(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(stream::empty())
    });
    let response = service(AgentService::new(agent)).oneshot(request).await.unwrap();
    let status = response.status();
    assert!(status.is_client_error() || status.is_server_error(), "{status}");
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers().get("allow").is_some(), status == 405);
    let body = serde_json::from_str(&body_text(response).await).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 0, "nothing of a run begins (P-73, T-19)");
    (status, body)
}

async fn refused_body(body: impl Into<Bytes>) -> (StatusCode, Value) {
    refused(|service| service, post(body)).await
}

fn error(status: u16, code: &str, message: &str) -> (StatusCode, Value) {
    let body = json!({"error": {"code": code, "message": message}});
    (StatusCode::from_u16(status).unwrap(), body)
}

fn hinted(status: u16, code: &str, message: &str, hint: &str) -> (StatusCode, Value) {
    let (status, mut body) = error(status, code, message);
    body["error"]["hint"] = hint.into();
    (status, body)
}

fn malformed(path: &str, message: &str) -> (StatusCode, Value) {
    let (status, mut body) = error(422, codes::INVALID_INPUT, message);
    body["error"]["path"] = path.into();
    (status, body)
}

#[tokio::test]
async fn t10_another_method_is_refused() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let request = Request::builder().method(method).uri("/").body(Empty::<Bytes>::new());
        let expected = hinted(
            405,
            codes::METHOD_NOT_ALLOWED,
            "only POST is answered here",
            "POST a RunAgentInput to start a run",
        );
        assert_eq!(refused(|service| service, request.unwrap()).await, expected);
    }
    let get = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
    let response = AgentService::new(common::emits(vec![])).oneshot(get).await.unwrap();
    assert_eq!(response.headers()["allow"], "POST");
}

#[tokio::test]
async fn t10_a_content_type_that_is_no_json_is_refused() {
    let hint = "send the RunAgentInput with Content-Type: application/json";
    let unsupported = |found: &str| {
        let message = format!("expected the Content-Type application/json, found {found}");
        hinted(415, codes::UNSUPPORTED_MEDIA_TYPE, &message, hint)
    };
    let without = Request::post("/").body(Full::new(Bytes::from(INPUT))).unwrap();
    assert_eq!(refused(|service| service, without).await, unsupported("none"));
    for form in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "",
    ] {
        let request = Request::post("/").header("content-type", form);
        let request = request.body(Full::new(Bytes::from(INPUT))).unwrap();
        let expected = unsupported(&format!("{form:?}"));
        assert_eq!(refused(|service| service, request).await, expected, "{form}");
    }
}

#[tokio::test]
async fn t10_an_encoded_body_is_refused() {
    let request = |encoding: &str| {
        let request = Request::post("/").header("content-type", "application/json");
        request.header("content-encoding", encoding).body(Full::new(Bytes::from(INPUT))).unwrap()
    };
    let expected = hinted(
        415,
        codes::UNSUPPORTED_MEDIA_TYPE,
        "the body is encoded as \"gzip\", which is not read here",
        "send the body without a Content-Encoding",
    );
    assert_eq!(refused(|service| service, request("gzip")).await, expected);
    let service = AgentService::new(common::emits(vec![]));
    assert_eq!(service.oneshot(request("identity")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn t10_json_by_any_of_its_names_is_taken() {
    for name in ["application/json", "Application/JSON; charset=UTF-8", "application/x+json"] {
        let request = Request::post("/").header("content-type", name);
        let request = request.body(Full::new(Bytes::from(INPUT))).unwrap();
        let response = AgentService::new(common::emits(vec![])).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{name}");
    }
}

#[tokio::test]
async fn p73_a_body_that_is_no_json_is_refused_naming_the_byte() {
    let invalid = |message: &str| error(400, codes::INVALID_JSON, message);
    for (body, message) in [
        ("", "the body is not JSON: expected a JSON value, found the end of the text at byte 0"),
        (
            r#"{"threadId":"#,
            "the body is not JSON: expected a JSON value, found the end of the text at byte 12",
        ),
        ("threadId=t", "the body is not JSON: expected a JSON value at byte 0"),
        // Malformed as well, but it is no JSON in the first place.
        (r#"{"threadId":7,}"#, "the body is not JSON: expected a member name in quotes at byte 14"),
    ] {
        assert_eq!(refused_body(body).await, invalid(message), "{body}");
    }
}

#[tokio::test]
async fn t10_a_body_that_is_no_utf_8_is_refused_naming_the_byte() {
    let mut body = br#"{"threadId":""#.to_vec();
    body.extend_from_slice(b"\xff\"}");
    let message = "the body is not UTF-8 at byte 13";
    let expected = hinted(400, codes::INVALID_UTF8, message, "JSON travels as UTF-8");
    assert_eq!(refused_body(body).await, expected);
    // A character that the end of the body cuts in two.
    let message = "the body is not UTF-8 at byte 1";
    let expected = hinted(400, codes::INVALID_UTF8, message, "JSON travels as UTF-8");
    assert_eq!(refused_body(&b"\"\xc3"[..]).await, expected);
}

#[tokio::test]
async fn a_byte_order_mark_is_named() {
    let message = "the body is not JSON: a byte order mark (EF BB BF) stands at its beginning";
    let hint = "send the JSON as UTF-8 without a byte order mark";
    let expected = hinted(400, codes::INVALID_JSON, message, hint);
    assert_eq!(refused_body(format!("\u{feff}{INPUT}")).await, expected);
}

#[tokio::test]
async fn p73_a_body_that_nests_too_deep_is_refused_naming_the_byte() {
    // The state is one level in, so that MAX_DEPTH - 1 arrays fit below it.
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"state":{open}{close},"threadId":"t","runId":"r","messages":[]}}"#)
    };
    let at = r#"{"state":"#.len() + MAX_DEPTH - 1;
    let message = format!("the body is nested deeper than {MAX_DEPTH} levels at byte {at}");
    for levels in [10_000, MAX_DEPTH] {
        let expected = error(400, codes::NESTED_TOO_DEEP, &message);
        assert_eq!(refused_body(nested(levels)).await, expected, "{levels}");
    }
    let fits = post(nested(MAX_DEPTH - 1));
    let response = AgentService::new(common::emits(vec![])).oneshot(fits).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn p73_a_malformed_input_is_refused_naming_the_member() {
    for (body, path, message) in [
        ("[]", "", "expected an object, found an array"),
        ("\"input\"", "", "expected an object, found string \"input\""),
        (
            r#"{"runId":"r","messages":[]}"#,
            "/threadId",
            "/threadId: missing: expected the member \"threadId\"",
        ),
        (
            r#"{"threadId":"t","messages":[]}"#,
            "/runId",
            "/runId: missing: expected the member \"runId\"",
        ),
        (
            r#"{"threadId":"t","runId":"r"}"#,
            "/messages",
            "/messages: missing: expected the member \"messages\"",
        ),
        (
            r#"{"threadId":7,"runId":"r","messages":[]}"#,
            "/threadId",
            "/threadId: expected a string, found number 7",
        ),
        (
            r#"{"threadId":"t","runId":"r","messages":[
                {"id":"a","role":"user","content":"fine"},
                {"id":"b","role":"user","content":[
                    {"type":"text","text":"fine"},{"type":"text","text":7}
                ]}
            ]}"#,
            "/messages/1/content/1/text",
            "/messages/1/content/1/text: expected a string, found number 7",
        ),
        (
            r#"{"threadId":"t","runId":"r","messages":[{"id":"a","role":"assistant","toolCalls":[
                {"id":"c","type":"function","function":{"name":"f","arguments":{}}}
            ]}]}"#,
            "/messages/0/toolCalls/0/function/arguments",
            "/messages/0/toolCalls/0/function/arguments: expected a string, found an object",
        ),
        (
            r#"{"threadId":"t","runId":"r","messages":[],"resume":[{"status":"resolved"}]}"#,
            "/resume/0/interruptId",
            "/resume/0/interruptId: missing: expected the member \"interruptId\"",
        ),
    ] {
        assert_eq!(refused_body(body).await, malformed(path, message), "{body}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let hint = "send less: shorten the history, or pass media by URL instead of inline";
    let too_large = |limit: usize| {
        let message = format!("the body is larger than {limit} bytes");
        hinted(413, codes::BODY_TOO_LARGE, &message, hint)
    };
    let twenty = vec![b' '; 20_000_000];
    assert_eq!(refused_body(twenty).await, too_large(10 * 1024 * 1024));

    // At the edge, announced and not, in one piece and in many.
    for over in [0, 1] {
        let limit = INPUT.len() - over;
        let service = |agent| AgentService::new(agent).body_limit(limit);
        let announced = || post(INPUT);
        let mut headed = post(INPUT);
        headed.headers_mut().insert("content-length", INPUT.len().into());
        if over == 0 {
            for request in [announced(), headed] {
                let response = service(common::emits(vec![])).oneshot(request).await.unwrap();
                assert_eq!(response.status(), 200);
            }
            let response = service(common::emits(vec![])).oneshot(dripping(INPUT)).await.unwrap();
            assert_eq!(response.status(), 200);
        } else {
            let limited = |service: AgentService| service.body_limit(limit);
            assert_eq!(refused(limited, announced()).await, too_large(limit));
            assert_eq!(refused(limited, headed).await, too_large(limit));
            assert_eq!(refused(limited, dripping(INPUT)).await, too_large(limit));
        }
    }
}

/// A request whose body comes byte by byte, of no announced length.
fn dripping(body: &'static str) -> Request<impl Body<Data = Bytes, Error = Infallible>> {
    let bytes = body.as_bytes().chunks(1).map(|byte| Ok(Frame::data(Bytes::from_static(byte))));
    let body = StreamBody::new(stream::iter(bytes));
    Request::post("/").header("content-type", "application/json").body(body).unwrap()
}

/// A request whose body is announced too large and comes as the test sends it.
fn announced() -> (mpsc::UnboundedSender<()>, Request<impl Body<Data = Bytes, Error = Infallible>>)
{
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let frames = stream::poll_fn(move |cx| receiver.poll_recv(cx))
        .map(|()| Ok(Frame::data(Bytes::from_static(b"12345"))));
    let request = Request::post("/")
        .header("content-type", "application/json")
        .header("content-length", "11")
        .body(StreamBody::new(frames))
        .unwrap();
    (sender, request)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_announced_too_large_is_refused_at_once_and_read_meanwhile() {
    let service = AgentService::new(common::emits(vec![])).body_limit(10);
    let (sender, request) = announced();
    let response = service.clone().oneshot(request).now_or_never().expect("at once").unwrap();
    assert_eq!(response.status(), 413);
    let mut body = response.into_body();
    let answer = body.frame().now_or_never().expect("at once").unwrap().unwrap();
    assert!(answer.into_data().unwrap().starts_with(b"{\"error\":{"));
    assert!(body.frame().now_or_never().is_none(), "the body may still come");
    for _ in 0..3 {
        sender.send(()).unwrap();
    }
    drop(sender);
    assert!(body.frame().now_or_never().expect("the end").is_none());

    // A body that does not come is waited for no longer than a second.
    let (_sender, request) = announced();
    let mut body = service.clone().oneshot(request).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    assert!(body.frame().now_or_never().is_none());
    advance(Duration::from_millis(999)).await;
    assert!(body.frame().now_or_never().is_none());
    advance(Duration::from_millis(1)).await;
    assert!(body.frame().now_or_never().expect("the end").is_none());

    // One that goes on and on is not read for ever.
    let (sender, request) = announced();
    let mut body = service.clone().oneshot(request).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    for _ in 0..60 {
        assert!(body.frame().now_or_never().is_none());
        advance(Duration::from_millis(500)).await;
        sender.send(()).unwrap();
    }
    assert!(body.frame().now_or_never().expect("the end").is_none());

    // Who waits to be told to go on is not waited for.
    let (_sender, mut request) = announced();
    request.headers_mut().insert("expect", "100-continue".parse().unwrap());
    let body = service.oneshot(request).await.unwrap().into_body();
    assert!(body.collect().now_or_never().is_some());
}

#[tokio::test]
async fn a_body_that_breaks_off_starts_no_run() {
    let frames = [Ok(Frame::data(Bytes::from_static(b"{\"thr"))), Err(std::fmt::Error)];
    let body = StreamBody::new(stream::iter(frames));
    let request = Request::post("/").header("content-type", "application/json").body(body).unwrap();
    let expected = error(400, codes::BODY_INCOMPLETE, "the body broke off after 5 bytes");
    assert_eq!(refused(|service| service, request).await, expected);
}

#[tokio::test]
async fn a_body_that_its_server_ends_is_answered_with_the_reason() {
    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] BodyError);

    let request = |error: BodyError| {
        let frames = [Ok(Frame::data(Bytes::from_static(b"{\"thr"))), Err(Wrapped(error))];
        let body = StreamBody::new(stream::iter(frames));
        Request::post("/").header("content-type", "application/json").body(body).unwrap()
    };
    let slow = error(408, codes::BODY_TOO_SLOW, "the body came too slowly: 5 bytes did");
    assert_eq!(refused(|service| service, request(BodyError::TooSlow)).await, slow);
    let hint = "no run has begun: send the request again";
    let closing = hinted(503, codes::SHUTTING_DOWN, "the server is shutting down", hint);
    assert_eq!(refused(|service| service, request(BodyError::Closing)).await, closing);
    let broken = error(400, codes::BODY_INCOMPLETE, "the body broke off after 5 bytes");
    let cause = BodyError::Broken("reset".into());
    assert_eq!(refused(|service| service, request(cause)).await, broken);
}

#[tokio::test]
async fn capabilities_are_declared_as_json_or_not_at_all() {
    let get = |method: Method| {
        Request::builder().method(method).uri("/").body(Empty::<Bytes>::new()).unwrap()
    };
    let ask = async |agent: AgentService, method: Method| {
        let response = agent.capabilities().oneshot(get(method)).await.unwrap();
        let status = response.status();
        assert_eq!(response.headers()["content-type"], "application/json");
        let allow = response.headers().get("allow").cloned();
        let body: Value = serde_json::from_str(&body_text(response).await).unwrap();
        (status.as_u16(), allow, body)
    };
    let silent = || AgentService::new(common::emits(vec![]));
    let declared = json!({"reasoning": {"supported": true}});
    let capabilities: AgentCapabilities = serde_json::from_value(declared.clone()).unwrap();
    let talkative =
        || AgentService::new(common::emits(vec![]).with_capabilities(capabilities.clone()));

    assert_eq!(ask(talkative(), Method::GET).await, (200, None, declared));
    // C-91
    let (status, _, body) = ask(silent(), Method::GET).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!(codes::NO_CAPABILITIES)));
    let (status, allow, body) = ask(silent(), Method::POST).await;
    assert_eq!((status, &body["error"]["code"]), (405, &json!(codes::METHOD_NOT_ALLOWED)));
    assert_eq!(allow.unwrap(), "GET, HEAD");
}

#[tokio::test]
async fn an_agent_that_panics_while_it_declares_itself_is_answered_for() {
    struct Panics;
    impl Agent for Panics {
        fn run(
            &self,
            _: agui_types::RunAgentInput,
            _: agui_agent::RunContext,
        ) -> agui_agent::EventStream {
            unreachable!("nobody runs it")
        }

        fn capabilities(&self) -> agui_agent::BoxFuture<'_, Option<AgentCapabilities>> {
            panic!("no idea")
        }
    }
    let get = Request::get("/").body(Empty::<Bytes>::new()).unwrap();
    let response = AgentService::new(Panics).capabilities().oneshot(get).await.unwrap();
    assert_eq!(response.status(), 500);
    assert!(body_text(response).await.contains(codes::AGENT_PANIC));
}
