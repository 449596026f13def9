//! The answer in the binary form.

mod common;

use std::time::Duration;

use agui_agent::{Agent, HttpAgent, RunContext};
use agui_server::{AgentService, codes};
use agui_types::event::{RunFinished, StateSnapshot};
use agui_types::{Event, FromJson, Json, RunAgentInput};
use agui_wire::{Decoder, EVENT_PROTO, Limits, WireForm};
use common::{INPUT, custom, emits, finished, post, raw, started, text, text_start};
use futures_util::{StreamExt, stream};
use http::Response;
use http_body_util::BodyExt;
use tower::ServiceExt;

/// Asks with these lines of `Accept`.
async fn answer(agent: impl Agent, accept: &[&str]) -> Response<agui_server::ResponseBody> {
    let mut request = post(INPUT);
    for line in accept {
        request.headers_mut().append("accept", line.parse().unwrap());
    }
    AgentService::new(agent).oneshot(request).await.unwrap()
}

async fn events(response: Response<agui_server::ResponseBody>) -> Vec<Event> {
    assert_eq!(response.headers()["content-type"], EVENT_PROTO, "T-23: without parameters");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let (mut read, mut events) = (&body[..], Vec::new());
    while let Some(decoded) = decoder.decode(&mut read).unwrap() {
        events.push(decoded.event.unwrap().value);
    }
    decoder.finish().unwrap();
    events
}

#[tokio::test]
async fn t24_the_accept_header_chooses_the_form() {
    let run = || vec![started(), text_start("m"), text("m", "Hé"), custom("c"), finished()];
    for (accept, form) in [
        (&["application/vnd.ag-ui.event+proto"][..], WireForm::Proto),
        (&["text/event-stream, */*;q=0.1"], WireForm::Proto),
        (&["text/event-stream", "application/*"], WireForm::Proto),
        (&["text/event-stream"], WireForm::Sse),
        (&["*/*", "application/*;q=0"], WireForm::Sse),
        (&[], WireForm::Sse),
    ] {
        let response = answer(emits(run()), accept).await;
        assert_eq!(response.headers()["content-type"], form.media_type(), "{accept:?}");
        assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    }
    // T-5: the same events.
    let mut run = run();
    run.insert(4, agui_types::event::TextMessageEnd::new("m").into());
    let response = answer(emits(run.clone()), &[EVENT_PROTO]).await;
    assert_eq!(events(response).await, run);
}

#[tokio::test]
async fn t35_a_run_that_breaks_ends_with_a_frame_that_says_so() {
    let response = answer(emits(vec![started(), text_start("m")]), &[EVENT_PROTO]).await;
    let types: Vec<_> = events(response).await.iter().map(|it| it.type_name().to_owned()).collect();
    assert_eq!(types, ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]);
}

#[tokio::test]
async fn what_the_form_cannot_say_ends_the_run_and_is_named() {
    let huge = || Json::parse("[1e999]").unwrap();
    let snapshot: Event = StateSnapshot::new(huge()).into();
    let result: Event = RunFinished::new("t", "r").result(huge()).into();
    for (run, path) in [
        (vec![started(), text_start("m"), snapshot, finished()], "/snapshot"),
        (vec![started(), result], "/result"),
    ] {
        // On the other form it is a number like any other.
        let response = answer(emits(run[..run.len() - 1].to_vec()), &[]).await;
        assert_eq!(response.status(), 200);

        let events = events(answer(emits(run), &[EVENT_PROTO]).await).await;
        assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1);
        let Some(Event::RunError(error)) = events.last() else { panic!("{events:?}") };
        assert_eq!(error.code.as_deref(), Some(codes::NOT_ENCODABLE));
        assert!(error.message.contains(path) && error.message.contains("1e999"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn t17_there_is_no_sign_of_life_in_the_binary_form() {
    let agent = raw(|_| {
        let start = stream::iter([Ok(started().into())]);
        let end = stream::once(async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(finished().into())
        });
        Box::pin(start.chain(end))
    });
    let events = events(answer(agent, &[EVENT_PROTO]).await).await;
    assert_eq!(events, [started(), finished()]);
}

#[tokio::test]
async fn our_client_and_our_server_speak_it_to_each_other() {
    let run = vec![started(), text_start("m"), text("m", "hi"), finished()];
    let router = agui_server::router(emits(run));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    for form in [WireForm::Proto, WireForm::Sse] {
        let agent = HttpAgent::builder(&url).wire(form).build().unwrap();
        let input = RunAgentInput::from_json_exact(INPUT).unwrap();
        let events = agent.run(input, RunContext::new());
        let types: Vec<_> =
            events.map(|event| event.unwrap().value.type_name().to_owned()).collect().await;
        assert_eq!(types.first().map(String::as_str), Some("RUN_STARTED"), "{form}");
        assert!(types.last().is_some_and(|last| last.starts_with("RUN_")), "{form}: {types:?}");
    }
    server.abort();
}
