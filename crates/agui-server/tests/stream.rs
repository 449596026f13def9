//! The answer to a run: its head, its frames, its silences.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use agui_server::AgentService;
use agui_types::event::Raw;
use agui_types::{Event, Json};
use bytes::Bytes;
use common::{
    INPUT, Item, body_text, custom, emits, events, finished, post, raw, sent, started, text, types,
};
use futures_util::{StreamExt, stream};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};
use tower::ServiceExt;

const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// An agent that emits what the test sends.
fn fed() -> (mpsc::UnboundedSender<Event>, impl agui_agent::Agent) {
    let (sender, receiver) = mpsc::unbounded_channel::<Event>();
    let receiver = std::sync::Mutex::new(Some(receiver));
    let agent = raw(move |_| {
        let mut events = receiver.lock().unwrap().take().expect("one run");
        Box::pin(stream::poll_fn(move |cx| events.poll_recv(cx)).map(|event| Ok(event.into())))
    });
    (sender, agent)
}

/// The next chunk, if one is ready.
fn poll(body: &mut (impl Body<Data = Bytes> + Unpin)) -> Poll<Option<Bytes>> {
    let mut cx = Context::from_waker(Waker::noop());
    std::pin::Pin::new(body)
        .poll_frame(&mut cx)
        .map(|frame| frame.map(|frame| frame.ok().unwrap().into_data().unwrap()))
}

fn ready(body: &mut (impl Body<Data = Bytes> + Unpin)) -> String {
    match poll(body) {
        Poll::Ready(Some(chunk)) => String::from_utf8(chunk.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn t12_the_head_of_a_run() {
    let service = AgentService::new(emits(vec![started(), finished()]));
    let mut request = post(INPUT);
    request.headers_mut().insert("accept", "application/json;q=0.1".parse().unwrap());
    let response = service.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut head: Vec<(&str, &str)> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    head.sort_unstable();
    assert_eq!(
        head,
        [
            ("cache-control", "no-cache, no-transform"),
            ("content-type", "text/event-stream"),
            ("vary", "accept"),
            ("x-accel-buffering", "no"),
        ]
    );
}

#[tokio::test]
async fn t12_the_head_comes_before_the_first_event() {
    let agent = raw(|_| Box::pin(stream::poll_fn(|_| unreachable!("polled before the body is"))));
    let response = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn t13_one_event_is_one_data_line() {
    let agent = emits(vec![started(), custom("a"), finished()]);
    let response = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap();
    assert_eq!(
        body_text(response).await,
        "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n\
         data: {\"type\":\"CUSTOM\",\"name\":\"a\",\"value\":1}\n\n\
         data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"
    );
}

#[tokio::test]
async fn t13_pretty_printed_json_inside_an_event_does_not_break_the_framing() {
    let pretty = "{\n  \"a\": [1,\r\n 2],\n\n  \"b\": \"\\n\\n\"\r}";
    let event = Raw::new(Json::parse(pretty).unwrap()).into();
    let agent = emits(vec![started(), event, finished()]);
    let response = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap();
    let events = events(&body_text(response).await);
    assert_eq!(events[1]["event"], serde_json::json!({"a": [1, 2], "b": "\n\n"}));
}

#[tokio::test]
async fn events_that_are_ready_share_a_chunk_and_nothing_waits() {
    let (sender, agent) = fed();
    let mut body = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap().into_body();
    assert!(poll(&mut body).is_pending());
    sender.send(started()).unwrap();
    assert_eq!(types(&ready(&mut body)), ["RUN_STARTED"]);
    assert!(poll(&mut body).is_pending());
    for event in [custom("a"), custom("b"), finished()] {
        sender.send(event).unwrap();
    }
    assert_eq!(types(&ready(&mut body)), ["CUSTOM", "CUSTOM", "RUN_FINISHED"]);
    assert!(poll(&mut body).is_pending());
    drop(sender);
    // T-18, and asked again it is still over.
    assert!(matches!(poll(&mut body), Poll::Ready(None)));
    assert!(matches!(poll(&mut body), Poll::Ready(None)));
}

#[tokio::test]
async fn an_event_larger_than_a_chunk_goes_out_whole() {
    let large = "x".repeat(300_000);
    let agent = emits(vec![started(), common::text_start("m"), text("m", &large), text("m", "!")]);
    let mut body = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap().into_body();
    let chunk = ready(&mut body);
    assert_eq!(types(&chunk).len(), 3);
    assert_eq!(events(&chunk)[2]["delta"], large);
    let rest = body.collect().await.unwrap().to_bytes();
    let rest = String::from_utf8(rest.to_vec()).unwrap();
    assert_eq!(types(&rest), ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR"]);
}

#[tokio::test(start_paused = true)]
async fn t17_a_comment_after_exactly_15_seconds_of_silence() {
    let (sender, agent) = fed();
    let mut body = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap().into_body();
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_millis(14_999)).await;
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_millis(1)).await;
    assert_eq!(ready(&mut body).as_bytes(), KEEP_ALIVE);
    assert!(poll(&mut body).is_pending(), "one comment, not many");

    // Again after 15 more, and an event starts the wait anew.
    advance(Duration::from_secs(15)).await;
    assert_eq!(ready(&mut body).as_bytes(), KEEP_ALIVE);
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_secs(10)).await;
    sender.send(started()).unwrap();
    assert_eq!(types(&ready(&mut body)), ["RUN_STARTED"]);
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_millis(14_999)).await;
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_millis(1)).await;
    assert_eq!(ready(&mut body).as_bytes(), KEEP_ALIVE);

    // An event that is ready together with the comment goes out in its place.
    assert!(poll(&mut body).is_pending());
    advance(Duration::from_secs(15)).await;
    sender.send(custom("a")).unwrap();
    assert_eq!(types(&ready(&mut body)), ["CUSTOM"]);
    assert!(poll(&mut body).is_pending());
}

#[tokio::test(start_paused = true)]
async fn t17_the_comment_wakes_whoever_waits_for_the_body() {
    let (_sender, agent) = fed();
    let service = AgentService::new(agent).keep_alive(Duration::from_secs(3));
    let mut body = service.oneshot(post(INPUT)).await.unwrap().into_body();
    let begun = Instant::now();
    for seconds in [3, 6] {
        let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(chunk, KEEP_ALIVE);
        assert_eq!(begun.elapsed(), Duration::from_secs(seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn keep_alive_can_be_switched_off() {
    for off in [None, Some(Duration::ZERO)] {
        let (_sender, agent) = fed();
        let service = AgentService::new(agent).keep_alive(off);
        let mut body = service.oneshot(post(INPUT)).await.unwrap().into_body();
        assert!(poll(&mut body).is_pending());
        advance(Duration::from_secs(1_000_000)).await;
        assert!(poll(&mut body).is_pending());
    }
    // The longest wait there is does not overflow.
    let (_sender, agent) = fed();
    let service = AgentService::new(agent).keep_alive(Duration::MAX);
    assert!(poll(&mut service.oneshot(post(INPUT)).await.unwrap().into_body()).is_pending());
}

#[tokio::test]
async fn the_agent_is_polled_by_the_body_alone() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let agent = raw(move |_| {
        let counted = Arc::clone(&counted);
        let endless = stream::repeat_with(move || -> Item {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(custom(&"x".repeat(1000)).into())
        });
        Box::pin(stream::iter([Ok(started().into())]).chain(endless))
    });
    let mut body = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap().into_body();
    assert_eq!(polls.load(Ordering::Relaxed), 0);
    let mut total = 0;
    for _ in 0..10 {
        let chunk = ready(&mut body);
        assert!(chunk.len() < 18 * 1024, "{}", chunk.len());
        total += types(&chunk).len();
    }
    assert_eq!(polls.load(Ordering::Relaxed) + 1, total, "nothing is taken that is not sent");
}

#[tokio::test]
async fn c31_what_is_open_goes_out_as_it_came() {
    let metadata = r#"{"type":"CUSTOM","name":"x","value":null,"metadata":{"k":null,"n":1.10}}"#;
    let agent = raw(move |_| {
        let items: [Item; 3] = [Ok(started().into()), Ok(sent(metadata)), Ok(finished().into())];
        Box::pin(stream::iter(items))
    });
    let response = AgentService::new(agent).oneshot(post(INPUT)).await.unwrap();
    assert!(body_text(response).await.contains(&format!("data: {metadata}\n\n")));
}
